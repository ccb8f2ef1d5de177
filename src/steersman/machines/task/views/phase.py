"""What a phase of a task has brought, in a few lines: the plan, or who judged and how."""

from collections.abc import Iterator

import msgspec

from steersman.judges.text import clip_text, printable_line
from steersman.kernel.snapshot import Snapshot, context_fields
from steersman.machines.task.documents.schemas import CodeReview, PlanReview, TaskPlan
from steersman.machines.task.documents.words import CODE_REVIEW_FILE, PLAN_FILE, PLAN_REVIEW_FILE
from steersman.views.gates import OUTSIDE_TEXT_GUTTER
from steersman.views.run_summary import PayloadReader

MAX_PHASE_LINE_LENGTH = 300  # characters of a line
MAX_PHASE_ITEMS = 12  # of each kind


def phase_lines(snapshot: Snapshot, text: PayloadReader) -> list[str]:
    """The recorded document of the current phase; nothing where the gate itself says all of it."""
    documents = context_fields(snapshot.context).get("documents", {})
    match snapshot.state:
        case "planning" if documents.get(PLAN_FILE):
            lines = _plan_document_lines(msgspec.json.decode(text(documents[PLAN_FILE]), type=TaskPlan))
        case "plan_review" if documents.get(PLAN_REVIEW_FILE):
            lines = plan_review_lines(text(documents[PLAN_REVIEW_FILE]))
        case "review" if documents.get(CODE_REVIEW_FILE):
            lines = code_review_lines(text(documents[CODE_REVIEW_FILE]))
        case _:
            return []
    return [
        f"{OUTSIDE_TEXT_GUTTER}{clip_text(printable_line(line), MAX_PHASE_LINE_LENGTH)}" for line in lines
    ]


def _plan_document_lines(plan: TaskPlan) -> Iterator[str]:
    yield f"plan, round {plan.round}: {plan.title}"
    yield f"  {plan.brief}"
    yield from (f"  step: {step.title}" for step in plan.work[:MAX_PHASE_ITEMS])
    yield from (f"  risk: {risk.description}" for risk in plan.risks[:MAX_PHASE_ITEMS])
    yield from (f"  assumed: {line}" for line in plan.assumptions[:MAX_PHASE_ITEMS])
    yield from (f"  judged by: {c.description}" for c in plan.acceptance_criteria[:MAX_PHASE_ITEMS])
    yield from (f"  open question: {q}" for q in open_plan_questions(plan)[:MAX_PHASE_ITEMS])


def open_plan_questions(plan: TaskPlan) -> list[str]:
    """The questions of the planners without an answer, because nothing waits for one."""
    return [f"{q.id} {q.asked_by}: {q.text}" for q in plan.questions if not q.blocking and not q.answer]


def blocking_issue_lines(review: PlanReview | CodeReview) -> Iterator[str]:
    """Every finding that speaks against going on, by its id; in what is accepted they stand beside who waived them."""
    issues = (*review.blocking_issues, *(review.plan_issues if isinstance(review, CodeReview) else ()))
    yield from (f"  blocking {issue.id} {issue.found_by}: {issue.text}" for issue in issues)


def plan_review_lines(review_json: str) -> Iterator[str]:
    """A review of the plan: what follows from it, every reviewer, every flaw that steersman found."""
    review = msgspec.json.decode(review_json, type=PlanReview)
    yield f"{PLAN_REVIEW_FILE}: {review.decision}"
    yield from (f"  {r.reviewer} ({r.provider}): {r.decision}: {r.summary}" for r in review.reviewers)
    yield from (f"  {flaw.severity} {flaw.id}: {flaw.message}" for flaw in review.flaws[:MAX_PHASE_ITEMS])


def code_review_lines(review_json: str) -> Iterator[str]:
    """A review of the change, the same way."""
    review = msgspec.json.decode(review_json, type=CodeReview)
    yield f"{CODE_REVIEW_FILE}: {review.decision}"
    yield from (f"  {r.reviewer} ({r.provider}): {r.decision}: {r.summary}" for r in review.reviewers)
