"""What became of a planning run: the plan in a few lines, or why there is none and what would help.

**Invariant:** a function of what the run's tape names; a failure is shown of a run that has failed, and of no other.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import msgspec

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.questions import AskedQuestion, QuestionPack, SettledQuestions
from steersman.contracts.planning.review import CoordinatorRunSummary, FailurePack, ReviewPack
from steersman.judges.text import clip_text, printable_line
from steersman.kernel.snapshot import Snapshot, context_fields
from steersman.kernel.tape import Entry
from steersman.views.planning.markdown import render_plan_markdown
from steersman.views.run_summary import actor_name

PayloadLookup = Callable[[str], str]
PLAN_FAILURE_STATES = ("BLOCKED", "ABORTED")
MAX_LISTED_PROBLEMS = 12
_FinalState = Literal["DONE", "BLOCKED", "ABORTED", "canceled"]
_FINAL_STATES: dict[str, _FinalState] = {end: end for end in get_args(_FinalState)}


def read_failure_pack(snapshot: Snapshot, text: PayloadLookup) -> FailurePack | None:
    """Why a run that has failed has failed; None of any other, and where the text is gone."""
    return (
        decode_plan_document(text(context_fields(snapshot.context).get("failure_ref", "")), FailurePack)
        if snapshot.state in PLAN_FAILURE_STATES
        else None
    )


def read_review_pack(snapshot: Snapshot, text: PayloadLookup) -> ReviewPack | None:
    """The review pack of a run that is done."""
    return (
        decode_plan_document(text(context_fields(snapshot.context).get("review_ref", "")), ReviewPack)
        if snapshot.state == "DONE"
        else None
    )


def decode_plan_document(text: str, shape: Any) -> Any:
    """A document, or None where its text is gone."""
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.MsgspecError:
        return None


def describe_cancellation(snapshot: Snapshot, entries: Iterable[Entry]) -> str:
    """Who has canceled a run where it was, and why, in one sentence; nothing of any other run."""
    for entry in entries if snapshot.ended else ():
        if entry.ended:
            why = f": {printable_line(entry.why)}" if entry.why else ""
            return clip_text(f"canceled by {actor_name(entry.actor)} in {snapshot.state}{why}", 2000)
    return ""


def build_plan_run_summary(
    snapshot: Snapshot, text: PayloadLookup, entries: Iterable[Entry] = ()
) -> CoordinatorRunSummary | None:
    """A run that is over in one look; None while it goes on."""
    end = _FINAL_STATES.get(snapshot.ended or snapshot.state)
    if end is None:
        return None
    context = context_fields(snapshot.context)
    pack = read_review_pack(snapshot, text)
    failure = read_failure_pack(snapshot, text)
    settled = decode_plan_document(text(context.get("settled_ref", "")), dict[str, Any]) or {}
    packs = filter(None, (decode_plan_document(text(ref), QuestionPack) for ref in context.get("packs", ())))
    defaulted = [a for a in settled.get("answers", ()) if a.get("provided_by") != "human"]
    return CoordinatorRunSummary(
        run_id=snapshot.run,
        plan_id=context.get("plan_id", ""),
        intent_id=context.get("intent_id", ""),
        final_state=end,
        nodes=context.get("nodes", 0),
        actions=len(pack.actions) if pack is not None else 0,
        excluded=len(pack.excluded) if pack is not None else 0,
        questions_asked=len({q.question_id for pack in packs for q in pack.questions}),
        questions_defaulted=len(defaulted),
        overall_risk=context.get("overall_risk") or (failure.risk if failure is not None else "unknown"),
        failure=failure.message if failure is not None else describe_cancellation(snapshot, entries),
    )


def render_plan_lines(snapshot: Snapshot, text: PayloadLookup) -> list[str]:
    """The whole plan of a run that is done, as its `plan.md` has it; nothing of any other, and where a text is gone."""
    context, pack = context_fields(snapshot.context), read_review_pack(snapshot, text)
    graph = decode_plan_document(text(context.get("graph_ref", "")), ExecutionGraph)
    settled = decode_plan_document(text(context.get("settled_ref", "")), SettledQuestions)
    questions = decode_plan_document(text(context.get("uncertainties_ref", "")), tuple[AskedQuestion, ...])
    if pack is None or graph is None or settled is None or questions is None:
        return []
    return render_plan_markdown(graph, pack, questions, settled).splitlines()


def render_outcome_lines(snapshot: Snapshot, text: PayloadLookup, entries: Iterable[Entry] = ()) -> list[str]:
    """The outcome in words; nothing while there is none."""
    pack, failure = read_review_pack(snapshot, text), read_failure_pack(snapshot, text)
    if pack is not None:
        return [*_planned_lines(pack), *_left_out_lines(pack)]
    if failure is None:
        cancellation = describe_cancellation(snapshot, entries)
        return [f"{cancellation}; there is no plan"] if cancellation else []
    alarm = "ALERT, a red line: " if snapshot.state == "ABORTED" else ""
    lines = [
        f"{alarm}{failure.message} ({failure.failure_type}, {failure.cause}, in {failure.failed_at_state})"
    ]
    lines += [f"  {_problem_location(p)}: {p.message}" for p in failure.problems[:MAX_LISTED_PROBLEMS]]
    lines += ["what would help:"]
    lines += [f"  {r.change}: {r.how}" for r in failure.recovery_suggestions[:MAX_LISTED_PROBLEMS]]
    remaining = len(failure.recovery_suggestions) - MAX_LISTED_PROBLEMS
    return [*lines, f"  and {remaining} more"] if remaining > 0 else lines


def _problem_location(problem: DocumentProblem) -> str:
    return f"{problem.field} (line {problem.line})" if problem.line else problem.field


def _planned_lines(pack: ReviewPack) -> list[str]:
    budgets = ", ".join(f"{b.name} {b.estimate} of {b.limit}" for b in pack.change_impact.budgets)
    gates = ", ".join(sorted({g.category for g in pack.review_gates})) or "none"
    return [
        f"{pack.plan_id}: {pack.plan_summary.objective}",
        f"  {len(pack.actions)} actions · risk {pack.risk_assessment.overall_risk} · reviews {gates}",
        f"  estimated {pack.estimated_duration.value} {pack.estimated_duration.unit} · {budgets}",
    ]


def _left_out_lines(pack: ReviewPack) -> list[str]:
    return [f"  left out: {line}" for line in pack.excluded[:MAX_LISTED_PROBLEMS]]
