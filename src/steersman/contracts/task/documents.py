"""The documents of a task, one for each file, all with a version; none of them holds a clock.

Where the system behind the specification had two shapes of a file, one was chosen: `docs/reference/task.md` says which
and why. **Invariant:** unknown fields are refused, so that a file that was changed by hand is read whole or not at all.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from steersman.contracts.planning.words import Document, Line, Text
from steersman.contracts.task.words import Exit, Key, Kind, Name, Path, Phase, Sha, Touch, Tree

Lines = Annotated[tuple[Line, ...], Meta(max_length=200)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=200)]


class Question(Document, frozen=True, kw_only=True):
    """Something that a planner does not know; one that blocks has to be answered before anything is built."""

    id: Key
    text: Text
    blocking: bool
    asked_by: Name = "planner"
    answer: Annotated[str, Meta(max_length=4000)] = ""


class Scope(Document, frozen=True, kw_only=True):
    """What belongs to the task and what does not."""

    in_scope: Lines = ()
    out_of_scope: Lines = ()


class Step(Document, frozen=True, kw_only=True):
    """One piece of work."""

    id: Key
    title: Line
    description: Annotated[str, Meta(max_length=4000)] = ""
    depends: Annotated[tuple[Key, ...], Meta(max_length=50)] = ()


class Danger(Document, frozen=True, kw_only=True):
    """What could go wrong, and what is done about it."""

    description: Line
    mitigation: Annotated[str, Meta(max_length=400)] = ""


class Criterion(Document, frozen=True, kw_only=True):
    """By what the task is judged."""

    id: Key
    description: Line
    must_have: bool = True


class PlannedFile(Document, frozen=True, kw_only=True):
    """A file that may be touched, and how; a name that ends in a slash is a folder with everything in it."""

    path: Path
    intent: Touch
    summary: Annotated[str, Meta(max_length=400)] = ""


class TestPlan(Document, frozen=True, kw_only=True):
    """How it will be shown that it works."""

    strategy: Annotated[str, Meta(max_length=4000)] = ""
    cases: Lines = ()


class Plan(Document, frozen=True, kw_only=True):
    """`planning/planning.ai.json`."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    round: Annotated[int, Meta(ge=1, le=1000)]
    title: Line
    brief: Text
    requirements: Lines
    scope: Scope = Scope()
    work: Annotated[tuple[Step, ...], Meta(max_length=100)] = ()
    risks: Annotated[tuple[Danger, ...], Meta(max_length=50)] = ()
    assumptions: Lines = ()
    acceptance_criteria: Annotated[tuple[Criterion, ...], Meta(max_length=100)]
    file_plan: Annotated[tuple[PlannedFile, ...], Meta(max_length=500)]
    test_plan: TestPlan = TestPlan()
    questions: Annotated[tuple[Question, ...], Meta(max_length=100)] = ()
    notes: Lines = ()


class PlanFiles(Document, frozen=True, kw_only=True):
    """`plan.files.json`: the scope that a change is held to; `inferred` says that nobody wrote it by hand."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    inferred: bool
    files: Annotated[tuple[PlannedFile, ...], Meta(min_length=1, max_length=500)]


class Issue(Document, frozen=True, kw_only=True):
    """One thing that has to change; the same thing has the same id in every round."""

    id: Key
    text: Text
    found_by: Name


class PlanOpinion(Document, frozen=True, kw_only=True):
    """What one reviewer says of a plan."""

    reviewer: Name
    decision: Literal["accept", "needs_changes", "blocked"]
    summary: Text
    blocking_issues: Annotated[tuple[Issue, ...], Meta(max_length=100)] = ()
    suggestions: Texts = ()
    provider: Annotated[str, Meta(max_length=200)] = ""


class Flaw(Document, frozen=True, kw_only=True):
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
    message: Text


class PlanReview(Document, frozen=True, kw_only=True):
    """`review/plan-review.json`: every opinion, and what follows from all of them."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    round: Annotated[int, Meta(ge=1, le=1000)]
    plan_digest: Sha
    ok: bool
    blocked: bool
    decision: Literal["accepted", "needs_changes", "blocked"]
    reviewers: Annotated[tuple[PlanOpinion, ...], Meta(max_length=20)]
    flaws: Annotated[tuple[Flaw, ...], Meta(max_length=100)] = ()
    blocking_issues: Annotated[tuple[Issue, ...], Meta(max_length=500)] = ()


class CodeOpinion(Document, frozen=True, kw_only=True):
    """What one reviewer says of a change."""

    reviewer: Name
    decision: Literal["approve", "needs_changes", "plan_flawed"]
    summary: Text
    blocking_issues: Annotated[tuple[Issue, ...], Meta(max_length=100)] = ()
    plan_issues: Annotated[tuple[Issue, ...], Meta(max_length=100)] = ()
    suggestions: Texts = ()
    provider: Annotated[str, Meta(max_length=200)] = ""


