"""One step: `step(machine, snapshot, happened) -> Taken | Refused`, pure and total.

An illegal event is an answer, not an exception. Nothing is executed here: the jobs that a step plans are values.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.errors import DefinitionError
from steersman.kernel.build import Machine, limit_of
from steersman.kernel.definition import (
    STAY,
    Cap,
    EventDef,
    Fold,
    Guard,
    Origin,
    Pairs,
    Row,
    StateDef,
    otherwise,
)
from steersman.kernel.ops import Op, changed, tallied
from steersman.kernel.snapshot import Snapshot

CHAIN = 8  # computed events in a row; more is a loop that the check missed


class Planned(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A job that starts with this step: the commit that plans it counts as its start."""

    job: str
    kind: str
    key: str
    input: dict[str, Any]
    outlives: bool = False


class Happened(msgspec.Struct, frozen=True, gc=False):
    """An event with what it carries and who caused it."""

    event: EventDef
    data: Any
    origin: Origin
    guards: dict[str, bool] | None = None  # what naming it has evaluated


class Taken(msgspec.Struct, frozen=True, gc=False):
    """A row was taken: what it changed and what it starts."""

    row: Row
    happened: Happened
    source: str | None
    to: str
    stay: bool
    guards: dict[str, bool]
    ops: tuple[Op, ...]
    counts: tuple[Op, ...]
    context: Any
    tally: dict[str, int]
    planned: tuple[Planned, ...]
    waived: str = ""


class Refused(msgspec.Struct, frozen=True, gc=False):
    """No row was taken: why, and what is legal now."""

    event: str
    why: str
    guards: dict[str, bool]
    legal: tuple[str, ...]


def legal(
    m: Machine, state: str | None, origin: Origin | None = None, context: Any = None
) -> tuple[str, ...]:
    """The events that have a row in this state, in the order of the table; with a context, that may fit now."""
    return tuple(
        event
        for (source, event), rows in m.lookup.items()
        if source == state
        and (origin is None or m.events[event].origin is origin)
        and (context is None or any(_may_fit(row.when, context) for row in rows))
    )


def _may_fit(guard: Guard, context: Any) -> bool:
    """A guard that looks at what an event carries may hold for some event; one over the context is asked."""
    return not guard.reads or guard.test(context, None) is True


def name_facts(m: Machine, snapshot: Snapshot, job: str, facts: Any) -> Happened:
    """Facts become the specification's event: the first guard that fits names it; all are evaluated."""
    n = m.namings[job]
    event, guards = _first_fit(snapshot.context, snapshot.counts, n.pairs, facts)
    assert event is not None  # noqa: S101  the build refuses a naming without otherwise
    return Happened(event, facts, event.origin, guards)


def compute(m: Machine, context: Any, counts: dict[str, int], state: str) -> Happened | None:
    """The event that the machine itself brings about here, or None."""
    c = m.computed.get(state)
    if c is None:
        return None
    event, guards = _first_fit(context, counts, c.pairs, None)
    if event is None:
        return None
    return Happened(event, event.carries(), Origin.MACHINE, guards)


def _first_fit(
    context: Any, counts: dict[str, int], pairs: Pairs, data: Any
) -> tuple[EventDef | None, dict[str, bool]]:
    found = None
    guards: dict[str, bool] = {}
    for guard, event in pairs:
        yes = guard is otherwise or (
            guard.test(context, data) is True
            if guard.cap is None
            else _room(guard.cap, context, data, counts)
        )
        guards[guard.name] = yes
        if yes and found is None:
            found = event
    return found, guards


def holds(guard: Guard, context: Any, data: Any, counts: dict[str, int]) -> bool:
    """A guard's answer."""
    if guard.cap is not None:
        return _room(guard.cap, context, data, counts)
    return guard.test(context, data) is True


def _room(cap: Cap, context: Any, data: Any, counts: dict[str, int]) -> bool:
    return counts.get(_cap_key(cap, context, data), 0) < limit_of(cap, context)


def _cap_key(cap: Cap, context: Any, data: Any) -> str:
    return cap.name if cap.per is None else f"{cap.name}:{cap.per(context, data)}"


def step(m: Machine, snapshot: Snapshot | None, happened: Happened, context: Any = None) -> Taken | Refused:
    """Takes the first row whose event, cap and guard fit; with no snapshot, a row that creates a run."""
    state, counts = (snapshot.state, snapshot.counts) if snapshot is not None else (None, _NO_COUNTS)
    context = snapshot.context if snapshot is not None else context
    event, data = happened.event, happened.data
    if happened.origin is not event.origin:
        return _refuse(
            m,
            state,
            happened,
            context,
            f"{event.name} comes from {event.origin.value}, not from {happened.origin.value}",
        )
    guards = happened.guards or {}
    for row in m.lookup.get((state, event.name), ()):
        if row.cap is not None and not _room(row.cap, context, data, counts):
            guards = {**guards, f"room:{row.cap.name}": False}
            continue
        if row.when is otherwise:
            return _take(m, snapshot, row, happened, guards or _OTHERWISE, context, counts)
        yes = holds(row.when, context, data, counts)
        guards = {**guards, row.when.name: yes}
        if yes:
            return _take(m, snapshot, row, happened, guards, context, counts)
    return _refuse(m, state, happened, context, f"no row for {event.name} in {state} fits now", guards)


