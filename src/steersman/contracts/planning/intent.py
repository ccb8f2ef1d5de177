"""ExecutionIntent v0.9.1: what a person wants planned. Closed: a field that is not here is refused."""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.words import (
    Area,
    Asking,
    Digest,
    Document,
    Effect,
    Id,
    Line,
    Mode,
    Moment,
    Phase,
    Ref,
    Review,
    Risk,
    Version,
)

SCHEMA = "0.9.1"


IntentId = Annotated[str, Meta(pattern=r"^intent_[a-z0-9_]{6,64}$")]


class Lineage(Document, frozen=True, kw_only=True):
    """Where an intent or a piece of content comes from."""

    introduced_in: Annotated[str, Meta(min_length=1, max_length=80, pattern=r"\S")]
    derived_from: Annotated[tuple[Line, ...], Meta(max_length=16)] = ()
    supersedes: Annotated[tuple[Line, ...], Meta(max_length=16)] = ()


class Targets(Document, frozen=True, kw_only=True):
    """What the plan may touch; nothing named means that nobody has said yet."""

    files: Annotated[tuple[Line, ...], Meta(max_length=200)] = ()
    modules: Annotated[tuple[Line, ...], Meta(max_length=100)] = ()
    areas: Annotated[tuple[Area, ...], Meta(max_length=8)] = ()


class Reach(Document, frozen=True, kw_only=True):
    """The project and the part of it that is meant."""

    project_id: Annotated[str, Meta(min_length=1, max_length=120, pattern=r"\S")]
    repo_root: Annotated[str, Meta(min_length=1, max_length=400, pattern=r"\S")]
    targets: Targets


class Objective(Document, frozen=True, kw_only=True):
    """What is to be reached, how one will know, and what is left out on purpose."""

    goal: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]
    success_criteria: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=20)]
    non_goals: Annotated[tuple[Line, ...], Meta(max_length=20)] = ()


class SelectedWorkflow(Document, frozen=True, kw_only=True):
    """A workflow of the registry, and which of its phases are wanted."""

    workflow_id: Id
    phases: Annotated[tuple[Phase, ...], Meta(min_length=1, max_length=12)]
    reason: Annotated[str, Meta(max_length=400)] = ""


class SelectedAgent(Document, frozen=True, kw_only=True):
    """An agent of the registry, and what it answers for."""

    agent_id: Id
    role: Annotated[str, Meta(min_length=1, max_length=80, pattern=r"\S")]
    responsibilities: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=12)]


class PlannedCommand(Document, frozen=True, kw_only=True):
    """A command of the registry that the plan would propose, and what speaks for it."""

    command_id: Id
    intent: Line
    effects: Annotated[tuple[Effect, ...], Meta(min_length=1, max_length=6)]
    risk_level: Risk
    evidence_refs: Annotated[tuple[Ref, ...], Meta(min_length=1, max_length=30)]


class Interaction(Document, frozen=True, kw_only=True):
    """How much the planner may ask."""

    mode: Mode
    question_budget: Annotated[int, Meta(ge=0, le=50)]
    question_policy: Asking


class IntentRisk(Document, frozen=True, kw_only=True):
    """How dangerous the author thinks it is, why, and who has to look."""

    overall: Risk
    drivers: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=20)]
    requires_review: Annotated[tuple[Review, ...], Meta(max_length=6)]


class Budgets(Document, frozen=True, kw_only=True):
    """What the plan may cost at most; money in whole dollars."""

    max_files: Annotated[int, Meta(ge=0, le=500)]
    max_commits: Annotated[int, Meta(ge=0, le=50)]
    max_tokens: Annotated[int, Meta(ge=0, le=2_000_000)]
    max_cost_usd: Annotated[int, Meta(ge=0, le=10_000)]


class LockScope(Document, frozen=True, kw_only=True):
    """What nobody else should touch while the plan is carried out: nothing, what the plan names, or these paths.

    A lock on files holds both ways: the plan stays within what it locks.
    """

    mode: Literal["none", "task", "files"]
    paths: Annotated[tuple[Line, ...], Meta(max_length=200)] = ()


class Constraints(Document, frozen=True, kw_only=True):
    """The three sentences without which nothing is planned."""

    execution: Literal["forbidden"]
    no_fabrication: Literal[True]
    registry_only: Literal[True]
    lock_scope: LockScope


class Audit(Document, frozen=True, kw_only=True):
    """Who wrote it, and the checksum over everything but this field."""

    created_by: Annotated[str, Meta(min_length=1, max_length=120, pattern=r"\S")]
    source: Literal["human", "agentos", "imported"]
    checksum: Digest


class ExecutionIntent(Document, frozen=True, kw_only=True):
    """The whole of it."""

    id: IntentId
    type: Literal["execution_intent"]
    title: Annotated[str, Meta(min_length=5, max_length=160, pattern=r"\S")]
    description: Annotated[str, Meta(max_length=4000)]
    version: Version
    created_at: Moment
    status: Literal["draft", "proposed", "approved", "rejected", "superseded"]
    lineage: Lineage
    scope: Reach
    objective: Objective
    selected_workflows: Annotated[tuple[SelectedWorkflow, ...], Meta(min_length=1, max_length=18)]
    selected_agents: Annotated[tuple[SelectedAgent, ...], Meta(min_length=1, max_length=13)]
    planned_commands: Annotated[tuple[PlannedCommand, ...], Meta(max_length=80)]
    interaction: Interaction
    risk: IntentRisk
    budgets: Budgets
    evidence_refs: Annotated[tuple[Ref, ...], Meta(min_length=1, max_length=200)]
    constraints: Constraints
    audit: Audit
