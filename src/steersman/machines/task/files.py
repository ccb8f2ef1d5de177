"""The files of a task that are made from its tape: `state.json` in the specification's form, and what hands did to it.

What hands did to the transcript beside it is looked at too.
"""

from collections.abc import Iterable

from steersman.contracts.artifacts import STATE_FILE, TIMELINE_FILE, TRANSCRIPT_FILE, ArtifactOnDisk
from steersman.contracts.task.documents import TaskState
from steersman.engine.active_run import ActiveRun
from steersman.engine.machine_package import Artifact
from steersman.engine.ports import Ports
from steersman.engine.projections import (
    MAX_PROJECTION_BYTES,
    read_run_view,
    render_transcript,
)
from steersman.engine.run_view import RunView
from steersman.judges.task.inspection import find_unreadable_file_problem
from steersman.kernel.definition import Origin
from steersman.kernel.step import legal_events
from steersman.kernel.tape import read_entry
from steersman.machines.shared.tree_files import check_result_files
from steersman.machines.task.views.state_file import (
    build_task_state,
    count_state_entries,
    describe_outdated_state,
    describe_state_edit,
    describe_transcript_edit,
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


def find_task_file_problems(ports: Ports, active_run: ActiveRun, older: bool) -> dict[str, str]:
    """What hands did to the files that are made from the tape of a task, by name; of a state that is only `older` than the
    transcript beside it, that; nothing about both where they are."""
    run, problems, entry_count = active_run.run, {}, 0
    file_found = ports.artifacts.read(
        run, STATE_FILE, MAX_PROJECTION_BYTES
    )  # before the transcript, which is written first
    if file_found.kind == "file":
        problems[STATE_FILE] = describe_state_edit(
            file_found.data,
            lambda: read_task_state(read_run_view(ports, run)),
            run,
            active_run.payloads.keyed_digest,
        )
        entry_count = 0 if problems[STATE_FILE] else count_state_entries(file_found.data)
    else:
        problems[STATE_FILE] = _missing_file_problem(ports, run, file_found)
    expected_transcript = render_transcript(read_entry(body) for _, body, _ in ports.journal.rows(run))
    file_found = ports.artifacts.read(
        run, TRANSCRIPT_FILE, max(MAX_PROJECTION_BYTES, len(expected_transcript))
    )
    problems[TRANSCRIPT_FILE] = (
        describe_transcript_edit(file_found.data, expected_transcript, entry_count)
        if file_found.kind == "file"
        else _missing_file_problem(ports, run, file_found)
    )
    if (
        older and entry_count and not problems[TRANSCRIPT_FILE] and ports.locks.owner(run) is None
    ):  # or somebody is at it
        problems[STATE_FILE] = describe_outdated_state(entry_count, file_found.data)
    return {name: problem for name, problem in problems.items() if problem}


def _missing_file_problem(ports: Ports, run: str, artifact: ArtifactOnDisk) -> str:
    """What is wrong where no file is; nothing where none was written yet."""
    was_never_written = (
        artifact.kind == "missing" and ports.artifacts.read(run, TIMELINE_FILE).kind == "missing"
    )
    return "" if was_never_written else find_unreadable_file_problem(artifact)
