"""From tape to state, and back to the decisions: rebuild, verify the chain, decide again.

State is rebuilt only by applying recorded ops, on plain data, without the machine's code: what changes later in a
machine cannot change the past.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from steersman.errors import ContractError
from steersman.kernel.build import Machine
from steersman.kernel.canonical import canonical, digest, plain
from steersman.kernel.definition import Origin
from steersman.kernel.ops import changed_plain, tallied
from steersman.kernel.snapshot import Item, Snapshot
from steersman.kernel.step import Happened, Refused, Taken, compute, name_facts, step
from steersman.kernel.tape import GENESIS, Entry, read


def applied(
    snapshot: Snapshot | None,
    entry: Entry,
    hash_: str,
    context: Any = None,
    counts: dict[str, int] | None = None,
) -> Snapshot:
    """The run after this entry. A driver that has just computed context and counts hands them in; a reader does not."""
    if snapshot is None:
        new = _created(entry)
    else:
        new = snapshot.__copy__()
    new.seq, new.hash, new.at = entry.seq, hash_, entry.at
    if entry.kind != "transition":
        _beside(new, entry)
    if context is not None:
        new.context, new.counts = context, counts if counts is not None else new.counts
    else:
        if entry.ops:
            new.context = changed_plain(new.context, entry.ops, entry.data)
        if entry.counts:
            new.counts = tallied(new.counts, entry.counts)
    if entry.to and not entry.stay:
        new.state, new.visit, new.planned = entry.to, entry.seq, ()
        new.ended = ""
    if entry.planned or entry.closed or entry.held:
        _items(new, entry)
    if entry.spent:
        new.budget = {**new.budget, **{k: new.budget.get(k, 0) + v for k, v in entry.spent.items()}}
    return new


def _beside(new: Snapshot, entry: Entry) -> None:
    """What entries that take no row may change besides."""
    if entry.context is not None:
        new.context = entry.context
        new.context_version = entry.context_version or new.context_version
    if entry.epoch is not None:
        new.epoch = entry.epoch
    if entry.definition:
        new.definition = entry.definition
    if entry.kind == "refused":
        new.refused += 1
    if entry.ended:
        new.ended = entry.ended


def _created(entry: Entry) -> Snapshot:
    return Snapshot(
        run=entry.run,
        machine=entry.machine,
        definition=entry.definition,
        state=entry.to,
        context=entry.context,
        context_version=entry.context_version or 1,
        root=entry.root,
        parent=entry.parent,
    )


def _items(new: Snapshot, entry: Entry) -> None:
    items = new.items.copy()
    for gone in entry.closed:
        items.pop(gone, None)
    for item in entry.held:
        items[item.id] = item
    if entry.planned:
        for item in entry.planned:
            items[item.id] = item
        new.planned = (*new.planned, *[i.key for i in entry.planned])
    new.items = items


@dataclass(frozen=True, slots=True)
class Bad:
    """The first record that does not fit, and how."""

    seq: int
    why: str


Row = tuple[int, bytes, str]  # seq, body, hash: as stored


def chain(rows: Iterable[Row], run: str) -> Iterator[tuple[Entry, str] | Bad]:
    """The entries of a run in order, each checked against the one before; ends at the first bad one."""
    prev, expected, at = GENESIS, 1, 0
    for seq, body, stored in rows:
        problem, entry = _link(seq, body, stored, run, prev, expected, at)
        if problem is not None or entry is None:
            yield Bad(expected, problem or "unreadable")
            return
        yield entry, stored
        prev, expected, at = stored, expected + 1, entry.at


def _link(
    seq: int, body: bytes, stored: str, run: str, prev: str, expected: int, at: int
) -> tuple[str | None, Entry | None]:
    if seq != expected:
        return f"entry {expected} is missing, the next one is {seq}", None
    if digest(body) != stored:
        return f"entry {seq} does not have the hash it was stored with", None
    try:
        entry = read(body)
    except msgspec.MsgspecError as error:
        return f"entry {seq} cannot be read: {error}", None
    if entry.prev != prev or entry.seq != seq or entry.run != run:
        return f"entry {seq} does not follow entry {seq - 1} of run {run}", None
    if entry.at < at:
        return f"entry {seq} is earlier than entry {seq - 1}", None
    if canonical(entry) != body:
        return f"entry {seq} is not in canonical form", None
    return None, entry


def rebuilt(rows: Iterable[Row], run: str, snapshot: Snapshot | None = None) -> Snapshot | Bad:
    """The run after the last of these entries, or the first bad one."""
    for link in chain(rows, run):
        if isinstance(link, Bad):
            return link
        snapshot = applied(snapshot, link[0], link[1])
    return snapshot if snapshot is not None else Bad(1, "the run has no entry")


def typed(m: Machine, snapshot: Snapshot) -> Snapshot:
    """The same run with its context as the machine's own type, upcast from the version it was written in."""
    context = dict(snapshot.context)
    version = snapshot.context_version
    while version < m.context_version:
        up = m.upcasts.get(version)
        if up is None:
            raise ContractError(
                f"run {snapshot.run}: context version {version} has no upcaster; run `steersman machine migrate {snapshot.run}`"
            )
        context, version = up(context), version + 1
    new = copy(snapshot)
    try:
        new.context = msgspec.convert(context, m.context)
    except msgspec.ValidationError as error:
        raise ContractError(
            f"run {snapshot.run}: its context does not fit machine {m.name}: {error}; run `steersman machine migrate {snapshot.run}`"
        ) from error
    new.context_version = version
    return new


