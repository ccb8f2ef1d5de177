"""A task as its `state.json`: a projection of the tape that says so, with a digest of itself; and what hands did to it.

**Invariant:** made from the snapshot and the tape alone; what stands in an old file is never read into a new one.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.task.documents import Actor, TaskState
from steersman.contracts.task.words import PHASES
from steersman.kernel.canonical import digest_of
from steersman.kernel.snapshot import Snapshot, fields
from steersman.views.status import Override, Status

# How far planning is, in the words of the planning table.
PLANNING = {"work": "draft", "comment": "workshop", "questions": "clarifying", "record": "formalizing", "inspect": "formalizing", "ready": "review_ready"}  # fmt: skip
FORWARD = PHASES[:6]


def task_state(s: Snapshot, shown: Status, legal: tuple[str, ...]) -> TaskState:
    """The state of a task; `legal` is what a person may do now."""
    c = fields(s.context)
    told = {
        "task_id": s.run,
        "title": shown.title,
        "phase": s.state,
        "step": c["step"],
        "status": shown.status,
        "outcome": shown.outcome,
        "entries": s.seq,
        "actors": {phase: _actor(phase, s.state, c) for phase in PHASES[:-1]},
        "next": legal,
        "artifacts": c["artifacts"],
        "overrides": waived(shown.overrides),
    }
    made = msgspec.convert(msgspec.to_builtins(told), TaskState)
    return replace(made, digest=own_digest(made))


def waived(overrides: Iterable[Override]) -> list[dict[str, str]]:
    """Guards that people have waived, as the documents of a task have them."""
    return [{"source": o.source, "to": o.to, "person": o.person, "reason": o.reason} for o in overrides]


def own_digest(state: TaskState) -> str:
    """The digest of everything in it but itself."""
    return digest_of(replace(state, digest=""))


def changed_by_hand(data: bytes, now: TaskState) -> str:
    """What is said about a file that somebody has changed; nothing about one that steersman wrote, however old."""
    try:
        found = msgspec.json.decode(data, type=TaskState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"state.json could not be read ({error}): it was made again from the tape"
    if own_digest(found) == found.digest:
        return ""
    was, is_ = msgspec.to_builtins(found), msgspec.to_builtins(now)
    differs = [f"{name} {_told(was[name])}, the tape says {_told(is_[name])}" for name in was if was[name] != is_[name] and name not in ("digest", "entries")]  # fmt: skip
    told = "; ".join(differs[:5]) or "its digest does not fit"
    return f"state.json was changed by hand: {told}; it was made again from the tape"


def rewritten(data: bytes, now: bytes) -> str:
    """What is said about a transcript that is not the beginning of what the tape says; nothing about one that is only older."""
    was, is_ = data.split(b"\n"), now.split(b"\n")
    if not data.strip():
        problem = "was emptied"
    elif now.startswith(data):
        problem = f"was cut short in line {len(was)}" if was[-1] else ""
    else:
        lines = enumerate(zip(was, is_, strict=False), 1)
        line = next((n for n, (one, other) in lines if one != other), len(is_))
        problem = f"line {line} is not what the tape says"
    return f"transcript.jsonl {problem}: it was made again from the tape" if problem else ""


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
