"""From tape to state, and back to the decisions: rebuild, verify the chain, decide again.

State is rebuilt only by applying recorded ops, on plain data, without the machine's code: what changes later in a
machine cannot change the past.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Literal

import msgspec

from steersman.errors import ContractError
from steersman.kernel.build import KERNEL_VERSION, Machine, part
from steersman.kernel.canonical import canonical, digest, plain
from steersman.kernel.definition import Origin
from steersman.kernel.ops import changed_plain, tallied
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import Happened, Refused, Taken, compute, name_facts, override, step
from steersman.kernel.tape import GENESIS, Entry, read


def applied(
    snapshot: Snapshot | None,
    entry: Entry,
    hash_: str,
    context: Any = None,
    counts: dict[str, int] | None = None,
) -> Snapshot:
    """The run after this entry. A driver that has just computed context and counts hands them in; a reader does not."""
    new: Snapshot = _created(entry) if snapshot is None else snapshot.__copy__()  # type: ignore[attr-defined]  # msgspec's stubs leave it out
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
    closed = entry.closed
    items = {i: item for i, item in new.items.items() if i not in closed}
    for item in entry.held:
        items[item.id] = item
    for item in entry.planned:
        items[item.id] = item
        new.planned = (*new.planned, item.key)
    new.items = items


class Bad(msgspec.Struct, frozen=True):
    """The first record that does not fit, and how."""

    seq: int
    why: str


Row = tuple[int, bytes, str]  # seq, body, hash: as stored


def chain(rows: Iterable[Row], run: str) -> Iterator[tuple[Entry, str] | Bad]:
    """The entries of a run in order, each checked against the one before; ends at the first bad one."""
    prev, expected, at = GENESIS, 1, 0
    for row in rows:
        if row[0] != expected:
            yield Bad(expected, f"entry {expected} is missing, the next one is {row[0]}")
            return
        entry = _link(row, run, prev, at)
        if isinstance(entry, str):
            yield Bad(expected, f"entry {expected} {entry}")
            return
        yield entry, row[2]
        prev, expected, at = row[2], expected + 1, entry.at


def _link(row: Row, run: str, prev: str, at: int) -> Entry | str:
    """The entry of a stored row, or what is wrong with it."""
    seq, body, stored = row
    if digest(body) != stored:
        return "does not have the hash it was stored with"
    try:
        entry = read(body)
    except msgspec.MsgspecError as error:
        return f"cannot be read: {error}"
    if entry.prev != prev or entry.seq != seq or entry.run != run:
        return f"does not follow entry {seq - 1} of run {run}"
    if entry.at < at:
        return f"is earlier than entry {seq - 1}"
    if canonical(entry) != body:
        return "is not in canonical form"
    return entry


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
    if version > m.context_version:
        raise ContractError(
            f"run {snapshot.run}: its context is version {version}, this {m.name} knows {m.context_version}: upgrade steersman"
        )
    while version < m.context_version:
        up = m.upcasts.get(version)
        if up is None:
            raise ContractError(
                f"run {snapshot.run}: this {m.name} has no upcaster for context version {version}: go on with the steersman that began it"
            )
        context, version = up(context), version + 1
    new = copy(snapshot)
    try:
        new.context = msgspec.convert(context, m.context)
    except msgspec.ValidationError as error:
        raise ContractError(
            f"run {snapshot.run}: its context does not fit this {m.name} ({error}): go on with the steersman that began it"
        ) from error
    new.context_version = version
    return new


def carried(m: Machine, entry: Entry) -> Any:
    """What an entry's event carries, as its own type, upcast from the version it was written in."""
    event = m.events[entry.event]
    data, version = entry.data, entry.event_version
    while version < event.version:
        up = event.upcasts.get(version)
        if up is None:
            raise ContractError(
                f"run {entry.run}, entry {entry.seq}: {event.name} version {version} has no upcaster: this {m.name} cannot read it"
            )
        data, version = up(data), version + 1
    return msgspec.convert(data if data is not None else {}, event.carries)


class Decision(msgspec.Struct, frozen=True):
    """What deciding an entry again gave."""

    seq: int
    verdict: Literal["same", "different", "other version"]
    detail: str = ""


DECISIONS = ("created", "transition", "override")


def redecided(
    m: Machine, entries: Iterable[tuple[Entry, str]], definitions: Mapping[str, Any] | None = None
) -> Iterator[Decision]:
    """Every recorded decision taken again, where what decided it then is what would decide it now.

    `definitions` are the ones that the store keeps, by digest: with them an entry of another version is decided again
    where the part of the machine in its state is the same.
    """
    snapshot: Snapshot | None = None
    for entry, hash_ in entries:
        # A run that was forked begins with what it was given, not with a decision.
        if entry.kind in DECISIONS and entry.event:
            made = entry.definition or (snapshot.definition if snapshot else "")
            version = entry.context_version or (snapshot.context_version if snapshot else 1)
            if made == m.digest or _unchanged(m, (definitions or {}).get(made), entry.source, version):
                yield _again(m, snapshot, entry)
            else:
                yield Decision(entry.seq, "other version", made)
        snapshot = applied(snapshot, entry, hash_)


def _unchanged(m: Machine, old: Any, state: str | None, version: int) -> bool:
    if old is None or old["kernel"] != KERNEL_VERSION or version != m.context_version:
        return False
    then = old["creation"] if state is None else old["states"][state]
    return state in (None, *m.states) and bool(then == plain(part(m, state)))


def _again(m: Machine, snapshot: Snapshot | None, entry: Entry) -> Decision:
    before = typed(m, snapshot) if snapshot is not None else None
    again = _decide(m, before, entry)
    if isinstance(again, Refused):
        return Decision(entry.seq, "different", again.why)
    recorded = (entry.source, entry.event, entry.guards, entry.to, plain(entry.ops), plain(entry.counts))
    # The creation's ops are part of the context that the entry carries.
    ops = plain(again.ops) if before is not None else []
    now = (again.source, again.happened.event.name, again.guards, again.to, ops, plain(again.counts))
    return Decision(entry.seq, "same") if recorded == now else Decision(entry.seq, "different", str(now))


def _decide(m: Machine, before: Snapshot | None, entry: Entry) -> Taken | Refused:
    if before is None:
        event = m.events[entry.event]
        return step(
            m,
            None,
            Happened(event, carried(m, entry), event.origin),
            msgspec.convert(entry.context, m.context),
        )
    if entry.kind == "override":
        return override(m, before, entry.to, entry.why)
    return step(m, before, _happened(m, before, entry))


def _happened(m: Machine, before: Snapshot, entry: Entry) -> Happened:
    event, data = m.events[entry.event], carried(m, entry)
    item = before.items.get(entry.cause)
    if item is not None and item.job in m.namings:
        return name_facts(m, before, item.job, data)
    if event.origin is Origin.MACHINE:
        return compute(m, before.context, before.counts, before.state) or Happened(event, data, event.origin)
    return Happened(event, data, event.origin)


def decision_hash(entries: Iterable[Entry]) -> str:
    """One digest over what was decided (from, event, guards, to) and the trees it was decided about."""
    told = [[e.source, e.event, e.guards, e.to, _tree(e.data)] for e in entries if e.kind in DECISIONS]
    return digest(canonical(told))


def _tree(data: Any) -> Any:
    return data.get("tree", "") if isinstance(data, dict) else getattr(data, "tree", "")
