"""What the agents of a task answer with; a nonce says that it is the answer to this very question."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.planning.words import Line, Text
from steersman.contracts.task.words import Path, Touch

Texts = Annotated[tuple[Text, ...], Meta(max_length=50)]
Lines = Annotated[tuple[Line, ...], Meta(max_length=100)]


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question to the person."""

    text: Text
    blocking: bool


class File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that will be touched."""

    path: Path
    intent: Touch
    summary: Annotated[str, Meta(max_length=400)]


class TaskPlannerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A draft of the plan, whole; what is not known is asked."""

    nonce: str
    title: Line
    brief: Text
    requirements: Lines
    in_scope: Lines
    out_of_scope: Lines
    steps: Lines
    risks: Lines
    assumptions: Lines
    acceptance_criteria: Lines
    files: Annotated[tuple[File, ...], Meta(max_length=500)]
    test_strategy: Annotated[str, Meta(max_length=4000)]
    test_cases: Lines
    questions: Annotated[tuple[Asked, ...], Meta(max_length=20)]


class PlanCommentReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What another planner thinks of the draft."""

    nonce: str
    ready: bool  # nothing of what is said below has to be settled first
    comment: Text
    concerns: Texts
    questions: Annotated[tuple[Asked, ...], Meta(max_length=20)]


class PlanReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict on a plan."""

    nonce: str
    decision: Literal["accept", "needs_changes", "blocked"]
    summary: Text
    blocking_issues: Texts
    suggestions: Texts


class TaskCoderReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the coder says of its own work; the change itself is what git sees."""

    nonce: str
    status: Literal["done", "plan_unclear", "scope_mismatch"]
    summary: Text
    missing: Texts  # what of the plan is unclear, or which files it lacks


class CodeReviewerReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict on a change."""

    nonce: str
    decision: Literal["approve", "needs_changes", "plan_flawed"]
    summary: Text
    blocking_issues: Texts
    plan_issues: Texts
    suggestions: Texts
