"""The documents of a task, one for each file, all with a version; none of them holds a clock.

Where the system behind the specification had two shapes of a file, one was chosen: `docs/reference/task.md` says which
and why. **Invariant:** unknown fields are refused, so that a file that was changed by hand is read whole or not at all.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from steersman.contracts.machine_names import TaskPhase
from steersman.contracts.planning.words import LongText, ShortText, StrictDocument
from steersman.machines.task.documents.words import (
    AcceptExit,
    DocumentKey,
    FileIntent,
    OptionalSha256,
    OptionalTreeId,
    RoleName,
    SuiteKind,
    TaskPath,
)

DocumentLines = Annotated[tuple[ShortText, ...], Meta(max_length=200)]
DocumentTexts = Annotated[tuple[LongText, ...], Meta(max_length=200)]


class TaskQuestion(StrictDocument, frozen=True, kw_only=True):
    """Something that a planner does not know; one that blocks has to be answered before anything is built."""

    id: DocumentKey
    text: LongText
    blocking: bool
    asked_by: RoleName = "planner"
    answer: Annotated[str, Meta(max_length=4000)] = ""


class TaskScope(StrictDocument, frozen=True, kw_only=True):
    """What belongs to the task and what does not."""

    in_scope: DocumentLines = ()
    out_of_scope: DocumentLines = ()


class WorkStep(StrictDocument, frozen=True, kw_only=True):
    """One piece of work."""

    id: DocumentKey
    title: ShortText
    description: Annotated[str, Meta(max_length=4000)] = ""
    depends: Annotated[tuple[DocumentKey, ...], Meta(max_length=50)] = ()


class TaskRisk(StrictDocument, frozen=True, kw_only=True):
    """What could go wrong, and what is done about it."""

    description: ShortText
    mitigation: Annotated[str, Meta(max_length=400)] = ""


class AcceptanceCriterion(StrictDocument, frozen=True, kw_only=True):
    """By what the task is judged."""

    id: DocumentKey
    description: ShortText
    must_have: bool = True


class PlannedFile(StrictDocument, frozen=True, kw_only=True):
    """A file that may be touched, and how; a name that ends in a slash is a folder with everything in it."""

    path: TaskPath
    intent: FileIntent
    summary: Annotated[str, Meta(max_length=400)] = ""


class TestPlan(StrictDocument, frozen=True, kw_only=True):
    """How it will be shown that it works."""

    strategy: Annotated[str, Meta(max_length=4000)] = ""
    cases: DocumentLines = ()


class TaskPlan(StrictDocument, frozen=True, kw_only=True):
    """`planning/planning.ai.json`."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    round: Annotated[int, Meta(ge=1, le=1000)]
    title: ShortText
    brief: LongText
    requirements: DocumentLines
    scope: TaskScope = TaskScope()
    work: Annotated[tuple[WorkStep, ...], Meta(max_length=100)] = ()
    risks: Annotated[tuple[TaskRisk, ...], Meta(max_length=50)] = ()
    assumptions: DocumentLines = ()
    acceptance_criteria: Annotated[tuple[AcceptanceCriterion, ...], Meta(max_length=100)]
    file_plan: Annotated[tuple[PlannedFile, ...], Meta(max_length=500)]
    test_plan: TestPlan = TestPlan()
    questions: Annotated[tuple[TaskQuestion, ...], Meta(max_length=100)] = ()
    notes: DocumentLines = ()


