"""ExecutionPolicy 1.1.0: what a team lets a planner do. It can only tighten what an intent asks for."""

from typing import Annotated, Literal

from msgspec import Meta

from steersman.contracts.planning.words import (
    ContentId,
    ExecutionMode,
    ModelPlacement,
    QuestionKind,
    RiskLevel,
    RiskProfile,
    ShortText,
    StrictDocument,
)


class PolicyConstraints(StrictDocument, frozen=True, kw_only=True):
    """Bounds on what may be proposed."""

    max_files_per_commit: Annotated[int, Meta(ge=1, le=500)] = 50
    # Effects or command ids.
    forbidden_operations: Annotated[tuple[ContentId, ...], Meta(max_length=100)] = ()
    allow_destructive: bool = False
    allow_bulk_changes: bool = False


class QuestionRules(StrictDocument, frozen=True, kw_only=True):
    """Which questions may be asked at all, and what each must bring."""

    allowed_types: Annotated[tuple[QuestionKind, ...], Meta(max_length=4)] = (
        "blocker", "clarification", "optimization", "risk_mitigation",
    )  # fmt: skip
    require_evidence: bool = True
    min_evidence_count: Annotated[int, Meta(ge=1, le=30)] = 1


class ModelRules(StrictDocument, frozen=True, kw_only=True):
    """Where models may run; the planner only advises, and advice that the policy forbids ends the run."""

    placements: Annotated[tuple[ModelPlacement, ...], Meta(min_length=1, max_length=2)] = ("cloud", "local")
    # For data and security.
    sensitive: Annotated[tuple[ModelPlacement, ...], Meta(max_length=2)] = ("cloud", "local")
    allowed: Annotated[tuple[ShortText, ...], Meta(max_length=100)] = ()  # model names; none: all


class ExecutionPolicy(StrictDocument, frozen=True, kw_only=True):
    """The whole of it."""

    schema_version: Literal["1.1.0"] = "1.1.0"
    policy_id: ContentId
    mode: ExecutionMode
    question_budget: Annotated[int, Meta(ge=0, le=999)]
    risk_profile: RiskProfile = "safe"
    auto_fallback: bool = True  # a question without an answer may take its default
    require_verification: bool = True
    max_retries: Annotated[int, Meta(ge=0, le=10)] = 0  # of a look at project or memories that failed
    timeout_seconds: Annotated[int, Meta(ge=1, le=31_536_000)] = 604_800  # for answers
    highest_risk: RiskLevel = "critical"  # of a command that may be planned
    constraints: PolicyConstraints = PolicyConstraints()
    question_rules: QuestionRules = QuestionRules()
    models: ModelRules = ModelRules()


# The names that `--policy` knows beside files.
POLICY_PRESETS: dict[str, ExecutionPolicy] = {
    "interactive": ExecutionPolicy(policy_id="policy_interactive", mode="interactive", question_budget=999),
    "semi_auto": ExecutionPolicy(policy_id="policy_semi_auto", mode="semi_auto", question_budget=3),
    "full_auto": ExecutionPolicy(policy_id="policy_full_auto", mode="full_auto", question_budget=0),
}
