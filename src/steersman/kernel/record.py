"""A step becomes entries: what the runtime appends, computed here without a clock or a store."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

from steersman.errors import DefinitionError, UserError
from steersman.kernel.build import Machine
from steersman.kernel.definition import Origin
from steersman.kernel.replay import applied
from steersman.kernel.snapshot import Item, Snapshot, state_hash
from steersman.kernel.step import CHAIN, Happened, Planned, Refused, Taken, compute, step, work
from steersman.kernel.tape import GENESIS, Entry, Retry, Sealed, sealed

BUDGET = "budget"  # the gate that no machine declares


class Meta(msgspec.Struct, frozen=True, gc=False):
    """What surrounds a step: when, who, because of what, at what cost."""

    at: int
    actor: str = "steersman"
    cause: str = ""
    closes: tuple[str, ...] = ()
    took: int | None = None
    spent: dict[str, int] | None = None
    retry: Retry | None = None
    why: str = ""
    hold: str = ""  # the budget figure that is used up: agents planned now wait at a gate


class Advance(msgspec.Struct, frozen=True, gc=False):
    """Entries to append in one commit, and the run after them."""

    entries: tuple[Sealed, ...]
    snapshot: Snapshot
    refused: Refused | None = None


def create(
    m: Machine,
    run: str,
    happened: Happened,
    context: Any,
    meta: Meta,
    *,
    root: str = "",
    parent: str = "",
    title: str = "",
    epoch: int = 0,
) -> Advance:
    """A new run: its creation row, and whatever the machine computes from there."""
    _fits(m, context)
    taken = step(m, None, happened, context)
    if isinstance(taken, Refused):
        raise DefinitionError(f"{m.name}: {taken.why}")
    entry = Entry(
        run=run,
        seq=1,
        at=meta.at,
        kind="created",
        prev=GENESIS,
        actor=meta.actor,
        event=happened.event.name,
        event_version=happened.event.version,
        data=happened.data,
        guards=taken.guards,
        to=taken.to,
        counts=taken.counts,
        planned=items(m, run, 1, 1, taken.planned, meta),
        why=meta.why,
        epoch=epoch,
        definition=m.digest,
        machine=m.name,
        context=msgspec.to_builtins(taken.context),
        context_version=m.context_version,
        root=root or run,
        parent=parent,
        title=title,
    )
    stored = sealed(entry)
    snapshot = applied(None, entry, stored.hash, taken.context, taken.tally)
    return onward(m, [stored], snapshot, structs.replace(meta, why=""))  # said once


def _fits(m: Machine, context: Any) -> None:
    """A run begins where the model check began: with a declared constant, with the first value of each memory."""
    for name, values in m.constants.items():
        given = getattr(context, name)
        if given not in values:
            told = ", ".join(str(v) for v in values)
            raise UserError(f"{m.name}: {name} is one of {told}, not {given!r}")
    for name, values in m.memory.items():
        if getattr(context, name) != values[0]:
            raise DefinitionError(
                f"{m.name}: a run begins with {name} {values[0]!r}, not {getattr(context, name)!r}"
            )


def advance(m: Machine, snapshot: Snapshot, happened: Happened, meta: Meta) -> Advance:
    """One step with the computed ones that follow it; a refusal is an entry too."""
    taken = step(m, snapshot, happened)
    if isinstance(taken, Refused):
        return refuse(snapshot, taken, meta)
    stored, snapshot = _entry(m, snapshot, taken, meta)
    if snapshot.state not in m.eventful:
        return Advance((stored,), snapshot)
    return onward(m, [stored], snapshot, meta)


def overridden(m: Machine, snapshot: Snapshot, taken: Taken, meta: Meta) -> Advance:
    """The entries of a waived guard."""
    stored, snapshot = _entry(m, snapshot, taken, structs.replace(meta, why=taken.waived), kind="override")
    return onward(m, [stored], snapshot, meta)


def migrated(m: Machine, snapshot: Snapshot, meta: Meta) -> Advance:
    """A paused run under the machine as it is now: jobs that it no longer has are over, the state's work is planned."""
    if snapshot.state not in m.states:
        raise UserError(
            f"run {snapshot.run} is in {snapshot.state}, which this {m.name} does not have: go on with the steersman that began it"
        )
    fresh = (
        () if snapshot.ended else work(m, snapshot.state, snapshot.context, snapshot.counts, snapshot.planned)
    )
    stored, after = note(
        snapshot,
        meta,
        "migrated",
        definition=m.digest,
        context=msgspec.to_builtins(snapshot.context),
        context_version=m.context_version,
        closed=tuple(i.id for i in snapshot.items.values() if i.job not in m.jobs and i.job != BUDGET),
        planned=items(m, snapshot.run, snapshot.seq + 1, snapshot.visit, fresh, meta),
    )
    after.context = snapshot.context
    return Advance((stored,), after) if snapshot.ended else onward(m, [stored], after, meta)


def onward(m: Machine, entries: list[Sealed], snapshot: Snapshot, meta: Meta) -> Advance:
    """Adds computed steps in the same commit, then the seal when the run has reached its outcome."""
    for _ in range(CHAIN + 1):
        happened = compute(m, snapshot.context, snapshot.counts, snapshot.state)
        if happened is None:
            break
        taken = step(m, snapshot, happened)
        if isinstance(taken, Refused):
            raise DefinitionError(
                f"{m.name}: in {snapshot.state} the machine computes {taken.event}, but {taken.why}"
            )
        stored, snapshot = _entry(m, snapshot, taken, Meta(meta.at, hold=meta.hold))
        entries.append(stored)
    else:
        raise DefinitionError(
            f"{m.name}: more than {CHAIN} computed steps in a row, last in {snapshot.state}"
        )
    if snapshot.state in m.settled and snapshot.visit >= entries[0].entry.seq:
        stored, snapshot = note(snapshot, Meta(meta.at), "sealed", state_hash=state_hash(snapshot))
        entries.append(stored)
    return Advance(tuple(entries), snapshot)


