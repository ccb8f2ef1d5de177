"""A task as its `state.json`: a projection of the tape that says so, with a digest of itself; and what hands did to it.

The digest is under a key that lies outside the repository: a file that carries it was written by steersman for this task.
**Invariant:** made from the snapshot and the tape alone; what stands in an old file is never read into a new one.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.task.documents import PhaseProgress, TaskState
from steersman.contracts.task.words import TASK_PHASES
from steersman.judges.text import clip_text, printable_json, printable_line
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


def describe_state_edit(data: bytes, now: Callable[[], TaskState], run: str, mark: DigestMark = str) -> str:
    """What somebody has done to a file; nothing about one that steersman wrote for this run, however old."""
    try:
        state = msgspec.json.decode(data, type=TaskState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"could not be read ({error})"
    if state.task_id != run:
        return f"is not of this task: its task_id is {clip_text(printable_line(state.task_id), 80)}"
    ours = mark(task_state_digest(state))
    if ours == state.digest and render_task_state(state) == data:
        return ""
    was, is_ = msgspec.to_builtins(state), msgspec.to_builtins(now())
    differs = [f"{name} {_state_value_words(was[name])}, the tape says {_state_value_words(is_[name])}" for name in was if was[name] != is_[name] and name not in ("digest", "entries")]  # fmt: skip
    if not ours and (state.entries != is_["entries"] or not differs):
        return ""  # its texts were pruned, and the key with them: of an older file nobody can tell any more
    return f"was changed by hand: {'; '.join(differs[:5]) or 'its digest or its form does not fit'}"


def count_state_entries(data: bytes) -> int:
    """How many entries of the tape a whole file was made from."""
    return msgspec.json.decode(data, type=TaskState).entries


def describe_transcript_edit(data: bytes, now: bytes, least: int = 0) -> str:
    """What somebody has done to a transcript; nothing about one that is only older, and has as many lines as there were
    when `state.json` was written after it."""
    was, is_ = data.split(b"\n"), now.split(b"\n")
    if not data.strip():
        return "was emptied"
    if not now.startswith(data):
        lines = enumerate(zip(was, is_, strict=False), 1)
        line = next((n for n, (old_line, new_line) in lines if old_line != new_line), len(is_))
        return f"line {line} is not what the tape says"
    if was[-1]:
        return f"was cut short in line {len(was)}"
    return f"was cut short: it ends with line {len(was) - 1} of {least}" if len(was) - 1 < least else ""


def describe_outdated_state(entries: int, transcript: bytes) -> str:
    """That a whole `state.json` is not the newest, by a whole transcript, which is written before it."""
    there = transcript.count(b"\n")
    return (
        f"is an older one: made from {entries} entries, and the transcript has {there}"
        if there > entries
        else ""
    )


def _state_value_words(value: Any) -> str:
    return value if isinstance(value, str) else f"has {len(value)} entries" if isinstance(value, dict | list) else str(value)  # fmt: skip


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
