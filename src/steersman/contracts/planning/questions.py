"""QuestionPack and AnswerPack v0.9.2: what the planner does not know, and the answers."""

from typing import Annotated, Literal

from msgspec import Meta, field

from steersman.contracts.planning.words import (
    EvidenceRef,
    ExecutionMode,
    OptionalContentId,
    QuestionKind,
    QuestionPolicy,
    RiskLevel,
    ShortText,
    StrictDocument,
    UtcMoment,
)

QuestionCause = Literal[
    "unmet_evidence", "requires_review", "ambiguous_scope", "missing_command", "excluded_command", "risk_above_profile",
]  # fmt: skip
QuestionId = Annotated[str, Meta(pattern=r"^q_[0-9a-f]{16}$")]


class DefaultAnswer(StrictDocument, frozen=True, kw_only=True):
    """What holds without an answer: a value is used, what was asked about is left out, or the run stops."""

    strategy: Literal["use", "exclude", "block"]
    value: Annotated[str, Meta(max_length=400)] = ""  # the suggested answer that is used
    reason: ShortText


class SuggestedAnswer(StrictDocument, frozen=True, kw_only=True):
    """An answer that would do."""

    answer: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}$")]  # the word to answer with
    meaning: ShortText
    risk_change: Literal["lower", "same", "higher"]


class QuestionImpact(StrictDocument, frozen=True, kw_only=True):
    """How much of the plan hangs on it."""

    scope: Literal["entire_plan", "single_phase", "single_action", "optimization_only"]
    description: ShortText
    affected_nodes: tuple[Annotated[str, Meta(max_length=160)], ...]


class AskedQuestion(StrictDocument, frozen=True, kw_only=True):
    """One question."""

    question_id: QuestionId
    cause: QuestionCause
    about: Annotated[str, Meta(max_length=400)]  # a field of the intent, a command, a phase
    type: QuestionKind
    blocking_level: RiskLevel
    question_text: Annotated[str, Meta(min_length=10, max_length=2000)]
    context: Annotated[str, Meta(min_length=10, max_length=4000)]
    evidence_refs: tuple[EvidenceRef, ...]
    default_strategy: DefaultAnswer
    impact: QuestionImpact
    suggested_answers: Annotated[tuple[SuggestedAnswer, ...], Meta(min_length=1, max_length=10)]
    # Where files that an answer names have to lie.
    within: Annotated[tuple[ShortText, ...], Meta(max_length=200)] = (".",)


class QuestionConstraints(StrictDocument, frozen=True, kw_only=True):
    """How much asking the policy leaves."""

    execution_mode: ExecutionMode
    question_budget: Annotated[int, Meta(ge=0)]
    question_policy: QuestionPolicy
    budget_consumed: Annotated[int, Meta(ge=0)]
    budget_remaining: Annotated[int, Meta(ge=0)]


class QuestionPack(StrictDocument, frozen=True, kw_only=True):
    """All that is asked in one go."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    pack_id: Annotated[str, Meta(pattern=r"^questions_[0-9a-f]{16}$")]
    plan_id: Annotated[str, Meta(max_length=40)]
    intent_id: Annotated[str, Meta(max_length=80)]
    round: Annotated[int, Meta(ge=1, le=10)]
    questions: Annotated[tuple[AskedQuestion, ...], Meta(min_length=1, max_length=50)]
    # Not asked: over the budget or not allowed, so that their default holds.
    defaulted: tuple[AskedQuestion, ...]
    policy_constraints: QuestionConstraints
    created_at: UtcMoment  # of the intent


class QuestionAnswer(StrictDocument, frozen=True, kw_only=True):
    """The answer to one question; `answer` is one of its suggested answers, or `text` with words."""

    question_id: QuestionId
    answer: Annotated[str, Meta(min_length=1, max_length=40)]
    text: Annotated[str, Meta(max_length=2000)] = ""
    provided_by: Literal["human", "fallback", "policy_default"] = "human"
    # The person whose pack it comes with; empty: no answer came in time, or the question was not asked.
    answered_by: Annotated[str, Meta(max_length=200)] = ""
    rationale: Annotated[str, Meta(max_length=2000)] = ""


class AnswerPack(StrictDocument, frozen=True, kw_only=True):
    """Answers to one pack."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    question_pack_id: Annotated[str, Meta(pattern=r"^questions_[0-9a-f]{16}$")]
    answers: Annotated[tuple[QuestionAnswer, ...], Meta(min_length=1, max_length=50)]
    # The question and its possible answers, for the person who fills in a template. No program reads it.
    questions: Annotated[dict[QuestionId, Annotated[str, Meta(max_length=4000)]], Meta(max_length=50)] = (
        field(default_factory=dict)
    )


class AnswerConflict(StrictDocument, frozen=True, kw_only=True):
    """An answer that a rule does not allow."""

    question_id: QuestionId
    command_id: OptionalContentId
    rule_id: OptionalContentId
    reason: ShortText


class SettledQuestions(StrictDocument, frozen=True, kw_only=True):
    """Every question that came up, and what holds now: the frozen record of asking."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    plan_id: Annotated[str, Meta(max_length=40)]
    rounds: Annotated[int, Meta(ge=0, le=10)]
    asked: tuple[QuestionId, ...]
    answers: tuple[QuestionAnswer, ...]
    conflicts: tuple[AnswerConflict, ...] = ()