class PlanFiles(StrictDocument, frozen=True, kw_only=True):
    """`plan.files.json`: the scope that a change is held to; `inferred` says that no person wrote it."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    inferred: bool
    files: Annotated[tuple[PlannedFile, ...], Meta(min_length=1, max_length=500)]


class ReviewIssue(StrictDocument, frozen=True, kw_only=True):
    """One thing that has to change; the same thing has the same id in every round."""

    id: DocumentKey
    text: LongText
    found_by: RoleName


class PlanOpinion(StrictDocument, frozen=True, kw_only=True):
    """What one reviewer says of a plan."""

    reviewer: RoleName
    decision: Literal["accept", "needs_changes", "blocked"]
    summary: LongText
    blocking_issues: Annotated[tuple[ReviewIssue, ...], Meta(max_length=100)] = ()
    suggestions: DocumentTexts = ()
    provider: Annotated[str, Meta(max_length=200)] = ""


class PlanFlaw(StrictDocument, frozen=True, kw_only=True):
    """What steersman itself finds wrong with a plan."""

    id: Literal[
        "REQ_EMPTY",
        "ACCEPTANCE_EMPTY",
        "FILES_EMPTY",
        "FILES_UNFIT",
        "TEST_PLAN_EMPTY",
        "QUESTION_OPEN",
        "DEPENDS_UNKNOWN",
        "DEPENDS_CYCLE",
        "OUTSIDE_PLAN",
    ]
    severity: Literal["error", "warning"]
    message: LongText


class PlanReview(StrictDocument, frozen=True, kw_only=True):
    """`review/plan-review.json`: every opinion, and what follows from all of them."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    round: Annotated[int, Meta(ge=1, le=1000)]
    plan_digest: OptionalSha256
    ok: bool
    blocked: bool
    decision: Literal["accepted", "needs_changes", "blocked"]
    reviewers: Annotated[tuple[PlanOpinion, ...], Meta(max_length=20)]
    flaws: Annotated[tuple[PlanFlaw, ...], Meta(max_length=100)] = ()
    blocking_issues: Annotated[tuple[ReviewIssue, ...], Meta(max_length=500)] = ()


class CodeOpinion(StrictDocument, frozen=True, kw_only=True):
    """What one reviewer says of a change."""

    reviewer: RoleName
    decision: Literal["approve", "needs_changes", "plan_flawed"]
    summary: LongText
    blocking_issues: Annotated[tuple[ReviewIssue, ...], Meta(max_length=100)] = ()
    plan_issues: Annotated[tuple[ReviewIssue, ...], Meta(max_length=100)] = ()
    suggestions: DocumentTexts = ()
    provider: Annotated[str, Meta(max_length=200)] = ""


class CodeReview(StrictDocument, frozen=True, kw_only=True):
    """`review/code-review.json`: every opinion on exactly one tree."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    round: Annotated[int, Meta(ge=1, le=1000)]
    tree: OptionalTreeId
    patch_digest: OptionalSha256
    ok: bool
    decision: Literal["passes", "needs_changes", "plan_flawed"]
    reviewers: Annotated[tuple[CodeOpinion, ...], Meta(max_length=20)]
    blocking_issues: Annotated[tuple[ReviewIssue, ...], Meta(max_length=500)] = ()
    plan_issues: Annotated[tuple[ReviewIssue, ...], Meta(max_length=500)] = ()


class FileCopy(StrictDocument, frozen=True, kw_only=True):
    """A changed file: its copy below `code/files/`, or the tombstone of one that was deleted."""

    path: TaskPath
    change: Literal["created", "updated", "deleted"]
    digest: OptionalSha256 = ""  # of the copy; nothing for one that was deleted
    kept: bool = True  # False: its name or content cannot be written as a plain file; the tree has it
    why: Annotated[str, Meta(max_length=400)] = ""


class ChangeCopies(StrictDocument, frozen=True, kw_only=True):
    """`code/files.json`: everything a change touches, held against the scope."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    base: OptionalTreeId
    tree: OptionalTreeId
    commit: OptionalTreeId
    patch_digest: OptionalSha256
    files: Annotated[tuple[FileCopy, ...], Meta(max_length=20_000)]
    # Changed, and not in plan.files.json.
    outside: Annotated[tuple[TaskPath, ...], Meta(max_length=20_000)] = ()
    held_to: Annotated[str, Meta(max_length=40)] = ""  # the frozen plan that bounds the task
    # That the coder wanted, and that it has not.
    commands: Annotated[tuple[ShortText, ...], Meta(max_length=100)] = ()


