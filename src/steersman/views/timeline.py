"""Builds a run's timeline from its tape: every step with its round and duration, and the rounds.

**Invariant:** a function of the entries; the machine supplies only the labels of its rows.
"""

from collections.abc import Iterable, Iterator

import msgspec

from steersman.kernel.definition import STAY
from steersman.kernel.machine import Machine
from steersman.kernel.tape import Entry

STEP_KINDS = ("created", "transition", "override")


class TimelineStep(msgspec.Struct, frozen=True, rename={"source": "from"}):
    """One step."""

    index: int
    seq: int
    at: int
    source: str | None
    to: str
    label: str
    event: str
    actor: str
    round: int
    duration: int  # ms since the step before
    took: int | None = None  # microseconds that the effect behind it ran, where there was one


def build_timeline(
    entries: Iterable[Entry], machine: Machine | None = None, *, round_field: str = ""
) -> Iterator[TimelineStep]:
    """Yields the steps in order; without the machine they have no labels, without its field for rounds no round."""
    round_, before, index = 0, None, 0
    for entry in entries:
        round_ = _round_after_entry(round_, entry, round_field)
        if entry.kind not in STEP_KINDS:
            continue
        index += 1
        yield TimelineStep(
            index=index,
            seq=entry.seq,
            at=entry.at,
            source=entry.source,
            to=entry.to,
            label=_taken_row_label(machine, entry),
            event=entry.event,
            actor=entry.actor,
            round=round_,
            duration=entry.at - before if before is not None else 0,
            took=entry.took,
        )
        before = entry.at


def _round_after_entry(now: int, entry: Entry, round_field: str) -> int:
    """Returns the round after an entry, as the recorded ops count it."""
    if entry.context is not None:
        now = entry.context.get(round_field, 0)
    for op in entry.ops:
        if op[1] == round_field:
            now = op[2] if op[0] == "set" else now + op[2] if op[0] == "add" else now
    return now


def _taken_row_label(machine: Machine | None, entry: Entry) -> str:
    """Returns the label of the row that was taken."""
    for row in machine.lookup.get((entry.source, entry.event), ()) if machine is not None else ():
        target = entry.source if row.to is STAY else row.to.name
        if target == entry.to and (row.to is STAY) == entry.stay:
            return row.label
    return ""
