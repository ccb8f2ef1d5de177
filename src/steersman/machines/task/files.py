"""The files beside a task: `state.json` in the specification's form, and the results of its suites.

**Invariant:** they are made from the snapshot and the tape alone, never from an older file.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.artifacts import STATE_FILE, TIMELINE_FILE, ArtifactOnDisk
from steersman.contracts.machine_names import TASK_PHASES
from steersman.engine.active_run import ActiveRun
from steersman.engine.machine_package import Artifact, RunView
from steersman.engine.ports import Ports
from steersman.engine.projections import MAX_PROJECTION_BYTES
from steersman.judges.text import printable_json
from steersman.kernel.canonical import digest_of
from steersman.kernel.definition import Origin
from steersman.kernel.snapshot import Snapshot, context_fields
from steersman.kernel.step import legal_events
from steersman.machines.shared.tree_summary import check_result_files
from steersman.machines.task.documents.inspection import find_unreadable_file_problem
from steersman.machines.task.documents.schemas import PhaseProgress, TaskState
from steersman.views.run_summary import GuardOverride, RunSummary

# How far planning is, in the words of the planning table.
PLANNING_STEP_WORDS = {"work": "draft", "comment": "workshop", "questions": "clarifying", "record": "formalizing", "inspect": "formalizing", "ready": "review_ready"}  # fmt: skip
FORWARD_PHASES = TASK_PHASES[:6]
DigestMark = Callable[[str], str]  # a digest -> the same under the key of a run


def build_task_state(
    snapshot: Snapshot, details: RunSummary, legal: tuple[str, ...], mark: DigestMark = str
) -> TaskState:
    """The state of a task; `legal` is what a person may do now, `mark` makes a digest one of this run."""
    context = context_fields(snapshot.context)
    state_data = {
        "task_id": snapshot.run,
        "title": details.title,
        "phase": snapshot.state,
        "step": "" if snapshot.state == "done" or snapshot.ended else context["step"],
        "status": details.status,
        "outcome": details.outcome,
        "entries": snapshot.seq,
        "actors": {phase: _phase_actor(phase, snapshot.state, context) for phase in TASK_PHASES[:-1]},
        "next": legal,
        "artifacts": context["artifacts"],
        "overrides": override_records(details.overrides),
    }
    state = msgspec.convert(msgspec.to_builtins(state_data), TaskState)
    return replace(state, digest=mark(task_state_digest(state)))


def override_records(overrides: Iterable[GuardOverride]) -> list[dict[str, str]]:
    """Guards that people have waived, as the documents of a task have them."""
    return [{"source": o.source, "to": o.to, "person": o.person, "reason": o.reason} for o in overrides]


def task_state_digest(state: TaskState) -> str:
    """The digest of everything in it but itself."""
    return digest_of(replace(state, digest=""))


def render_task_state(state: TaskState) -> bytes:
    """The file as it is written: people look at it with `cat`."""
    return printable_json(msgspec.json.format(msgspec.json.encode(state)).decode()).encode()


def describe_unreadable_state(data: bytes) -> str:
    """Returns why a file is no state of a task; nothing where it is one."""
    try:
        msgspec.json.decode(data, type=TaskState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"could not be read ({error})"
    return ""


def _phase_actor(phase: str, state: str, context: dict[str, Any]) -> PhaseProgress:
    """A phase that the task is in, has left behind, or has not come to."""
    step = context["step"]
    if phase == "planning":
        status = PLANNING_STEP_WORDS.get(step, step) if state == "planning" else "done"
        return PhaseProgress(status=status, round=context["round"])
    if phase == state:
        return PhaseProgress(status=step)
    if phase not in FORWARD_PHASES:
        return PhaseProgress(status=None)
    index = FORWARD_PHASES.index(state) if state in FORWARD_PHASES else len(FORWARD_PHASES)
    at = FORWARD_PHASES.index(phase)
    return PhaseProgress(status="done" if at < index else "pending" if at == index + 1 else None)


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
