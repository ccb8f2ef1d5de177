"""QuestionPack and AnswerPack v0.9.2: what the planner does not know, and what somebody says to it."""

from typing import Annotated, Literal

from msgspec import Meta, field

from steersman.contracts.planning.words import (
    Asking,
    Document,
    Line,
    MaybeId,
    Mode,
    Moment,
    Question,
    Ref,
    Risk,
)

Cause = Literal[
    "unmet_evidence", "requires_review", "ambiguous_scope", "missing_command", "excluded_command", "risk_above_profile",
]  # fmt: skip
QuestionId = Annotated[str, Meta(pattern=r"^q_[0-9a-f]{16}$")]


class Default(Document, frozen=True, kw_only=True):
    """What holds when nobody answers: a value is used, what was asked about is left out, or the run stops."""

    strategy: Literal["use", "exclude", "block"]
    value: Annotated[str, Meta(max_length=400)] = ""  # the suggested answer that is used
    reason: Line


class Suggestion(Document, frozen=True, kw_only=True):
    """An answer that would do."""

    answer: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}$")]  # the word to answer with
    meaning: Line
    risk_change: Literal["lower", "same", "higher"]


class Impact(Document, frozen=True, kw_only=True):
    """How much of the plan hangs on it."""

    scope: Literal["entire_plan", "single_phase", "single_action", "optimization_only"]
    description: Line
    affected_nodes: tuple[Annotated[str, Meta(max_length=160)], ...]


class AskedQuestion(Document, frozen=True, kw_only=True):
    """One question."""

    question_id: QuestionId
    cause: Cause
    about: Annotated[str, Meta(max_length=400)]  # a field of the intent, a command, a phase
    type: Question
    blocking_level: Risk
    question_text: Annotated[str, Meta(min_length=10, max_length=2000)]
    context: Annotated[str, Meta(min_length=10, max_length=4000)]
    evidence_refs: tuple[Ref, ...]
    default_strategy: Default
    impact: Impact
    suggested_answers: Annotated[tuple[Suggestion, ...], Meta(min_length=1, max_length=10)]
    within: Annotated[tuple[Line, ...], Meta(max_length=200)] = (
        ".",
    )  # where files that an answer names have to lie


class PolicyConstraintsUsed(Document, frozen=True, kw_only=True):
    """How much asking the policy leaves."""

    execution_mode: Mode
    question_budget: Annotated[int, Meta(ge=0)]
    question_policy: Asking
    budget_consumed: Annotated[int, Meta(ge=0)]
    budget_remaining: Annotated[int, Meta(ge=0)]


class QuestionPack(Document, frozen=True, kw_only=True):
    """All that is asked in one go."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    pack_id: Annotated[str, Meta(pattern=r"^questions_[0-9a-f]{16}$")]
    plan_id: Annotated[str, Meta(max_length=40)]
    intent_id: Annotated[str, Meta(max_length=80)]
    round: Annotated[int, Meta(ge=1, le=10)]
    questions: Annotated[tuple[AskedQuestion, ...], Meta(min_length=1, max_length=50)]
    defaulted: tuple[
        AskedQuestion, ...
    ]  # not asked: over the budget or not allowed, so that their default holds
    policy_constraints: PolicyConstraintsUsed
    created_at: Moment  # of the intent


class Answer(Document, frozen=True, kw_only=True):
    """What somebody says to one question; `answer` is one of its suggested answers, or `text` with words."""

    question_id: QuestionId
    answer: Annotated[str, Meta(min_length=1, max_length=40)]
    text: Annotated[str, Meta(max_length=2000)] = ""
    provided_by: Literal["human", "fallback", "policy_default"] = "human"
    answered_by: Annotated[str, Meta(max_length=200)] = (
        ""  # the person whose pack it comes with; empty: nobody answered in time, or it was not asked
    )
    rationale: Annotated[str, Meta(max_length=2000)] = ""


class AnswerPack(Document, frozen=True, kw_only=True):
    """Answers to one pack."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    question_pack_id: Annotated[str, Meta(pattern=r"^questions_[0-9a-f]{16}$")]
    answers: Annotated[tuple[Answer, ...], Meta(min_length=1, max_length=50)]
    # What is asked and what may be answered, for whoever fills a template in; nobody else reads it.
    questions: Annotated[dict[QuestionId, Annotated[str, Meta(max_length=4000)]], Meta(max_length=50)] = (
        field(default_factory=dict)
    )


class Conflict(Document, frozen=True, kw_only=True):
    """An answer that a rule does not allow."""

    question_id: QuestionId
    command_id: MaybeId
    rule_id: MaybeId
    reason: Line


class Settled(Document, frozen=True, kw_only=True):
    """Every question that came up, and what holds now: the frozen record of asking."""

    schema_version: Literal["0.9.2"] = "0.9.2"
    plan_id: Annotated[str, Meta(max_length=40)]
    rounds: Annotated[int, Meta(ge=0, le=10)]
    asked: tuple[QuestionId, ...]
    answers: tuple[Answer, ...]
    conflicts: tuple[Conflict, ...] = ()
