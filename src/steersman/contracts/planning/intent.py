"""ExecutionIntent v0.9.1: what a person wants planned. Closed: a field that is not here is refused."""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.words import (
    CommandEffect,
    ContentId,
    ContentVersion,
    EvidenceRef,
    ExecutionMode,
    HexDigest,
    PlanPhase,
    ProjectArea,
    QuestionPolicy,
    ReviewCategory,
    RiskLevel,
    ShortText,
    StrictDocument,
    UtcMoment,
)

IntentId = Annotated[str, Meta(pattern=r"^intent_[a-z0-9_]{6,64}$")]


class ContentLineage(StrictDocument, frozen=True, kw_only=True):
    """Where an intent or a piece of content comes from."""

    introduced_in: Annotated[str, Meta(min_length=1, max_length=80, pattern=r"\S")]
    derived_from: Annotated[tuple[ShortText, ...], Meta(max_length=16)] = ()
    supersedes: Annotated[tuple[ShortText, ...], Meta(max_length=16)] = ()


class ScopeTargets(StrictDocument, frozen=True, kw_only=True):
    """What the plan may touch. Empty targets mean that the author has not decided."""

    files: Annotated[tuple[ShortText, ...], Meta(max_length=200)] = ()
    modules: Annotated[tuple[ShortText, ...], Meta(max_length=100)] = ()
    areas: Annotated[tuple[ProjectArea, ...], Meta(max_length=8)] = ()


class IntentScope(StrictDocument, frozen=True, kw_only=True):
    """The project and the part of it that is meant."""

    project_id: Annotated[str, Meta(min_length=1, max_length=120, pattern=r"\S")]
    repo_root: Annotated[str, Meta(min_length=1, max_length=400, pattern=r"\S")]
    targets: ScopeTargets


class IntentObjective(StrictDocument, frozen=True, kw_only=True):
    """What is to be reached, how one will know, and what is left out on purpose."""

    goal: Annotated[str, Meta(min_length=1, max_length=2000, pattern=r"\S")]
    success_criteria: Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=20)]
    non_goals: Annotated[tuple[ShortText, ...], Meta(max_length=20)] = ()


class SelectedWorkflow(StrictDocument, frozen=True, kw_only=True):
    """A workflow of the registry, and which of its phases are wanted."""

    workflow_id: ContentId
    phases: Annotated[tuple[PlanPhase, ...], Meta(min_length=1, max_length=12)]
    reason: Annotated[str, Meta(max_length=400)] = ""


class SelectedAgent(StrictDocument, frozen=True, kw_only=True):
    """An agent of the registry, and what it answers for."""

    agent_id: ContentId
    role: Annotated[str, Meta(min_length=1, max_length=80, pattern=r"\S")]
    responsibilities: Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=12)]


class PlannedCommand(StrictDocument, frozen=True, kw_only=True):
    """A command of the registry that the plan would propose, and what speaks for it."""

    command_id: ContentId
    intent: ShortText
    effects: Annotated[tuple[CommandEffect, ...], Meta(min_length=1, max_length=6)]
    risk_level: RiskLevel
    evidence_refs: Annotated[tuple[EvidenceRef, ...], Meta(min_length=1, max_length=30)]


class IntentInteraction(StrictDocument, frozen=True, kw_only=True):
    """How much the planner may ask."""

    mode: ExecutionMode
    question_budget: Annotated[int, Meta(ge=0, le=50)]
    question_policy: QuestionPolicy


class IntentRisk(StrictDocument, frozen=True, kw_only=True):
    """How dangerous the author thinks it is, why, and who has to look."""

    overall: RiskLevel
    drivers: Annotated[tuple[ShortText, ...], Meta(min_length=1, max_length=20)]
    requires_review: Annotated[tuple[ReviewCategory, ...], Meta(max_length=6)]


class IntentBudgets(StrictDocument, frozen=True, kw_only=True):
    """What the plan may cost at most; money in whole dollars."""

    max_files: Annotated[int, Meta(ge=0, le=500)]
    max_commits: Annotated[int, Meta(ge=0, le=50)]
    max_tokens: Annotated[int, Meta(ge=0, le=2_000_000)]
    max_cost_usd: Annotated[int, Meta(ge=0, le=10_000)]


class LockScope(StrictDocument, frozen=True, kw_only=True):
    """What no other work should touch while the plan is carried out: nothing, what the plan names, or these paths.

    A lock on files holds both ways: the plan stays within what it locks.
    """

    mode: Literal["none", "task", "files"]
    paths: Annotated[tuple[ShortText, ...], Meta(max_length=200)] = ()


class IntentConstraints(StrictDocument, frozen=True, kw_only=True):
    """The three sentences without which nothing is planned."""

    execution: Literal["forbidden"]
    no_fabrication: Literal[True]
    registry_only: Literal[True]
    lock_scope: LockScope


class IntentAudit(StrictDocument, frozen=True, kw_only=True):
    """Who wrote it, and the checksum over everything but this field."""

    created_by: Annotated[str, Meta(min_length=1, max_length=120, pattern=r"\S")]
    source: Literal["human", "agentos", "imported"]
    checksum: HexDigest


class ExecutionIntent(StrictDocument, frozen=True, kw_only=True):
    """The whole of it."""

    id: IntentId
    type: Literal["execution_intent"]
    title: Annotated[str, Meta(min_length=5, max_length=160, pattern=r"\S")]
    description: Annotated[str, Meta(max_length=4000)]
    version: ContentVersion
    created_at: UtcMoment
    status: Literal["draft", "proposed", "approved", "rejected", "superseded"]
    lineage: ContentLineage
    scope: IntentScope
    objective: IntentObjective
    selected_workflows: Annotated[tuple[SelectedWorkflow, ...], Meta(min_length=1, max_length=18)]
    selected_agents: Annotated[tuple[SelectedAgent, ...], Meta(min_length=1, max_length=13)]
    planned_commands: Annotated[tuple[PlannedCommand, ...], Meta(max_length=80)]
    interaction: IntentInteraction
    risk: IntentRisk
    budgets: IntentBudgets
    evidence_refs: Annotated[tuple[EvidenceRef, ...], Meta(min_length=1, max_length=200)]
    constraints: IntentConstraints
    audit: IntentAudit
