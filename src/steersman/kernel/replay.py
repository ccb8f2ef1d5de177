"""Rebuilds a run's state from its tape, verifies the chain of hashes, and decides every entry again.

State is rebuilt by applying the recorded ops to plain data, without the machine's code. A machine that changes later
cannot change the past.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Literal

import msgspec

from steersman.errors import ContractError
from steersman.kernel.canonical import canonical_bytes, plain_value, sha256_hex
from steersman.kernel.definition import Origin
from steersman.kernel.machine import KERNEL_VERSION, Machine, state_definition
from steersman.kernel.ops import apply_count_ops, apply_ops_to_plain
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.step import (
    EventOccurrence,
    StepRefused,
    StepTaken,
    compute_event,
    name_facts,
    override_guard,
    take_step,
)
from steersman.kernel.tape import GENESIS_HASH, Entry, read_entry


def apply_entry(
    snapshot: Snapshot | None,
    entry: Entry,
    hash_: str,
    context: Any = None,
    counts: dict[str, int] | None = None,
) -> Snapshot:
    """The run after this entry. A driver passes the context and counts that it has just computed; a reader does not."""
    new: Snapshot = _initial_snapshot(entry) if snapshot is None else snapshot.__copy__()  # type: ignore[attr-defined]  # msgspec's stubs leave it out
    new.seq, new.hash, new.at = entry.seq, hash_, entry.at
    if entry.kind != "transition":
        _apply_rowless_entry(new, entry)
    if context is not None:
        new.context, new.counts = context, counts if counts is not None else new.counts
    else:
        if entry.ops:
            new.context = apply_ops_to_plain(new.context, entry.ops, entry.data)
        if entry.counts:
            new.counts = apply_count_ops(new.counts, entry.counts)
    if entry.to and not entry.stay:
        new.state, new.visit, new.planned = entry.to, entry.seq, ()
        new.ended = ""
    if entry.planned or entry.closed or entry.held:
        _apply_items(new, entry)
    if entry.spent:
        new.budget = {**new.budget, **{k: new.budget.get(k, 0) + v for k, v in entry.spent.items()}}
    return new


def _apply_rowless_entry(new: Snapshot, entry: Entry) -> None:
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


def _initial_snapshot(entry: Entry) -> Snapshot:
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


def _apply_items(new: Snapshot, entry: Entry) -> None:
    closed = entry.closed
    items = {i: item for i, item in new.items.items() if i not in closed}
    for item in entry.held:
        items[item.id] = item
    for item in entry.planned:
        items[item.id] = item
        new.planned = (*new.planned, item.key)
    new.items = items


class BadEntry(msgspec.Struct, frozen=True):
    """The first record that does not fit, and how."""

    seq: int
    why: str


StoredRow = tuple[int, bytes, str]  # seq, body, hash: as stored


def verify_chain(rows: Iterable[StoredRow], run: str) -> Iterator[tuple[Entry, str] | BadEntry]:
    """The entries of a run in order, each checked against the one before; ends at the first bad one."""
    prev, expected, at = GENESIS_HASH, 1, 0
    for row in rows:
        if row[0] != expected:
            yield BadEntry(expected, f"entry {expected} is missing, the next one is {row[0]}")
            return
        entry = _verify_link(row, run, prev, at)
        if isinstance(entry, str):
            yield BadEntry(expected, f"entry {expected} {entry}")
            return
        yield entry, row[2]
        prev, expected, at = row[2], expected + 1, entry.at


def _verify_link(row: StoredRow, run: str, prev: str, at: int) -> Entry | str:
    """The entry of a stored row, or what is wrong with it."""
    seq, body, stored = row
    if sha256_hex(body) != stored:
        return "does not have the hash it was stored with"
    try:
        entry = read_entry(body)
    except msgspec.MsgspecError as error:
        return f"cannot be read: {error}"
    if entry.prev != prev or entry.seq != seq or entry.run != run:
        return f"does not follow entry {seq - 1} of run {run}"
    if entry.at < at:
        return f"is earlier than entry {seq - 1}"
    if canonical_bytes(entry) != body:
        return "is not in canonical form"
    return entry


def rebuild_snapshot(
    rows: Iterable[StoredRow], run: str, snapshot: Snapshot | None = None
) -> Snapshot | BadEntry:
    """The run after the last of these entries, or the first bad one."""
    for link in verify_chain(rows, run):
        if isinstance(link, BadEntry):
            return link
        snapshot = apply_entry(snapshot, link[0], link[1])
    return snapshot if snapshot is not None else BadEntry(1, "the run has no entry")


def convert_context(machine: Machine, snapshot: Snapshot) -> Snapshot:
    """The same run with its context as the machine's own type, upcast from the version it was written in."""
    context = dict(snapshot.context)
    version = snapshot.context_version
    if version > machine.context_version:
        raise ContractError(
            f"run {snapshot.run}: its context is version {version}, this {machine.name} knows {machine.context_version}: upgrade steersman"
        )
    while version < machine.context_version:
        up = machine.upcasts.get(version)
        if up is None:
            raise ContractError(
                f"run {snapshot.run}: this {machine.name} has no upcaster for context version {version}: go on with the steersman that began it"
            )
        context, version = up(context), version + 1
    new = copy(snapshot)
    try:
        new.context = msgspec.convert(context, machine.context)
    except msgspec.ValidationError as error:
        raise ContractError(
            f"run {snapshot.run}: its context does not fit this {machine.name} ({error}): go on with the steersman that began it"
        ) from error
    new.context_version = version
    return new