_OTHERWISE = {"otherwise": True}  # nothing had to hold
_NO_COUNTS: dict[str, int] = {}


def _refuse(
    m: Machine, state: str | None, h: Happened, context: Any, why: str, guards: dict[str, bool] | None = None
) -> Refused:
    return Refused(h.event.name, why, guards or dict(h.guards or {}), legal(m, state, context=context))


def _take(
    m: Machine,
    snapshot: Snapshot | None,
    row: Row,
    happened: Happened,
    guards: dict[str, bool],
    context: Any,
    counts: dict[str, int],
) -> Taken:
    source, done = (snapshot.state, snapshot.planned) if snapshot is not None else (None, ())
    stay = row.to is STAY
    to = source if stay else row.to.name
    assert to is not None  # noqa: S101  the build refuses a creation row that stays
    fold = m.folds.get(happened.event.name)
    ops: tuple[Op, ...] = (
        (*_folded(m, fold, context, happened.data), *row.setting) if fold is not None else row.setting
    )
    tallies: tuple[Op, ...] = m.resets[happened.event.name]
    if row.cap is not None:
        tallies = (*tallies, ("count", _cap_key(row.cap, context, happened.data), 1))
    new = changed(context, ops, happened.data) if ops else context
    tally = tallied(counts, tallies) if tallies else counts
    planned = work(m, to, new, tally, done if stay else ()) if m.states[to].work else ()
    return Taken(row, happened, source, to, stay, guards, ops, tallies, new, tally, planned)


def _folded(m: Machine, fold: Fold, context: Any, data: Any) -> Sequence[Op]:
    """A fold's ops; what the model check follows exactly is changed by rows alone."""
    ops = fold.do(context, data)
    for op in ops:
        if op[1] in m.tracked:
            raise DefinitionError(
                f"{m.name}: the fold of {fold.on.name} changes {op[1]}, which only a row may set"
            )
    return ops


def work(
    m: Machine, state: str, context: Any, counts: dict[str, int], done: tuple[str, ...]
) -> tuple[Planned, ...]:
    """The jobs of a state that this visit has not planned yet."""
    planned = []
    for d in m.states[state].work:
        if d.when is not otherwise and not holds(d.when, context, None, counts):
            continue
        job = d.job
        if d.each is None:
            if job.name not in done:
                planned.append(Planned(job.name, job.kind, job.name, d.give(context), job.outlives))
        else:
            keyed = [(f"{job.name}/{key}", given) for key, given in d.each(context)]
            planned += [
                Planned(job.name, job.kind, key, given, job.outlives)
                for key, given in keyed
                if key not in done
            ]
    return tuple(planned)


def override(m: Machine, snapshot: Snapshot, to: str, reason: str) -> Taken | Refused:
    """Waives the guard of one direct successor edge that its table allows to waive; never more than that."""
    target = m.states.get(to)
    edges = [
        r
        for (s, _), rows in m.lookup.items()
        if s == snapshot.state
        for r in rows
        if r.waivable is not None and r.to is target
    ]
    why = _not_overridable(m, snapshot, to, reason, target, edges)
    if why:
        return Refused("override", why, {}, legal(m, snapshot.state, context=snapshot.context))
    r = edges[0]
    ops = r.setting
    context = changed(snapshot.context, ops)
    planned = work(m, to, context, snapshot.counts, ())
    happened = Happened(r.on, None, r.on.origin)
    waived = {r.when.name: False}
    return Taken(
        r, happened, snapshot.state, to, False, waived, ops, (), context, snapshot.counts, planned, reason
    )


def _not_overridable(
    m: Machine, snapshot: Snapshot, to: str, reason: str, target: StateDef | None, edges: list[Row]
) -> str:
    if not reason.strip():
        return "an override needs a reason"
    if target is None:
        return f"{m.name} has no state {to}"
    if target.final or target.resting:
        return f"nobody is overridden into {to}: it has to be reached"
    if not edges:
        return f"{to} does not follow {snapshot.state} by an edge that may be waived"
    asked = next((i.job for i in snapshot.items.values() if i.kind == "gate" and not _yields(m, i.job)), None)
    if asked is not None:
        return f"{asked} waits for an answer, and nothing is waived in place of one"
    needs = edges[0].waivable
    if needs is not None and not holds(needs, snapshot.context, None, snapshot.counts):
        return f"nothing may be waived before {needs.sentence}"
    return ""


def _yields(m: Machine, job: str) -> bool:
    """Whether an override may stand in place of this gate's answer; a gate of no machine never yields."""
    return job in m.jobs and m.jobs[job].yields
