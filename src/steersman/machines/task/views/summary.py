"""What a task tells of itself: its summary, its sections of a report, and what is shown above its gates and at its end."""

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult, full_output
from steersman.engine.active_run import read_snapshot
from steersman.engine.machine_package import GatePreview, RunEnding, RunView
from steersman.judges.text import clip_text, printable_line
from steersman.kernel.record import run_outcome
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.machines.shared.tree_summary import (
    base_problem_of_outcome,
    base_tree_section,
    evidence_questions_section,
    tree_summary_fields,
)
from steersman.machines.task.context import TaskContext
from steersman.machines.task.views.acceptance import acceptance_lines
from steersman.machines.task.views.actions import find_side_actions
from steersman.machines.task.views.phase import phase_lines
from steersman.views.base_stop import BASE_PROBLEMS
from steersman.views.gates import GateView
from steersman.views.report import ReportFacts, check_evidence_section, reviews_section
from steersman.views.run_summary import PayloadReader, RunFacts, SummaryFields

# ── blocked reason ──────────────────────────────────────────────────────────────────────────────────────────────────────

# Why a task cannot go on by itself, in one line: evidence in question, a failed agent, a child run, a failed guard.
#
# **Invariant:** the line begins with words of steersman and then quotes text from outside.


WAITING_STEP = "waiting"  # for tasks that come first
# The steps on which a task waits because it cannot go on.
BLOCKED_STEPS = ("stuck", "broken", "unwritten", WAITING_STEP)
_MAX_REASON_LENGTH = 400
_SHORT_EVENT_MEANINGS = {
    "agent_failed": "An agent broke down",
    "crew_failed": "The child run ended without approval",
    "test_failures": "The tests did not pass",
    "check_cannot_start": "A check cannot start on the base tree",
    "base_not_green": "Checks fail on the base tree",
}


def find_blocked_cause(facts: RunFacts) -> str:
    """The line; nothing where the task does not stand still."""
    snapshot, entries, text = facts.snapshot, facts.entries, facts.text
    context: TaskContext = snapshot.context
    if snapshot.ended or context.step not in BLOCKED_STEPS:
        return ""
    if context.step == WAITING_STEP:
        return clip_text(printable_line(_join_text_lines(text(context.detail_ref))), _MAX_REASON_LENGTH)
    moves = [n for n, e in enumerate(entries) if e.kind == "transition" and not e.stay]
    if not moves:
        return ""
    last = entries[moves[-1]]
    since = entries[moves[-2] + 1 if len(moves) > 1 else 0 : moves[-1] + 1]
    often = " (too often to go back by itself)" if last.guards.get("room:regressions") is False else ""
    what = _SHORT_EVENT_MEANINGS.get(last.event) or facts.machine.events[last.event].meaning.rstrip(".")
    roles = {item.id: item.input.get("role", "") for e in entries for item in e.planned}
    reason = f"{what}{often}: {_last_event_reason(last, since, roles, context, text)}".rstrip(": ")
    return clip_text(printable_line(reason), _MAX_REASON_LENGTH)


def _last_event_reason(
    last: Entry, since: Sequence[Entry], roles: dict[str, str], context: TaskContext, text: PayloadReader
) -> str:
    data = last.data if isinstance(last.data, dict) else {}
    match last.event:
        case "agent_failed":
            entries = ((roles[e.cause], e) for e in since if e.kind == "transition" and roles.get(e.cause))
            return "; ".join(filter(None, (_agent_failure_reason(role, e.data, text) for role, e in entries)))
        case "crew_failed":
            return f"run {data.get('run', '')} ended: {data.get('outcome', '') or 'without an outcome'}"
        case "test_failures":
            return _failed_checks_reason(text(context.results_ref), text(context.told_ref))
        case "check_cannot_start" | "base_not_green":
            return _failed_checks_reason(text(context.baseline_ref), text(context.detail_ref))
        case _:
            return _join_text_lines(text(context.detail_ref) or text(context.told_ref))


