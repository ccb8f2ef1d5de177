"""A task as its `state.json`: a projection of the tape that says so, with a digest of itself; and what hands did to it.

The digest is under a key that lies outside the repository: a file that carries it was written by steersman for this task.
**Invariant:** made from the snapshot and the tape alone; what stands in an old file is never read into a new one.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.task.documents import Actor, TaskState
from steersman.contracts.task.words import PHASES
from steersman.judges.text import clip, one_line, printable_json
from steersman.kernel.canonical import digest_of
from steersman.kernel.snapshot import Snapshot, fields
from steersman.views.status import Override, Status

# How far planning is, in the words of the planning table.
PLANNING = {"work": "draft", "comment": "workshop", "questions": "clarifying", "record": "formalizing", "inspect": "formalizing", "ready": "review_ready"}  # fmt: skip
FORWARD = PHASES[:6]
Mark = Callable[[str], str]  # a digest -> the same under the key of a run


def task_state(s: Snapshot, shown: Status, legal: tuple[str, ...], mark: Mark = str) -> TaskState:
    """The state of a task; `legal` is what a person may do now, `mark` makes a digest one of this run."""
    c = fields(s.context)
    told = {
        "task_id": s.run,
        "title": shown.title,
        "phase": s.state,
        "step": "" if s.state == "done" or s.ended else c["step"],
        "status": shown.status,
        "outcome": shown.outcome,
        "entries": s.seq,
        "actors": {phase: _actor(phase, s.state, c) for phase in PHASES[:-1]},
        "next": legal,
        "artifacts": c["artifacts"],
        "overrides": waived(shown.overrides),
    }
    made = msgspec.convert(msgspec.to_builtins(told), TaskState)
    return replace(made, digest=mark(own_digest(made)))


def waived(overrides: Iterable[Override]) -> list[dict[str, str]]:
    """Guards that people have waived, as the documents of a task have them."""
    return [{"source": o.source, "to": o.to, "person": o.person, "reason": o.reason} for o in overrides]


def own_digest(state: TaskState) -> str:
    """The digest of everything in it but itself."""
    return digest_of(replace(state, digest=""))


def rendered(state: TaskState) -> bytes:
    """The file as it is written: people look at it with `cat`."""
    return printable_json(msgspec.json.format(msgspec.json.encode(state)).decode()).encode()


def changed_by_hand(data: bytes, now: Callable[[], TaskState], run: str, mark: Mark = str) -> str:
    """What somebody has done to a file; nothing about one that steersman wrote for this run, however old."""
    try:
        found = msgspec.json.decode(data, type=TaskState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"could not be read ({error})"
    if found.task_id != run:
        return f"is not of this task: its task_id is {clip(one_line(found.task_id), 80)}"
    ours = mark(own_digest(found))
    if ours == found.digest and rendered(found) == data:
        return ""
    was, is_ = msgspec.to_builtins(found), msgspec.to_builtins(now())
    differs = [f"{name} {_told(was[name])}, the tape says {_told(is_[name])}" for name in was if was[name] != is_[name] and name not in ("digest", "entries")]  # fmt: skip
    if not ours and (found.entries != is_["entries"] or not differs):
        return ""  # its texts were pruned, and the key with them: of an older file nobody can tell any more
    return f"was changed by hand: {'; '.join(differs[:5]) or 'its digest or its form does not fit'}"


def entries_of(data: bytes) -> int:
    """How many entries of the tape a whole file was made from."""
    return msgspec.json.decode(data, type=TaskState).entries


def rewritten(data: bytes, now: bytes, least: int = 0) -> str:
    """What somebody has done to a transcript; nothing about one that is only older, and has as many lines as there were
    when `state.json` was written after it."""
    was, is_ = data.split(b"\n"), now.split(b"\n")
    if not data.strip():
        return "was emptied"
    if not now.startswith(data):
        lines = enumerate(zip(was, is_, strict=False), 1)
        line = next((n for n, (one, other) in lines if one != other), len(is_))
        return f"line {line} is not what the tape says"
    if was[-1]:
        return f"was cut short in line {len(was)}"
    return f"was cut short: it ends with line {len(was) - 1} of {least}" if len(was) - 1 < least else ""


def outdated(entries: int, transcript: bytes) -> str:
    """That a whole `state.json` is not the newest, by a whole transcript, which is written before it."""
    there = transcript.count(b"\n")
    return (
        f"is an older one: made from {entries} entries, and the transcript has {there}"
        if there > entries
        else ""
    )


def _told(value: Any) -> str:
    return value if isinstance(value, str) else f"has {len(value)} entries" if isinstance(value, dict | list) else str(value)  # fmt: skip


def _actor(phase: str, state: str, c: dict[str, Any]) -> Actor:
    """A phase that the task is in, has left behind, or has not come to."""
    step = c["step"]
    if phase == "planning":
        status = PLANNING.get(step, step) if state == "planning" else "done"
        return Actor(status=status, round=c["round"])
    if phase == state:
        return Actor(status=step)
    if phase not in FORWARD:
        return Actor(status=None)
    here = FORWARD.index(state) if state in FORWARD else len(FORWARD)
    at = FORWARD.index(phase)
    return Actor(status="done" if at < here else "pending" if at == here + 1 else None)
