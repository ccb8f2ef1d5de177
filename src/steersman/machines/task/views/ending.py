"""What is shown above the gates of a task, and at its end."""

from steersman.engine.active_run import read_snapshot
from steersman.engine.machine_package import GatePreview, RunEnding
from steersman.engine.run_view import RunView
from steersman.kernel.snapshot import Snapshot
from steersman.machines.task.views.acceptance import acceptance_lines
from steersman.machines.task.views.phase import phase_lines
from steersman.views.gates import GateView


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
