"""The words that a task's documents share, and the names of its files."""

from typing import Annotated, Literal

from msgspec import Meta

Phase = Literal["planning", "plan_review", "codegen", "review", "test", "accept", "revert", "done"]
PHASES: tuple[Phase, ...] = (
    "planning",
    "plan_review",
    "codegen",
    "review",
    "test",
    "accept",
    "revert",
    "done",
)
Touch = Literal["create", "update", "delete", "create_or_update"]
Kind = Literal["test", "lint", "static"]  # of a suite
Exit = Literal["accepted", "changes_requested", "review_requested", "replan_requested", "revert_requested"]

PLAN = "planning/planning.ai.json"
FILES = "plan.files.json"
PLAN_REVIEW = "review/plan-review.json"
PATCH = "code/diff.patch"
COPIES = "code/files"
COPIES_LIST = "code/files.json"
CODE_REVIEW = "review/code-review.json"
TESTS = "test/report.json"
DECISION = "accept/decision.json"
REVERT = "revert/record.json"
STATE = "state.json"
TRANSCRIPT = "transcript.jsonl"

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]  # as a role in steersman.toml
Key = Annotated[str, Meta(pattern=r"^[A-Za-z]{1,3}-?[A-Za-z0-9_.-]{1,60}$")]  # q1, AC-2, f-0123456789
Path = Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"\S")]
Sha = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]
Tree = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")]