class SuiteResult(StrictDocument, frozen=True, kw_only=True):
    """One command that steersman ran itself."""

    name: ShortText
    kind: SuiteKind
    argv: Annotated[tuple[Annotated[str, Meta(max_length=4000)], ...], Meta(max_length=64)]
    verdict: Literal["passed", "failed", "blocked", "timeout", "no_tests"]
    exit_code: int | None = None
    tests: int | None = None
    known: bool = False  # failed on the base tree too, and a person has acknowledged it by name
    reason: Annotated[str, Meta(max_length=4000)] = ""


class TestReport(StrictDocument, frozen=True, kw_only=True):
    """`test/report.json`: every suite on exactly one tree."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    round: Annotated[int, Meta(ge=1, le=1000)]
    tree: OptionalTreeId
    overall_pass: bool
    summary: dict[
        Literal["passed", "failed", "blocked", "timeout", "no_tests", "known", "flaky", "tests"], int
    ]
    suites: Annotated[tuple[SuiteResult, ...], Meta(max_length=200)]


class WaivedGuard(StrictDocument, frozen=True, kw_only=True):
    """A guard that a named person waived."""

    source: TaskPhase
    to: TaskPhase
    person: ShortText
    reason: LongText


class AcceptedTestEvidence(StrictDocument, frozen=True, kw_only=True):
    """Results of the tests that a named person has accepted, for what the change does to the tests."""

    tree: OptionalTreeId
    person: ShortText
    reason: Annotated[str, Meta(max_length=4000)] = ""


class AcceptDecision(StrictDocument, frozen=True, kw_only=True):
    """`accept/decision.json`: one of the five exits of accept, who took it, why, and of exactly what."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    decision: AcceptExit
    decided_by: ShortText
    reason: Annotated[str, Meta(max_length=4000)] = ""
    tree: OptionalTreeId
    artifacts: dict[str, OptionalSha256]
    overrides: Annotated[tuple[WaivedGuard, ...], Meta(max_length=200)] = ()
    evidence: Annotated[tuple[AcceptedTestEvidence, ...], Meta(max_length=1)] = ()


class RevertRecord(StrictDocument, frozen=True, kw_only=True):
    """`revert/record.json`: what was reverted, and by which commit; or why the revert failed: later commits changed the
    same lines, the branch never had it, or something stood in the way."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: ShortText
    status: Literal["reverted", "nothing_delivered", "conflicted", "not_merged", "blocked"]
    reason: Annotated[str, Meta(max_length=4000)] = ""
    reverted_by: ShortText
    branch: Annotated[str, Meta(max_length=400)] = ""
    delivered: OptionalTreeId = ""
    commit: OptionalTreeId = ""
    detail: Annotated[str, Meta(max_length=4000)] = ""


class PhaseProgress(StrictDocument, frozen=True, kw_only=True):
    """How far a phase is; one that has rounds says in which it is."""

    status: str | None = None
    round: int | UnsetType = UNSET


class TaskState(StrictDocument, frozen=True, kw_only=True):
    """`state.json`: a projection of the tape, and it says so."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    note: Literal["This file is made from the tape. What is changed in it by hand is told and undone."] = (
        "This file is made from the tape. What is changed in it by hand is told and undone."
    )
    task_id: ShortText
    title: str
    phase: TaskPhase
    step: str
    status: str
    outcome: str = ""
    entries: int
    actors: dict[
        Literal["planning", "plan_review", "codegen", "review", "test", "accept", "revert"], PhaseProgress
    ]
    next: tuple[str, ...] = ()  # what may come now
    artifacts: dict[str, str]
    overrides: tuple[WaivedGuard, ...] = ()
    digest: str = ""  # of everything above, under the run's own key


TASK_DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "planning/planning.ai.json": TaskPlan,
    "plan.files.json": PlanFiles,
    "review/plan-review.json": PlanReview,
    "code/files.json": ChangeCopies,
    "review/code-review.json": CodeReview,
    "test/report.json": TestReport,
    "accept/decision.json": AcceptDecision,
    "revert/record.json": RevertRecord,
    "state.json": TaskState,
}


def task_document_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one of these files."""
    header = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name}
    return {**header, **msgspec.json.schema(TASK_DOCUMENTS[name])}
