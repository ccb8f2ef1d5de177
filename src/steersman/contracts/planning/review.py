"""ReviewPack (planning form 1.1.0), FailurePack, Manifest and CoordinatorRunSummary: what is handed over at the end."""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.decisions import DocumentProblem, RiskAssessment
from steersman.contracts.planning.graph import GraphLineage, PlanEstimate
from steersman.contracts.planning.intent import LockScope
from steersman.contracts.planning.words import (
    AssessedRisk,
    BoundedCount,
    ContentId,
    EvidenceRef,
    ExecutionMode,
    HexDigest,
    PlanPhase,
    ReviewCategory,
    ShortText,
    StrictDocument,
    UtcMoment,
)


class PlanSummary(StrictDocument, frozen=True, kw_only=True):
    """The plan in a few sentences."""

    objective: Annotated[str, Meta(min_length=1, max_length=2000)]
    approach: tuple[ShortText, ...]
    risks: tuple[Annotated[str, Meta(max_length=1000)], ...]
    non_goals: tuple[ShortText, ...] = ()


class BudgetEstimate(StrictDocument, frozen=True, kw_only=True):
    """A bound of the intent beside what the plan is expected to need."""

    name: Literal["max_files", "max_commits", "max_tokens", "max_cost_usd", "max_files_per_commit"]
    limit: BoundedCount
    estimate: BoundedCount
    within: bool


class ChangeImpact(StrictDocument, frozen=True, kw_only=True):
    """What would change."""

    files: tuple[Annotated[str, Meta(max_length=4096)], ...]
    modules: tuple[ShortText, ...]
    areas: tuple[Annotated[str, Meta(max_length=40)], ...]
    within: tuple[ShortText, ...]  # what is outside all of these is outside the plan, whatever else it names
    lock: LockScope
    estimated_files: PlanEstimate
    estimated_commits: PlanEstimate
    budgets: tuple[BudgetEstimate, ...]


class ReviewGate(StrictDocument, frozen=True, kw_only=True):
    """A person has to review this before the work continues."""

    gate_id: Annotated[str, Meta(max_length=160)]
    category: ReviewCategory
    phase: PlanPhase | Literal[""]
    why: ShortText
    evidence_refs: tuple[EvidenceRef, ...]


class RollbackStep(StrictDocument, frozen=True, kw_only=True):
    """How one action is undone."""

    command_id: ContentId
    how: Annotated[str, Meta(min_length=1, max_length=400)]


class PlannedAction(StrictDocument, frozen=True, kw_only=True):
    """What an executing machine may do: the contract between a frozen plan and its executor."""

    command_id: ContentId
    argv: tuple[str, ...]
    blanks: tuple[BoundedCount, ...] = ()  # positions of argv that stand for one word each, such as FILE
    phase: PlanPhase | Literal[""]


class ReviewPack(StrictDocument, frozen=True, kw_only=True):
    """Everything a reviewer needs, and the bounds that an execution has to keep."""

    schema_version: Literal["1.1.0"] = "1.1.0"
    plan_id: Annotated[str, Meta(max_length=40)]
    intent_id: Annotated[str, Meta(max_length=80)]
    execution_mode: ExecutionMode
    plan_summary: PlanSummary
    risk_assessment: RiskAssessment
    change_impact: ChangeImpact
    review_gates: tuple[ReviewGate, ...]
    rollback_guide: tuple[RollbackStep, ...]
    actions: tuple[PlannedAction, ...]
    excluded: tuple[ShortText, ...]  # commands that were left out, each with its reason
    estimated_duration: PlanEstimate
    complexity: PlanEstimate
    generated_at: UtcMoment  # of the intent


FailureType = Literal[
    "constraint_violation", "missing_registry", "rule_denied", "policy_violation", "red_line_violation",
]  # fmt: skip


class RecoverySuggestion(StrictDocument, frozen=True, kw_only=True):
    """What would help: the field or thing to change, and how."""

    change: Annotated[str, Meta(min_length=1, max_length=400)]
    how: Annotated[str, Meta(min_length=1, max_length=1000)]


class FailurePack(StrictDocument, frozen=True, kw_only=True):
    """Why there is no plan, and what would help."""

    schema_version: Literal["1.1.0"] = "1.1.0"
    plan_id: Annotated[str, Meta(max_length=40)]
    intent_id: Annotated[str, Meta(max_length=80)]
    failure_type: FailureType
    cause: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{2,59}$")]
    failed_at_state: Annotated[str, Meta(pattern=r"^[A-Z_]{4,30}$")]
    message: Annotated[str, Meta(min_length=1, max_length=2000)]
    problems: tuple[DocumentProblem, ...]
    evidence_refs: tuple[EvidenceRef, ...]
    recovery_suggestions: Annotated[tuple[RecoverySuggestion, ...], Meta(min_length=1)]
    retriable: bool  # by changing what is named; never for a red line without a person
    risk: AssessedRisk  # as far as it was assessed, else as the intent and the registry state it


class FrozenFile(StrictDocument, frozen=True, kw_only=True):
    """One file of a frozen plan."""

    # Older plans also hold a drawing as SVG.
    name: Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,60}\.(json|md|mmd|svg)$")]
    sha256: HexDigest
    bytes: BoundedCount


class PlanManifest(StrictDocument, frozen=True, kw_only=True):
    """Every frozen file with its digest, and where it all comes from."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    plan_id: Annotated[str, Meta(pattern=r"^plan_[0-9a-f]{16}$")]
    intent_id: Annotated[str, Meta(max_length=80)]
    files: Annotated[tuple[FrozenFile, ...], Meta(min_length=1)]
    lineage: GraphLineage


class CoordinatorRunSummary(StrictDocument, frozen=True, kw_only=True):
    """A plan in one look."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    run_id: Annotated[str, Meta(max_length=40)]
    plan_id: Annotated[str, Meta(max_length=40)]
    intent_id: Annotated[str, Meta(max_length=80)]
    final_state: Literal["DONE", "BLOCKED", "ABORTED", "canceled"]
    nodes: BoundedCount
    actions: BoundedCount
    excluded: BoundedCount
    questions_asked: BoundedCount
    questions_defaulted: BoundedCount
    overall_risk: AssessedRisk
    failure: Annotated[str, Meta(max_length=2000)] = ""
