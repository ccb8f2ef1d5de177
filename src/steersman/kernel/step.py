"""Decides one event: `take_step(machine, snapshot, occurrence)` returns the row that is taken, or a refusal.

An illegal event is a refusal, not an exception. Nothing is executed here: the jobs that a step plans are values.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from steersman.errors import DefinitionError
from steersman.kernel.definition import (
    STAY,
    Cap,
    EventDef,
    Fold,
    Guard,
    NamingPairs,
    Origin,
    Row,
    StateDef,
    otherwise,
)
from steersman.kernel.machine import Machine, cap_limit
from steersman.kernel.ops import Op, apply_count_ops, apply_ops
from steersman.kernel.snapshot import Snapshot

MAX_COMPUTED_STEPS = 8  # computed events in a row; more is a loop that the check missed


class PlannedJob(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A job that starts with this step: the commit that plans it counts as its start."""

    job: str
    kind: str
    key: str
    input: dict[str, Any]
    outlives: bool = False


class EventOccurrence(msgspec.Struct, frozen=True, gc=False):
    """An event with what it carries and who caused it."""

    event: EventDef
    data: Any
    origin: Origin
    guards: dict[str, bool] | None = None  # what naming it has evaluated


class StepTaken(msgspec.Struct, frozen=True, gc=False):
    """A row was taken: what it changed and what it starts."""

    row: Row
    happened: EventOccurrence
    source: str | None
    to: str
    stay: bool
    guards: dict[str, bool]
    ops: tuple[Op, ...]
    counts: tuple[Op, ...]
    context: Any
    tally: dict[str, int]
    planned: tuple[PlannedJob, ...]
    waived: str = ""


class StepRefused(msgspec.Struct, frozen=True, gc=False):
    """No row was taken: why, and what is legal now."""

    event: str
    why: str
    guards: dict[str, bool]
    legal: tuple[str, ...]


def legal_events(
    machine: Machine, state: str | None, origin: Origin | None = None, context: Any = None
) -> tuple[str, ...]:
    """The events that have a row in this state, in the order of the table; with a context, that may fit now."""
    return tuple(
        event
        for (source, event), rows in machine.lookup.items()
        if source == state
        and (origin is None or machine.events[event].origin is origin)
        and (context is None or any(_can_guard_hold(row.when, context) for row in rows))
    )


def _can_guard_hold(guard: Guard, context: Any) -> bool:
    """A guard that looks at what an event carries may hold for some event; one over the context is asked."""
    return not guard.reads or guard.test(context, None) is True


def name_facts(machine: Machine, snapshot: Snapshot, job: str, facts: Any) -> EventOccurrence:
    """The specification's event for some facts: the first guard that fits names it, and all guards are evaluated."""
    n = machine.namings[job]
    event, guards = _find_first_fit(snapshot.context, snapshot.counts, n.pairs, facts)
    assert event is not None  # noqa: S101  the build refuses a naming without otherwise
    return EventOccurrence(event, facts, event.origin, guards)


def compute_event(
    machine: Machine, context: Any, counts: dict[str, int], state: str
) -> EventOccurrence | None:
    """The event that the machine itself brings about here, or None."""
    naming = machine.computed.get(state)
    if naming is None:
        return None
    event, guards = _find_first_fit(context, counts, naming.pairs, None)
    if event is None:
        return None
    return EventOccurrence(event, event.carries(), Origin.MACHINE, guards)


def _find_first_fit(
    context: Any, counts: dict[str, int], pairs: NamingPairs, data: Any
) -> tuple[EventDef | None, dict[str, bool]]:
    first_event = None
    guards: dict[str, bool] = {}
    for guard, event in pairs:
        yes = guard is otherwise or (
            guard.test(context, data) is True
            if guard.cap is None
            else _has_cap_room(guard.cap, context, data, counts)
        )
        guards[guard.name] = yes
        if yes and first_event is None:
            first_event = event
    return first_event, guards


def is_guard_satisfied(guard: Guard, context: Any, data: Any, counts: dict[str, int]) -> bool:
    """A guard's answer."""
    if guard.cap is not None:
        return _has_cap_room(guard.cap, context, data, counts)
    return guard.test(context, data) is True


def _has_cap_room(cap: Cap, context: Any, data: Any, counts: dict[str, int]) -> bool:
    return counts.get(_cap_key(cap, context, data), 0) < cap_limit(cap, context)


def _cap_key(cap: Cap, context: Any, data: Any) -> str:
    return cap.name if cap.per is None else f"{cap.name}:{cap.per(context, data)}"


def take_step(
    machine: Machine, snapshot: Snapshot | None, occurrence: EventOccurrence, context: Any = None
) -> StepTaken | StepRefused:
    """Takes the first row whose event, cap and guard fit; with no snapshot, a row that creates a run."""
    state, counts = (snapshot.state, snapshot.counts) if snapshot is not None else (None, _NO_COUNTS)
    context = snapshot.context if snapshot is not None else context
    event, data = occurrence.event, occurrence.data
    if occurrence.origin is not event.origin:
        return _refuse_step(
            machine,
            state,
            occurrence,
            context,
            f"{event.name} comes from {event.origin.value}, not from {occurrence.origin.value}",
        )
    guards = occurrence.guards or {}
    for row in machine.lookup.get((state, event.name), ()):
        if row.cap is not None and not _has_cap_room(row.cap, context, data, counts):
            guards = {**guards, f"room:{row.cap.name}": False}
            continue
        if row.when is otherwise:
            return _take_row(machine, snapshot, row, occurrence, guards or _OTHERWISE_GUARDS, context, counts)
        yes = is_guard_satisfied(row.when, context, data, counts)
        guards = {**guards, row.when.name: yes}
        if yes:
            return _take_row(machine, snapshot, row, occurrence, guards, context, counts)
    return _refuse_step(
        machine, state, occurrence, context, f"no row accepts {event.name} in {state} now", guards
    )


