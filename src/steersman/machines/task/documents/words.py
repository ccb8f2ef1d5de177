"""The words that a task's documents share, and the names of its files."""

from typing import Annotated, Literal

from msgspec import Meta

FileIntent = Literal["create", "update", "delete", "create_or_update"]
SuiteKind = Literal["test", "lint", "static"]  # of a suite
AcceptExit = Literal[
    "accepted", "changes_requested", "review_requested", "replan_requested", "revert_requested"
]

PLAN_FILE = "planning/planning.ai.json"
SCOPE_FILE = "plan.files.json"
PLAN_REVIEW_FILE = "review/plan-review.json"
PATCH_FILE = "code/diff.patch"
COPIES_DIRECTORY = "code/files"
COPIES_LIST_FILE = "code/files.json"
CODE_REVIEW_FILE = "review/code-review.json"
TEST_REPORT_FILE = "test/report.json"
DECISION_FILE = "accept/decision.json"
REVERT_FILE = "revert/record.json"

RoleName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]  # as a role in steersman.toml
DocumentKey = Annotated[str, Meta(pattern=r"^[A-Za-z]{1,3}-?[A-Za-z0-9_.-]{1,60}$")]  # q1, AC-2, f-0123456789
TaskPath = Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"\S")]
OptionalSha256 = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]
OptionalTreeId = Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")]
