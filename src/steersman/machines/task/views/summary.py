"""What a task tells of itself: its summary, its sections of a report, and what is shown above its gates and at its end."""

from collections.abc import Sequence

from steersman.engine.active_run import read_snapshot
from steersman.engine.machine_package import GatePreview, RunEnding
from steersman.engine.run_view import RunView
from steersman.kernel.record import run_outcome
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.machines.shared.proof_sections import base_tree_section, evidence_questions_section
from steersman.machines.shared.tree_summary import base_problem_of_outcome, tree_summary_fields
from steersman.machines.task.context import TaskContext
from steersman.machines.task.views.acceptance import acceptance_lines
from steersman.machines.task.views.actions import find_side_actions
from steersman.machines.task.views.blocked_reason import find_blocked_cause
from steersman.machines.task.views.phase import phase_lines
from steersman.views.base_stop import BASE_PROBLEMS
from steersman.views.gates import GateView
from steersman.views.report import ReportFacts, check_evidence_section, reviews_section
from steersman.views.run_summary import RunFacts, SummaryFields


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
        run
        for run, snapshot in snapshots
        if isinstance(snapshot, Snapshot) and run_view.snapshot.run in snapshot.context["after"]
    ]