def _entry(
    m: Machine, snapshot: Snapshot, taken: Taken, meta: Meta, kind: Any = "transition"
) -> tuple[Sealed, Snapshot]:
    seq = snapshot.seq + 1
    visit = snapshot.visit if taken.stay else seq
    happened = taken.happened
    at = meta.at if meta.at > snapshot.at else snapshot.at  # noqa: FURB136  half the time of max()
    planned = items(m, snapshot.run, seq, visit, taken.planned, meta) if taken.planned else ()
    closed = _closed(snapshot, taken, meta) if snapshot.items else ()
    # In the order of the fields: this is the one place that is as fast as it can be.
    entry = Entry(
        snapshot.run, seq, at, kind, snapshot.hash, meta.actor, meta.cause, taken.source, happened.event.name,
        happened.event.version, happened.data, taken.guards, taken.to, taken.stay, taken.ops, taken.counts, planned,
        closed, (), meta.spent or {}, meta.retry, meta.took, False, meta.why,
    )  # fmt: skip
    stored = sealed(entry)
    return stored, applied(snapshot, entry, stored.hash, taken.context, taken.tally)


def _closed(snapshot: Snapshot, taken: Taken, meta: Meta) -> tuple[str, ...]:
    if taken.stay:
        return meta.closes
    left = [i.id for i in snapshot.items.values() if not i.outlives and i.id not in meta.closes]
    return (*meta.closes, *left) if left else meta.closes


def items(
    m: Machine, run: str, seq: int, visit: int, planned: Iterable[Planned], meta: Meta
) -> tuple[Item, ...]:
    """Planned jobs as items of the entry that plans them; with a used-up budget agents are held at a gate."""
    items = tuple(
        [
            Item(
                f"{run}:{seq}:{n}",
                p.job,
                p.kind,
                p.key,
                p.input,
                visit,
                1,
                1,
                _due(p, meta.at) if "after_ms" in p.input else None,
                p.outlives,
            )
            for n, p in enumerate(planned, 1)
        ]
    )
    return items if not meta.hold else _held(m, run, seq, visit, items, meta.hold)


def _held(
    m: Machine, run: str, seq: int, visit: int, items: tuple[Item, ...], figure: str
) -> tuple[Item, ...]:
    held = [structs.replace(i, held=i.kind == "effect" and m.jobs[i.job].does == "agent") for i in items]
    if any(i.held for i in held):
        held.append(budget_gate(run, seq, len(held) + 1, visit, figure))
    return tuple(held)


def budget_gate(run: str, seq: int, n: int, visit: int, figure: str) -> Item:
    """The gate at which a used-up budget is raised, or the run stopped."""
    shown = {"digest": f"budget:{seq}:{figure}", "choices": ["raise", "stop"], "shown": {"figure": figure}}
    return Item(f"{run}:{seq}:{n}", BUDGET, "gate", BUDGET, shown, visit)


def _due(p: Planned, at: int) -> int:
    return at + int(p.input["after_ms"])


def refuse(snapshot: Snapshot, refused: Refused, meta: Meta) -> Advance:
    """A refusal on tape: what was tried, why not, what is legal now; it changes nothing."""
    stored, after = note(
        snapshot,
        meta,
        "refused",
        event=refused.event,
        why=refused.why,
        guards=refused.guards,
        legal=refused.legal,
        source=snapshot.state,
    )
    return Advance((stored,), after, refused)


def note(snapshot: Snapshot, meta: Meta, kind: Any, **fields: Any) -> tuple[Sealed, Snapshot]:
    """An entry that takes no row."""
    closed = (*meta.closes, *fields.pop("closed", ()))
    fields.setdefault("why", meta.why)
    entry = Entry(
        run=snapshot.run,
        seq=snapshot.seq + 1,
        at=max(meta.at, snapshot.at),
        kind=kind,
        prev=snapshot.hash,
        actor=meta.actor,
        cause=meta.cause,
        closed=closed,
        spent=meta.spent or {},
        took=meta.took,
        retry=meta.retry,
        **fields,
    )
    stored = sealed(entry)
    return stored, applied(snapshot, entry, stored.hash)


def late(snapshot: Snapshot, meta: Meta, facts: Any) -> Advance:
    """A result that came after its state was left: journaled, not folded."""
    stored, after = note(snapshot, meta, "effect_finished", data=facts, late=True)
    return Advance((stored,), after)


def outcome(m: Machine, snapshot: Snapshot) -> str:
    """The outcome a run has, or nothing."""
    if snapshot.ended:
        return snapshot.ended
    if snapshot.state not in m.settled:
        return ""
    return str(getattr(snapshot.context, "outcome", None) or snapshot.state)


def status(m: Machine, snapshot: Snapshot) -> str:
    """One of the six words that every machine shows beside its own state ('broken' is the store's to say)."""
    if snapshot.ended:
        return "stopped"
    items = snapshot.items.values()
    if any(i.kind in ("effect", "child") and i.due is None and not i.held for i in items):
        return "working"
    if any(i.kind == "gate" for i in items):
        return "waiting for you"
    if items:
        return "waiting until"
    if snapshot.state in m.settled:
        return "done" if outcome(m, snapshot) in m.successes else "stopped"
    return "waiting for you"


__all__ = [
    "Advance",
    "Meta",
    "Origin",
    "advance",
    "create",
    "items",
    "late",
    "migrated",
    "note",
    "onward",
    "outcome",
    "overridden",
    "refuse",
    "status",
]