def carried(m: Machine, entry: Entry) -> Any:
    """What an entry's event carries, as its own type, upcast."""
    event = m.events[entry.event]
    data, version = entry.data, entry.event_version
    while version < event.version:
        data, version = event.upcasts[version](data), version + 1
    return msgspec.convert(data if data is not None else {}, event.carries)


@dataclass(frozen=True, slots=True)
class Decision:
    """What deciding an entry again gave."""

    seq: int
    verdict: Literal["same", "different", "other version"]
    detail: str = ""


def redecided(m: Machine, entries: Iterable[tuple[Entry, str]]) -> Iterator[Decision]:
    """Every recorded transition decided again where the definition is the recorded one."""
    snapshot: Snapshot | None = None
    for entry, hash_ in entries:
        if entry.kind in ("created", "transition"):
            current = entry.definition or (snapshot.definition if snapshot else "")
            if current != m.digest:
                yield Decision(entry.seq, "other version", current)
            else:
                yield _again(m, snapshot, entry)
        snapshot = applied(snapshot, entry, hash_)


def _again(m: Machine, snapshot: Snapshot | None, entry: Entry) -> Decision:
    before = typed(m, snapshot) if snapshot is not None else None
    happened = _happened(m, before, entry)
    context = msgspec.convert(entry.context, m.context) if before is None else None
    again = step(m, before, happened, context)
    if isinstance(again, Refused):
        return Decision(entry.seq, "different", again.why)
    recorded = (entry.source, entry.event, entry.guards, entry.to, plain(entry.ops), plain(entry.counts))
    now = (
        again.source,
        happened.event.name,
        again.guards,
        again.to,
        plain(_told(again, before)),
        plain(again.counts),
    )
    return Decision(
        entry.seq, "same" if recorded == now else "different", "" if recorded == now else str(now)
    )


def _told(taken: Taken, before: Snapshot | None) -> Any:
    # The creation's ops are part of the context that the entry carries.
    return taken.ops if before is not None else ()


def _happened(m: Machine, before: Snapshot | None, entry: Entry) -> Happened:
    event = m.events[entry.event]
    item: Item | None = before.items.get(entry.cause) if before is not None else None
    data = carried(m, entry)
    if item is not None and before is not None and item.job in m.namings:
        return name_facts(m, before, item.job, data)
    if event.origin is Origin.MACHINE and before is not None:
        return compute(m, before.context, before.counts, before.state) or Happened(event, data, event.origin)
    return Happened(event, data, event.origin)


def decision_hash(entries: Iterable[Entry]) -> str:
    """One digest over what was decided (from, event, guards, to) and the trees it was decided about."""
    told = [
        [
            e.source,
            e.event,
            e.guards,
            e.to,
            (e.data or {}).get("tree", "") if isinstance(e.data, dict) else "",
        ]
        for e in entries
        if e.kind in ("created", "transition", "override")
    ]
    return digest(canonical(told))
