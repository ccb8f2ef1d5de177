"""What the agents of a task answer with; a nonce says that it is the answer to this very question."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.planning.words import LongText, ShortText
from steersman.contracts.task.words import FileIntent, TaskPath

TaskReplyTexts = Annotated[tuple[LongText, ...], Meta(max_length=50)]
TaskReplyLines = Annotated[tuple[ShortText, ...], Meta(max_length=100)]


class ProposedQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to the person."""

    text: LongText
    blocking: bool


class ProposedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that will be touched."""

    path: TaskPath
    intent: FileIntent
    summary: Annotated[str, Meta(max_length=400)]


class TaskPlannerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A draft of the plan, whole; what is not known is asked."""

    nonce: str
    title: ShortText
    brief: LongText
    requirements: TaskReplyLines
    in_scope: TaskReplyLines
    out_of_scope: TaskReplyLines
    steps: TaskReplyLines
    risks: TaskReplyLines
    assumptions: TaskReplyLines
    acceptance_criteria: TaskReplyLines
    files: Annotated[tuple[ProposedFile, ...], Meta(max_length=500)]
    test_strategy: Annotated[str, Meta(max_length=4000)]
    test_cases: TaskReplyLines
    questions: Annotated[tuple[ProposedQuestion, ...], Meta(max_length=20)]


class PlanCommentReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What another planner thinks of the draft."""

    nonce: str
    ready: bool  # nothing of what is said below has to be settled first
    comment: LongText
    concerns: TaskReplyTexts
    questions: Annotated[tuple[ProposedQuestion, ...], Meta(max_length=20)]


class PlanReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict on a plan."""

    nonce: str
    decision: Literal["accept", "needs_changes", "blocked"]
    summary: LongText
    blocking_issues: TaskReplyTexts
    suggestions: TaskReplyTexts


class TaskCoderReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the coder says of its own work; the change itself is what git sees."""

    nonce: str
    status: Literal["done", "plan_unclear", "scope_mismatch"]
    summary: LongText
    missing: TaskReplyTexts  # what of the plan is unclear, or which files it lacks


class CodeReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict on a change."""

    nonce: str
    decision: Literal["approve", "needs_changes", "plan_flawed"]
    summary: LongText
    blocking_issues: TaskReplyTexts
    plan_issues: TaskReplyTexts
    suggestions: TaskReplyTexts
