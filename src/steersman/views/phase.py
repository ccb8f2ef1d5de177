"""What a phase of a task has brought, in a few lines: the plan, or who judged and how."""

from collections.abc import Iterator

import msgspec

from steersman.contracts.task.documents import CodeReview, Plan, PlanReview
from steersman.contracts.task.words import CODE_REVIEW, PLAN, PLAN_REVIEW
from steersman.judges.text import clip, one_line
from steersman.kernel.snapshot import Snapshot, fields
from steersman.views.gates import GUTTER
from steersman.views.status import Text

LONGEST = 300  # characters of a line
LISTED = 12  # of each kind


def phase_lines(s: Snapshot, text: Text) -> list[str]:
    """The recorded document of the current phase; nothing where the gate itself says all of it."""
    documents = fields(s.context).get("documents", {})
    match s.state:
        case "planning" if documents.get(PLAN):
            told = _plan(msgspec.json.decode(text(documents[PLAN]), type=Plan))
        case "plan_review" if documents.get(PLAN_REVIEW):
            told = plan_verdict(text(documents[PLAN_REVIEW]))
        case "review" if documents.get(CODE_REVIEW):
            told = code_verdict(text(documents[CODE_REVIEW]))
        case _:
            return []
    return [f"{GUTTER}{clip(one_line(line), LONGEST)}" for line in told]


def _plan(plan: Plan) -> Iterator[str]:
    yield f"plan, round {plan.round}: {plan.title}"
    yield f"  {plan.brief}"
    yield from (f"  step: {step.title}" for step in plan.work[:LISTED])
    yield from (f"  risk: {risk.description}" for risk in plan.risks[:LISTED])
    yield from (f"  assumed: {line}" for line in plan.assumptions[:LISTED])
    yield from (f"  judged by: {c.description}" for c in plan.acceptance_criteria[:LISTED])
    yield from (f"  open question: {q}" for q in unanswered(plan)[:LISTED])


def unanswered(plan: Plan) -> list[str]:
    """What the planners have asked and nobody has answered, because nothing waits for it."""
    return [f"{q.id} {q.asked_by}: {q.text}" for q in plan.questions if not q.blocking and not q.answer]


def blocking(review: PlanReview | CodeReview) -> Iterator[str]:
    """Every finding that speaks against going on, by its id; in what is accepted they stand beside who waived them."""
    found = (*review.blocking_issues, *(review.plan_issues if isinstance(review, CodeReview) else ()))
    yield from (f"  blocking {issue.id} {issue.found_by}: {issue.text}" for issue in found)


def plan_verdict(told: str) -> Iterator[str]:
    """A review of the plan: what follows from it, every reviewer, every flaw that steersman found."""
    made = msgspec.json.decode(told, type=PlanReview)
    yield f"{PLAN_REVIEW}: {made.decision}"
    yield from (f"  {r.reviewer} ({r.provider}): {r.decision}: {r.summary}" for r in made.reviewers)
    yield from (f"  {flaw.severity} {flaw.id}: {flaw.message}" for flaw in made.flaws[:LISTED])


def code_verdict(told: str) -> Iterator[str]:
    """A review of the change, the same way."""
    made = msgspec.json.decode(told, type=CodeReview)
    yield f"{CODE_REVIEW}: {made.decision}"
    yield from (f"  {r.reviewer} ({r.provider}): {r.decision}: {r.summary}" for r in made.reviewers)