class CodeReview(Document, frozen=True, kw_only=True):
    """`review/code-review.json`: every opinion on exactly one tree."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    round: Annotated[int, Meta(ge=1, le=1000)]
    tree: Tree
    patch_digest: Sha
    ok: bool
    decision: Literal["passes", "needs_changes", "plan_flawed"]
    reviewers: Annotated[tuple[CodeOpinion, ...], Meta(max_length=20)]
    blocking_issues: Annotated[tuple[Issue, ...], Meta(max_length=500)] = ()
    plan_issues: Annotated[tuple[Issue, ...], Meta(max_length=500)] = ()


class Copy(Document, frozen=True, kw_only=True):
    """A changed file: its copy below `code/files/`, or the tombstone of one that was deleted."""

    path: Path
    change: Literal["created", "updated", "deleted"]
    digest: Sha = ""  # of the copy; nothing for one that was deleted
    kept: bool = True  # False: its name or content cannot be laid down as a plain file; the tree has it
    why: Annotated[str, Meta(max_length=400)] = ""


class Copies(Document, frozen=True, kw_only=True):
    """`code/files.json`: everything a change touches, held against the scope."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    base: Tree
    tree: Tree
    commit: Tree
    patch_digest: Sha
    files: Annotated[tuple[Copy, ...], Meta(max_length=20_000)]
    outside: Annotated[tuple[Path, ...], Meta(max_length=20_000)] = ()  # changed, and not in plan.files.json
    held_to: Annotated[str, Meta(max_length=40)] = ""  # the frozen plan that bounds the task
    commands: Annotated[
        tuple[Line, ...], Meta(max_length=100)
    ] = ()  # that the coder wanted, and that it has not


class Suite(Document, frozen=True, kw_only=True):
    """One command that steersman ran itself."""

    name: Line
    kind: Kind
    argv: Annotated[tuple[Annotated[str, Meta(max_length=4000)], ...], Meta(max_length=64)]
    verdict: Literal["passed", "failed", "blocked", "timeout", "no_tests"]
    exit_code: int | None = None
    tests: int | None = None
    known: bool = False  # failed on the base tree too, and a person has acknowledged it by name
    reason: Annotated[str, Meta(max_length=4000)] = ""


class TestReport(Document, frozen=True, kw_only=True):
    """`test/report.json`: every suite on exactly one tree."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    round: Annotated[int, Meta(ge=1, le=1000)]
    tree: Tree
    overall_pass: bool
    summary: dict[
        Literal["passed", "failed", "blocked", "timeout", "no_tests", "known", "flaky", "tests"], int
    ]
    suites: Annotated[tuple[Suite, ...], Meta(max_length=200)]


class Waived(Document, frozen=True, kw_only=True):
    """A guard that a named person waived."""

    source: Phase
    to: Phase
    person: Line
    reason: Text


class Judged(Document, frozen=True, kw_only=True):
    """Results of the tests that a named person has accepted, for what the change does to the tests."""

    tree: Tree
    person: Line
    reason: Annotated[str, Meta(max_length=4000)] = ""


class Handed(Document, frozen=True, kw_only=True):
    """Where the change went."""

    form: Name
    ref: Line
    commit: Tree


class Decision(Document, frozen=True, kw_only=True):
    """`accept/decision.json`: one of the five exits of accept, who took it, why, and of exactly what."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    decision: Exit
    decided_by: Line
    reason: Annotated[str, Meta(max_length=4000)] = ""
    tree: Tree
    artifacts: dict[str, Sha]
    overrides: Annotated[tuple[Waived, ...], Meta(max_length=200)] = ()
    evidence: Annotated[tuple[Judged, ...], Meta(max_length=1)] = ()


class RevertRecord(Document, frozen=True, kw_only=True):
    """`revert/record.json`: what was taken back, and by which commit; or why it could not be: later commits changed the
    same lines, the branch never had it, or something stood in the way."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    task_id: Line
    status: Literal["reverted", "nothing_delivered", "conflicted", "not_merged", "blocked"]
    reason: Annotated[str, Meta(max_length=4000)] = ""
    reverted_by: Line
    branch: Annotated[str, Meta(max_length=400)] = ""
    delivered: Tree = ""
    commit: Tree = ""
    detail: Annotated[str, Meta(max_length=4000)] = ""


class Actor(Document, frozen=True, kw_only=True):
    """How far a phase is; one that has rounds says in which it is."""

    status: str | None = None
    round: int | UnsetType = UNSET


class TaskState(Document, frozen=True, kw_only=True):
    """`state.json`: a projection of the tape, and it says so."""

    schema_version: Literal["1.0.0"] = "1.0.0"
    note: Literal["This file is made from the tape. What is changed in it by hand is told and undone."] = (
        "This file is made from the tape. What is changed in it by hand is told and undone."
    )
    task_id: Line
    title: str
    phase: Phase
    step: str
    status: str
    outcome: str = ""
    entries: int
    actors: dict[Literal["planning", "plan_review", "codegen", "review", "test", "accept", "revert"], Actor]
    next: tuple[str, ...] = ()  # what may come now
    artifacts: dict[str, str]
    overrides: tuple[Waived, ...] = ()
    digest: str = ""  # of everything above, under the run's own key


DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "planning/planning.ai.json": Plan,
    "plan.files.json": PlanFiles,
    "review/plan-review.json": PlanReview,
    "code/files.json": Copies,
    "review/code-review.json": CodeReview,
    "test/report.json": TestReport,
    "accept/decision.json": Decision,
    "revert/record.json": RevertRecord,
    "state.json": TaskState,
}


def task_schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one of these files."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name}
    return {**head, **msgspec.json.schema(DOCUMENTS[name])}
