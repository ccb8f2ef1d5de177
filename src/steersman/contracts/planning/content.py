"""What a registry holds: workflows, agents, commands and rules, each with id, version, status and lineage.

**Invariant:** content describes. No field of it is ever executed; a command names its argv for people and grammars.
"""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.intent import ContentLineage
from steersman.contracts.planning.words import (
    CommandEffect,
    ContentId,
    ContentKind,
    ContentStatus,
    ContentVersion,
    DecisionKind,
    HexDigest,
    LongText,
    ModelPlacement,
    PlanPhase,
    ProjectArea,
    ReviewCategory,
    RiskLevel,
    RuleSeverity,
    ShortText,
    StrictDocument,
)


class _ContentBase(StrictDocument, frozen=True, kw_only=True):
    id: ContentId
    version: ContentVersion
    status: ContentStatus
    title: ShortText
    description: LongText
    lineage: ContentLineage


class WorkflowPhase(StrictDocument, frozen=True, kw_only=True):
    """One phase: whom it needs, what it does, and which phases of the workflow come before it."""

    phase: PlanPhase
    purpose: ShortText
    role: Annotated[str, Meta(min_length=1, max_length=80)]  # of the agent whose lane it is in
    commands: Annotated[tuple[ContentId, ...], Meta(max_length=40)] = ()  # that this phase can use
    after: Annotated[tuple[PlanPhase, ...], Meta(max_length=8)] = ()
    fallback: PlanPhase | Literal[""] = ""  # where to go when it does not succeed
    condition: Annotated[str, Meta(max_length=400)] = ""  # in words, on the edge into it
    needs_command: bool = False  # a phase in which something provable has to be done
    review: Annotated[tuple[ReviewCategory, ...], Meta(max_length=6)] = ()  # who looks before it is left


class Workflow(_ContentBase, frozen=True, kw_only=True):
    """A way of working, as phases."""

    phases: Annotated[tuple[WorkflowPhase, ...], Meta(min_length=1, max_length=12)]


class ModelChoice(StrictDocument, frozen=True, kw_only=True):
    """A model that suits an agent, in order of preference."""

    model: ShortText
    placement: ModelPlacement
    micro_usd_per_million_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0


class AgentProfile(_ContentBase, frozen=True, kw_only=True):
    """Who does a part of the work."""

    role: Annotated[str, Meta(min_length=1, max_length=80)]
    phases: Annotated[tuple[PlanPhase, ...], Meta(min_length=1, max_length=9)]
    areas: Annotated[tuple[ProjectArea, ...], Meta(max_length=8)] = ()
    capabilities: Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=20)]
    models: Annotated[tuple[ModelChoice, ...], Meta(max_length=10)] = ()
    tokens_per_action: Annotated[int, Meta(ge=0, le=2_000_000)] = 20_000


class CommandSpec(_ContentBase, frozen=True, kw_only=True):
    """A command that can be planned, with its effects."""

    effects: Annotated[tuple[CommandEffect, ...], Meta(min_length=1, max_length=6)]
    risk_level: RiskLevel
    destructive: bool = False
    records: bool = False  # it keeps or shows a change that something else makes, and makes none
    phases: Annotated[tuple[PlanPhase, ...], Meta(min_length=1, max_length=9)]
    # As an example for people; from facts where empty.
    argv: Annotated[tuple[ShortText, ...], Meta(max_length=40)] = ()
    fact: Annotated[str, Meta(max_length=40)] = ""  # the kind of fact that says a project has it
    files: Annotated[int, Meta(ge=0, le=500)] = 0  # that it usually changes
    minutes: Annotated[int, Meta(ge=0, le=10_000)] = 5
    rollback: Annotated[str, Meta(max_length=400)] = ""
    evidence: Annotated[tuple[ShortText, ...], Meta(max_length=20)] = ()  # kinds of facts it needs


class RuleScope(StrictDocument, frozen=True, kw_only=True):
    """Which planned commands a rule looks at; what is empty leaves nothing out, but not everything may be empty."""

    commands: Annotated[tuple[ContentId, ...], Meta(max_length=100)] = ()
    effects: Annotated[tuple[CommandEffect, ...], Meta(max_length=6)] = ()
    risks: Annotated[tuple[RiskLevel, ...], Meta(max_length=4)] = ()
    phases: Annotated[tuple[PlanPhase, ...], Meta(max_length=9)] = ()


class RuleConsequence(StrictDocument, frozen=True, kw_only=True):
    """What follows when a rule fires."""

    decision: DecisionKind
    reason: ShortText
    required_changes: Annotated[tuple[ShortText, ...], Meta(max_length=20)] = ()
    review: Annotated[tuple[ReviewCategory, ...], Meta(max_length=6)] = ()


class RegistryRule(_ContentBase, frozen=True, kw_only=True):
    """A sentence about planned commands that a machine can decide: `when` is CEL, typed as it enters the registry."""

    severity: RuleSeverity
    scope: RuleScope
    when: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]
    then: RuleConsequence
    # Kinds of facts, or refs.
    evidence_required: Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=20)]


RegistryContent = Workflow | AgentProfile | CommandSpec | RegistryRule
CONTENT_TYPES: dict[ContentKind, type[RegistryContent]] = {
    "workflow": Workflow,
    "agent": AgentProfile,
    "command": CommandSpec,
    "rule": RegistryRule,
}


class RegistryEntry(StrictDocument, frozen=True, kw_only=True):
    """One piece of content in a snapshot: where it came from, and the digest of its canonical bytes."""

    kind: ContentKind
    id: ContentId
    version: ContentVersion
    status: ContentStatus
    origin: Literal["built-in", "project"]
    digest: HexDigest


class RegistrySnapshot(StrictDocument, frozen=True, kw_only=True):
    """A registry at one moment; its digest is over the entries, sorted by kind and id."""

    entries: tuple[RegistryEntry, ...]
    digest: HexDigest