_OTHERWISE_GUARDS = {"otherwise": True}  # nothing had to hold
_NO_COUNTS: dict[str, int] = {}


def _refuse_step(
    machine: Machine,
    state: str | None,
    occurrence: EventOccurrence,
    context: Any,
    why: str,
    guards: dict[str, bool] | None = None,
) -> StepRefused:
    return StepRefused(
        occurrence.event.name,
        why,
        guards or dict(occurrence.guards or {}),
        legal_events(machine, state, context=context),
    )


def _take_row(
    machine: Machine,
    snapshot: Snapshot | None,
    row: Row,
    occurrence: EventOccurrence,
    guards: dict[str, bool],
    context: Any,
    counts: dict[str, int],
) -> StepTaken:
    source, keys = (snapshot.state, snapshot.planned) if snapshot is not None else (None, ())
    stay = row.to is STAY
    to = source if stay else row.to.name
    assert to is not None  # noqa: S101  the build refuses a creation row that stays
    fold = machine.folds.get(occurrence.event.name)
    ops: tuple[Op, ...] = (
        (*_fold_ops(machine, fold, context, occurrence.data), *row.setting)
        if fold is not None
        else row.setting
    )
    tallies: tuple[Op, ...] = machine.resets[occurrence.event.name]
    if row.cap is not None:
        tallies = (*tallies, ("count", _cap_key(row.cap, context, occurrence.data), 1))
    new = apply_ops(context, ops, occurrence.data) if ops else context
    tally = apply_count_ops(counts, tallies) if tallies else counts
    planned = plan_work(machine, to, new, tally, keys if stay else ()) if machine.states[to].work else ()
    return StepTaken(row, occurrence, source, to, stay, guards, ops, tallies, new, tally, planned)


def _fold_ops(machine: Machine, fold: Fold, context: Any, data: Any) -> Sequence[Op]:
    """A fold's ops; what the model check follows exactly is changed by rows alone."""
    ops = fold.do(context, data)
    for op in ops:
        if op[1] in machine.tracked:
            raise DefinitionError(
                f"{machine.name}: the fold of {fold.on.name} changes {op[1]}, which only a row may set"
            )
    return ops


def plan_work(
    machine: Machine, state: str, context: Any, counts: dict[str, int], planned_keys: tuple[str, ...]
) -> tuple[PlannedJob, ...]:
    """The jobs of a state that this visit has not planned yet."""
    planned = []
    for work in machine.states[state].work:
        if work.when is not otherwise and not is_guard_satisfied(work.when, context, None, counts):
            continue
        job = work.job
        if work.each is None:
            if job.name not in planned_keys:
                planned.append(PlannedJob(job.name, job.kind, job.name, work.give(context), job.outlives))
        else:
            keyed = [(f"{job.name}/{key}", job_input) for key, job_input in work.each(context)]
            planned += [
                PlannedJob(job.name, job.kind, key, job_input, job.outlives)
                for key, job_input in keyed
                if key not in planned_keys
            ]
    return tuple(planned)


def override_guard(machine: Machine, snapshot: Snapshot, to: str, reason: str) -> StepTaken | StepRefused:
    """Waives the guard of one direct successor edge that its table allows to waive; never more than that."""
    target = machine.states.get(to)
    edges = [
        edge
        for (s, _), rows in machine.lookup.items()
        if s == snapshot.state
        for edge in rows
        if edge.waivable is not None and edge.to is target
    ]
    why = _why_not_overridable(machine, snapshot, to, reason, target, edges)
    if why:
        return StepRefused(
            "override", why, {}, legal_events(machine, snapshot.state, context=snapshot.context)
        )
    edge = edges[0]
    ops = edge.setting
    context = apply_ops(snapshot.context, ops)
    planned = plan_work(machine, to, context, snapshot.counts, ())
    occurrence = EventOccurrence(edge.on, None, edge.on.origin)
    waived = {edge.when.name: False}
    return StepTaken(
        edge,
        occurrence,
        snapshot.state,
        to,
        False,
        waived,
        ops,
        (),
        context,
        snapshot.counts,
        planned,
        reason,
    )


def _why_not_overridable(
    machine: Machine, snapshot: Snapshot, to: str, reason: str, target: StateDef | None, edges: list[Row]
) -> str:
    if not reason.strip():
        return "an override needs a reason"
    if target is None:
        return f"{machine.name} has no state {to}"
    if target.final or target.resting:
        return f"an override into {to} is not possible: it has to be reached"
    if not edges:
        return f"{to} does not follow {snapshot.state} by an edge that may be waived"
    open_gate = next(
        (i.job for i in snapshot.items.values() if i.kind == "gate" and not _can_gate_yield(machine, i.job)),
        None,
    )
    if open_gate is not None:
        return f"{open_gate} waits for an answer, and nothing is waived in place of one"
    needs = edges[0].waivable
    if needs is not None and not is_guard_satisfied(needs, snapshot.context, None, snapshot.counts):
        return f"nothing may be waived before {needs.sentence}"
    return ""


def _can_gate_yield(machine: Machine, job: str) -> bool:
    """Whether an override may stand in place of this gate's answer; a gate of no machine never yields."""
    return job in machine.jobs and machine.jobs[job].yields
