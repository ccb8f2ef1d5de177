"""What became of a planning run: the plan in a few lines, or why there is none and what would help.

**Invariant:** a function of what the run's tape names; a failure is shown of a run that has failed, and of no other.
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import msgspec

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.graph import ExecutionGraph
from steersman.contracts.planning.questions import AskedQuestion, QuestionPack, Settled
from steersman.contracts.planning.review import CoordinatorRunSummary, FailurePack, ReviewPack
from steersman.judges.text import clip, one_line
from steersman.kernel.snapshot import Snapshot, fields
from steersman.kernel.tape import Entry
from steersman.views.planning.markdown import plan_markdown
from steersman.views.status import person

Text = Callable[[str], str]
FAILED = ("BLOCKED", "ABORTED")
LISTED = 12
_End = Literal["DONE", "BLOCKED", "ABORTED", "canceled"]
_END: dict[str, _End] = {end: end for end in get_args(_End)}


def failure_of(s: Snapshot, text: Text) -> FailurePack | None:
    """Why a run that has failed has failed; None of any other, and where the text is gone."""
    return _read(text(fields(s.context).get("failure_ref", "")), FailurePack) if s.state in FAILED else None


def review_of(s: Snapshot, text: Text) -> ReviewPack | None:
    """The review pack of a run that is done."""
    return _read(text(fields(s.context).get("review_ref", "")), ReviewPack) if s.state == "DONE" else None


def _read(text: str, shape: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=shape)
    except msgspec.MsgspecError:
        return None


def canceled(s: Snapshot, entries: Iterable[Entry]) -> str:
    """Who has canceled a run where it was, and why, in one sentence; nothing of any other run."""
    for e in entries if s.ended else ():
        if e.ended:
            why = f": {one_line(e.why)}" if e.why else ""
            return clip(f"canceled by {person(e.actor)} in {s.state}{why}", 2000)
    return ""


def summary_of(s: Snapshot, text: Text, entries: Iterable[Entry] = ()) -> CoordinatorRunSummary | None:
    """A run that is over in one look; None while it goes on."""
    end = _END.get(s.ended or s.state)
    if end is None:
        return None
    c, pack, failed = fields(s.context), review_of(s, text), failure_of(s, text)
    settled = _read(text(c.get("settled_ref", "")), dict[str, Any]) or {}
    packs = filter(None, (_read(text(ref), QuestionPack) for ref in c.get("packs", ())))
    defaulted = [a for a in settled.get("answers", ()) if a.get("provided_by") != "human"]
    return CoordinatorRunSummary(
        run_id=s.run,
        plan_id=c.get("plan_id", ""),
        intent_id=c.get("intent_id", ""),
        final_state=end,
        nodes=c.get("nodes", 0),
        actions=len(pack.actions) if pack is not None else 0,
        excluded=len(pack.excluded) if pack is not None else 0,
        questions_asked=len({q.question_id for pack in packs for q in pack.questions}),
        questions_defaulted=len(defaulted),
        overall_risk=c.get("overall_risk") or (failed.risk if failed is not None else "unknown"),
        failure=failed.message if failed is not None else canceled(s, entries),
    )


def plan_lines(s: Snapshot, text: Text) -> list[str]:
    """The whole plan of a run that is done, as its `plan.md` has it; nothing of any other, and where a text is gone."""
    c, pack = fields(s.context), review_of(s, text)
    graph = _read(text(c.get("graph_ref", "")), ExecutionGraph)
    settled = _read(text(c.get("settled_ref", "")), Settled)
    asked = _read(text(c.get("uncertainties_ref", "")), tuple[AskedQuestion, ...])
    if pack is None or graph is None or settled is None or asked is None:
        return []
    return plan_markdown(graph, pack, asked, settled).splitlines()


def outcome_lines(s: Snapshot, text: Text, entries: Iterable[Entry] = ()) -> list[str]:
    """The outcome in words; nothing while there is none."""
    pack, failed = review_of(s, text), failure_of(s, text)
    if pack is not None:
        return [*_planned(pack), *_left_out(pack)]
    if failed is None:
        stopped = canceled(s, entries)
        return [f"{stopped}; there is no plan"] if stopped else []
    alarm = "ALERT, a red line: " if s.state == "ABORTED" else ""
    lines = [f"{alarm}{failed.message} ({failed.failure_type}, {failed.cause}, in {failed.failed_at_state})"]
    lines += [f"  {_where(p)}: {p.message}" for p in failed.problems[:LISTED]]
    lines += ["what would help:"]
    lines += [f"  {r.change}: {r.how}" for r in failed.recovery_suggestions[:LISTED]]
    more = len(failed.recovery_suggestions) - LISTED
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _where(p: Problem) -> str:
    return f"{p.field} (line {p.line})" if p.line else p.field


def _planned(pack: ReviewPack) -> list[str]:
    budgets = ", ".join(f"{b.name} {b.estimate} of {b.limit}" for b in pack.change_impact.budgets)
    gates = ", ".join(sorted({g.category for g in pack.review_gates})) or "none"
    return [
        f"{pack.plan_id}: {pack.plan_summary.objective}",
        f"  {len(pack.actions)} actions · risk {pack.risk_assessment.overall_risk} · reviews {gates}",
        f"  estimated {pack.estimated_duration.value} {pack.estimated_duration.unit} · {budgets}",
    ]


def _left_out(pack: ReviewPack) -> list[str]:
    return [f"  left out: {line}" for line in pack.excluded[:LISTED]]