def _agent_failure_reason(role: str, facts: Any, text: PayloadReader) -> str:
    """The agent that failed, its class of error and its own words; nothing where none failed."""
    data = facts if isinstance(facts, dict) else {}
    if not data.get("error") and data.get("reply") is not None:
        return ""
    words = _join_text_lines(text(data.get("detail_ref", "")) or text(data.get("problems_ref", "")))
    by = f" ({data['provider']})" if data.get("provider") else ""
    failure = f"{role}{by}: {data.get('error') or 'no reply that fits its contract'}"
    return f"{failure}: {words}" if words else failure


def _failed_checks_reason(results: str, fallback_text: str) -> str:
    try:
        command_results = msgspec.json.decode(results or "[]", type=list[CommandResult])
    except msgspec.MsgspecError:  # pruned
        return _join_text_lines(fallback_text)
    wrong = [_failed_check_summary(r) for r in command_results if r.verdict != "passed" and not r.variant]
    wrong += [f"{r.name}: {f.sentence}" for r in command_results for f in r.findings if f.weight == "failure"]
    return "; ".join(wrong) or _join_text_lines(fallback_text)


def _failed_check_summary(result: CommandResult) -> str:
    code = f" (exit {result.exit_code})" if result.exit_code is not None else ""
    lines = full_output(result).splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    more = result.reason or last
    return f"{result.name}: {result.verdict}{code}" + (f": {clip_text(more, 160)}" if more else "")


def _join_text_lines(words: str) -> str:
    return "; ".join(line.strip().removeprefix("- ") for line in words.splitlines() if line.strip())


# ── summary ────────────────────────────────────────────────────────────────────────────────


def task_summary_fields(facts: RunFacts) -> SummaryFields:
    """The fields of the task's summary that only its context tells."""
    context: TaskContext = facts.snapshot.context
    side_actions = find_side_actions(facts.machine, facts.snapshot, facts.gates)
    return SummaryFields(
        **tree_summary_fields(facts, context),
        round=context.round,
        base_measured=context.workspace == "measured",
        base_problem=_find_base_problem(facts, context),
        cause=find_blocked_cause(facts),
        besides=tuple(action.word for action in side_actions),
        side_commands=tuple(action.command for action in side_actions),
    )


def _find_base_problem(facts: RunFacts, context: TaskContext) -> str:
    """Which problem of its base tree keeps the task from going on; nothing where another one does, or none."""
    reached = run_outcome(facts.machine, facts.snapshot)
    if reached or context.step != "broken":
        return base_problem_of_outcome(reached)
    last = last_state_event(facts.entries)
    return last if last in BASE_PROBLEMS else ""


def last_state_event(entries: Sequence[Entry]) -> str:
    """The event of the last step that led to another state."""
    return next((e.event for e in reversed(entries) if e.kind == "transition" and not e.stay), "")


def task_report_sections(report: ReportFacts) -> list[str]:
    """What reviewers said, and what is proven of the tree."""
    context, text = report.facts.snapshot.context, report.facts.text
    return [
        *reviews_section(report),
        *check_evidence_section(report),
        *evidence_questions_section(context, text, asks=context.evidence == "touched"),
        *base_tree_section(context, text),
    ]


def preview_task_gate(run_view: RunView, gate: GateView, most: int | None) -> GatePreview | None:
    """What a phase has brought, or exactly what would be accepted, with so many lines of the change."""
    match gate.job:
        case "next":
            return GatePreview(tuple(phase_lines(run_view.snapshot, run_view.text)))
        case "decide":
            lines = acceptance_lines(run_view.snapshot, run_view.status, gate, run_view.text, most=most)
            return GatePreview(tuple(lines), shown=("detail",))
        case _:
            return None


def task_ending(run_view: RunView) -> RunEnding | None:
    """The tasks that wait for one that is accepted."""
    if run_view.status.outcome != "accepted":
        return None
    followers = _find_waiting_followers(run_view)
    return RunEnding(
        more_lines=tuple(f"task {run} waits for this one" for run in followers),
        more_commands=tuple(f"tasks next {run}" for run in followers),
    )


def _find_waiting_followers(run_view: RunView) -> list[str]:
    journal = run_view.live.world.journal
    waiting = [gate.run for gate in journal.gates() if gate.job == "others" and not gate.answer]
    snapshots = ((run, read_snapshot(journal, run)) for run in waiting)
    return [  # one that cannot be read says so elsewhere
        run for run, s in snapshots if isinstance(s, Snapshot) and run_view.snapshot.run in s.context["after"]
    ]
