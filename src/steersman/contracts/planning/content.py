"""What a registry holds: workflows, agents, commands and rules, each with id, version, status and lineage.

**Invariant:** content describes. No field of it is ever executed; a command names its argv for people and grammars.
"""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.intent import Lineage
from steersman.contracts.planning.words import (
    Area,
    Decision,
    Digest,
    Document,
    Effect,
    Id,
    Kind,
    Line,
    Phase,
    Placement,
    Review,
    Risk,
    Severity,
    Status,
    Text,
    Version,
)


class _Content(Document, frozen=True, kw_only=True):
    id: Id
    version: Version
    status: Status
    title: Line
    description: Text
    lineage: Lineage


class WorkflowPhase(Document, frozen=True, kw_only=True):
    """One phase: whom it needs, what it does, and which phases of the workflow come before it."""

    phase: Phase
    purpose: Line
    role: Annotated[str, Meta(min_length=1, max_length=80)]  # of the agent whose lane it is in
    commands: Annotated[tuple[Id, ...], Meta(max_length=40)] = ()  # that this phase can use
    after: Annotated[tuple[Phase, ...], Meta(max_length=8)] = ()
    fallback: Phase | Literal[""] = ""  # where to go when it does not succeed
    condition: Annotated[str, Meta(max_length=400)] = ""  # in words, on the edge into it
    needs_command: bool = False  # a phase in which somebody has to do something that can be shown
    review: Annotated[tuple[Review, ...], Meta(max_length=6)] = ()  # who looks before it is left


class Workflow(_Content, frozen=True, kw_only=True):
    """A way of working, as phases."""

    phases: Annotated[tuple[WorkflowPhase, ...], Meta(min_length=1, max_length=12)]


class ModelChoice(Document, frozen=True, kw_only=True):
    """A model that suits an agent, in order of preference."""

    model: Line
    placement: Placement
    micro_usd_per_million_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0


class AgentProfile(_Content, frozen=True, kw_only=True):
    """Who does a part of the work."""

    role: Annotated[str, Meta(min_length=1, max_length=80)]
    phases: Annotated[tuple[Phase, ...], Meta(min_length=1, max_length=9)]
    areas: Annotated[tuple[Area, ...], Meta(max_length=8)] = ()
    capabilities: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=20)]
    models: Annotated[tuple[ModelChoice, ...], Meta(max_length=10)] = ()
    tokens_per_action: Annotated[int, Meta(ge=0, le=2_000_000)] = 20_000


class CommandSpec(_Content, frozen=True, kw_only=True):
    """Something that could be done, and what it does to the world."""

    effects: Annotated[tuple[Effect, ...], Meta(min_length=1, max_length=6)]
    risk_level: Risk
    destructive: bool = False
    records: bool = False  # it keeps or shows a change that something else makes, and makes none
    phases: Annotated[tuple[Phase, ...], Meta(min_length=1, max_length=9)]
    argv: Annotated[
        tuple[Line, ...], Meta(max_length=40)
    ] = ()  # as an example for people; from facts where empty
    fact: Annotated[str, Meta(max_length=40)] = ""  # the kind of fact that says a project has it
    files: Annotated[int, Meta(ge=0, le=500)] = 0  # that it usually changes
    minutes: Annotated[int, Meta(ge=0, le=10_000)] = 5
    rollback: Annotated[str, Meta(max_length=400)] = ""
    evidence: Annotated[tuple[Line, ...], Meta(max_length=20)] = ()  # kinds of facts it needs


class RuleScope(Document, frozen=True, kw_only=True):
    """Which planned commands a rule looks at; what is empty leaves nothing out, but not everything may be empty."""

    commands: Annotated[tuple[Id, ...], Meta(max_length=100)] = ()
    effects: Annotated[tuple[Effect, ...], Meta(max_length=6)] = ()
    risks: Annotated[tuple[Risk, ...], Meta(max_length=4)] = ()
    phases: Annotated[tuple[Phase, ...], Meta(max_length=9)] = ()


class RuleThen(Document, frozen=True, kw_only=True):
    """What follows when a rule fires."""

    decision: Decision
    reason: Line
    required_changes: Annotated[tuple[Line, ...], Meta(max_length=20)] = ()
    review: Annotated[tuple[Review, ...], Meta(max_length=6)] = ()


class Rule(_Content, frozen=True, kw_only=True):
    """A sentence about planned commands that a machine can decide: `when` is CEL, typed as it enters the registry."""

    severity: Severity
    scope: RuleScope
    when: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]
    then: RuleThen
    evidence_required: Annotated[
        tuple[Line, ...], Meta(min_length=1, max_length=20)
    ]  # kinds of facts, or refs


Content = Workflow | AgentProfile | CommandSpec | Rule
KINDS: dict[Kind, type[Content]] = {
    "workflow": Workflow,
    "agent": AgentProfile,
    "command": CommandSpec,
    "rule": Rule,
}


class Entry(Document, frozen=True, kw_only=True):
    """One piece of content in a snapshot: where it came from, and the digest of its canonical bytes."""

    kind: Kind
    id: Id
    version: Version
    status: Status
    origin: Literal["built-in", "project"]
    digest: Digest


class Snapshot(Document, frozen=True, kw_only=True):
    """A registry at one moment; its digest is over the entries, sorted by kind and id."""

    entries: tuple[Entry, ...]
    digest: Digest
