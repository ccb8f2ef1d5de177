"""Renders a task as its `state.json`: a projection of the tape, with a digest of itself under the run's key.

**Invariant:** made from the snapshot and the tape alone, never from an older file.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.task.documents import PhaseProgress, TaskState
from steersman.contracts.task.words import TASK_PHASES
from steersman.judges.text import printable_json
from steersman.kernel.canonical import digest_of
from steersman.kernel.snapshot import Snapshot, context_fields
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
    current_index = FORWARD_PHASES.index(state) if state in FORWARD_PHASES else len(FORWARD_PHASES)
    at = FORWARD_PHASES.index(phase)
    return PhaseProgress(
        status="done" if at < current_index else "pending" if at == current_index + 1 else None
    )
