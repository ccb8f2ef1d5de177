"""Writes the files of a task that are made from its tape: `state.json` in the specification's form, results of suites."""

from collections.abc import Iterable

from steersman.contracts.artifacts import STATE_FILE, TIMELINE_FILE, ArtifactOnDisk
from steersman.contracts.task.documents import TaskState
from steersman.engine.active_run import ActiveRun
from steersman.engine.machine_package import Artifact
from steersman.engine.ports import Ports
from steersman.engine.projections import MAX_PROJECTION_BYTES
from steersman.engine.run_view import RunView
from steersman.judges.task.inspection import find_unreadable_file_problem
from steersman.kernel.definition import Origin
from steersman.kernel.step import legal_events
from steersman.machines.shared.tree_files import check_result_files
from steersman.machines.task.views.state_file import (
    build_task_state,
    describe_unreadable_state,
    render_task_state,
)


def list_task_artifacts(run_view: RunView) -> Iterable[Artifact]:
    """`state.json` in the specification's form, and the results of the suites."""
    yield STATE_FILE, lambda: render_task_state(read_task_state(run_view))
    yield from check_result_files(run_view)


def read_task_state(run_view: RunView) -> TaskState:
    """The state of a task as its tape has it."""
    machine, snapshot = run_view.live.machine, run_view.snapshot
    open_questions = [f"{g.job}: {' | '.join(g.choices)}" for g in run_view.status.gates if not g.answer]
    legal_now = (*open_questions, *legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context))
    return build_task_state(snapshot, run_view.status, legal_now, run_view.live.payloads.keyed_digest)


def find_task_file_problems(ports: Ports, active_run: ActiveRun) -> dict[str, str]:
    """Returns why `state.json` of a task cannot be read, by its name; nothing where it can.

    A file that can be read is not compared: nothing reads it back, and each drive writes it again.
    """
    state_file = ports.artifacts.read(active_run.run, STATE_FILE, MAX_PROJECTION_BYTES)
    problem = (
        describe_unreadable_state(state_file.data)
        if state_file.kind == "file"
        else _missing_file_problem(ports, active_run.run, state_file)
    )
    return {STATE_FILE: problem} if problem else {}


def _missing_file_problem(ports: Ports, run: str, artifact: ArtifactOnDisk) -> str:
    """Returns what is wrong where there is no file; nothing where none was written yet."""
    was_never_written = (
        artifact.kind == "missing" and ports.artifacts.read(run, TIMELINE_FILE).kind == "missing"
    )
    return "" if was_never_written else find_unreadable_file_problem(artifact)