def typed_event_data(machine: Machine, entry: Entry) -> Any:
    """What an entry's event carries, as its own type, upcast from the version it was written in."""
    event = machine.events[entry.event]
    data, version = entry.data, entry.event_version
    while version < event.version:
        up = event.upcasts.get(version)
        if up is None:
            raise ContractError(
                f"run {entry.run}, entry {entry.seq}: {event.name} version {version} has no upcaster: this {machine.name} cannot read it"
            )
        data, version = up(data), version + 1
    return msgspec.convert(data if data is not None else {}, event.carries)


class RepeatedDecision(msgspec.Struct, frozen=True):
    """What deciding an entry again gave."""

    seq: int
    verdict: Literal["same", "different", "other version"]
    detail: str = ""


DECIDING_KINDS = ("created", "transition", "override")


def repeat_decisions(
    machine: Machine, entries: Iterable[tuple[Entry, str]], definitions: Mapping[str, Any] | None = None
) -> Iterator[RepeatedDecision]:
    """Every recorded decision taken again, where what decided it then is what would decide it now.

    `definitions` are the ones that the store keeps, by digest: with them an entry of another version is decided again
    where the part of the machine in its state is the same.
    """
    snapshot: Snapshot | None = None
    for entry, hash_ in entries:
        # A run that was forked begins with what it was given, not with a decision.
        if entry.kind in DECIDING_KINDS and entry.event:
            definition_digest = entry.definition or (snapshot.definition if snapshot else "")
            version = entry.context_version or (snapshot.context_version if snapshot else 1)
            if definition_digest == machine.digest or _is_state_unchanged(
                machine, (definitions or {}).get(definition_digest), entry.source, version
            ):
                yield _repeat_decision(machine, snapshot, entry)
            else:
                yield RepeatedDecision(entry.seq, "other version", definition_digest)
        snapshot = apply_entry(snapshot, entry, hash_)


def _is_state_unchanged(machine: Machine, old: Any, state: str | None, version: int) -> bool:
    if old is None or old["kernel"] != KERNEL_VERSION or version != machine.context_version:
        return False
    then = old["creation"] if state is None else old["states"][state]
    return state in (None, *machine.states) and bool(then == plain_value(state_definition(machine, state)))


def _repeat_decision(machine: Machine, snapshot: Snapshot | None, entry: Entry) -> RepeatedDecision:
    before = convert_context(machine, snapshot) if snapshot is not None else None
    again = _decide_entry(machine, before, entry)
    if isinstance(again, StepRefused):
        return RepeatedDecision(entry.seq, "different", again.why)
    recorded = (
        entry.source,
        entry.event,
        entry.guards,
        entry.to,
        plain_value(entry.ops),
        plain_value(entry.counts),
    )
    # The creation's ops are part of the context that the entry carries.
    ops = plain_value(again.ops) if before is not None else []
    now = (again.source, again.happened.event.name, again.guards, again.to, ops, plain_value(again.counts))
    return (
        RepeatedDecision(entry.seq, "same")
        if recorded == now
        else RepeatedDecision(entry.seq, "different", str(now))
    )


def _decide_entry(machine: Machine, before: Snapshot | None, entry: Entry) -> StepTaken | StepRefused:
    if before is None:
        event = machine.events[entry.event]
        return take_step(
            machine,
            None,
            EventOccurrence(event, typed_event_data(machine, entry), event.origin),
            msgspec.convert(entry.context, machine.context),
        )
    if entry.kind == "override":
        return override_guard(machine, before, entry.to, entry.why)
    return take_step(machine, before, _rebuild_occurrence(machine, before, entry))


def _rebuild_occurrence(machine: Machine, before: Snapshot, entry: Entry) -> EventOccurrence:
    event, data = machine.events[entry.event], typed_event_data(machine, entry)
    item = before.items.get(entry.cause)
    if item is not None and item.job in machine.namings:
        return name_facts(machine, before, item.job, data)
    if event.origin is Origin.MACHINE:
        return compute_event(machine, before.context, before.counts, before.state) or EventOccurrence(
            event, data, event.origin
        )
    return EventOccurrence(event, data, event.origin)


def decision_hash(entries: Iterable[Entry]) -> str:
    """One digest over what was decided (from, event, guards, to) and the trees it was decided about."""
    decisions = [
        [e.source, e.event, e.guards, e.to, _event_data_tree(e.data)]
        for e in entries
        if e.kind in DECIDING_KINDS
    ]
    return sha256_hex(canonical_bytes(decisions))


def _event_data_tree(data: Any) -> Any:
    return data.get("tree", "") if isinstance(data, dict) else getattr(data, "tree", "")
