"""Puts a machine together from its table and complains at once about what contradicts itself."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import replace

from steersman.errors import DefinitionError
from steersman.kernel.definition import (
    STAY,
    Cap,
    ComputedNaming,
    EventDef,
    Events,
    Fold,
    Naming,
    Origin,
    Row,
    State,
    StateDef,
    otherwise,
)
from steersman.kernel.laws import Law
from steersman.kernel.machine import Machine, definition_digest, machine_guards, row_source_states

# ── table problems ──────────────────────────────────────────────────────────────────────────────────────────────────────

# Finds contradictions in a table. They are reported when a machine is built, never when it runs.


ORIGINS_BY_JOB_KIND = {
    "effect": (Origin.EFFECT,),
    "gate": (Origin.PERSON, Origin.GATE),
    "timer": (Origin.TIMER,),
    "child": (Origin.CHILD,),
}


def find_definition_problems(
    machine: Machine, namings: Sequence[Naming], computes: Sequence[ComputedNaming], folds: Sequence[Fold]
) -> list[str]:
    """Returns everything that is wrong with a definition, in words."""
    return [
        *_find_duplicate_names("naming of", (n.subject.name for n in namings)),
        *_find_duplicate_names("computed", (c.state.name for c in computes)),
        *_find_duplicate_names("fold of", (f.on.name for f in folds)),
        *_find_recorded_name_clashes(machine),
        *(problem for r in machine.rows for problem in _find_row_problems(machine, r)),
        *_find_naming_problems(machine),
        *_find_computed_problems(machine),
        *_find_context_problems(machine),
        *_find_cap_problems(machine),
    ]


def _find_duplicate_names(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"there are {count} times a {what} {name}"


def _find_recorded_name_clashes(machine: Machine) -> Iterator[str]:
    """Guards, caps and jobs are recorded by name, so two with one name would be one on the tape."""
    yield from _find_duplicate_names("guard", (g.name for g in machine_guards(machine)))
    yield from _find_duplicate_names("cap", (c.name for c in _all_machine_caps(machine)))
    jobs = {id(d.job): d.job.name for s in machine.states.values() for d in s.work}
    yield from _find_duplicate_names("job", jobs.values())


def _all_machine_caps(machine: Machine) -> Iterable[Cap]:
    guard_caps = [g.cap for g in machine_guards(machine) if g.cap is not None]
    return {id(c): c for c in (*(r.cap for r in machine.rows if r.cap is not None), *guard_caps)}.values()


def _find_row_problems(machine: Machine, row: Row) -> Iterator[str]:
    if machine.events.get(row.on.name) is not row.on:
        yield f"row '{row.label}' is on an event of another machine"
    if isinstance(row.to, StateDef) and machine.states.get(row.to.name) is not row.to:
        yield f"row '{row.label}' leads to a state of another machine"
    if row.source is None and row.to is STAY:
        yield f"row '{row.label}' creates a run and stays nowhere"
    if row.waivable and _is_gate_answer_event(machine, row.on):
        yield f"row '{row.label}' may be waived, but {row.on.name} is the answer to a gate"
    for name, value in row.sets.items():
        if value not in machine.memory.get(name, ()):
            yield f"row '{row.label}' sets {name} to {value!r}, which is not declared in memory"


def _is_gate_answer_event(machine: Machine, event_def: EventDef) -> bool:
    return any(
        event_def is event
        for n in machine.namings.values()
        if n.subject.kind == "gate"
        for _, event in n.pairs
    )


def _find_naming_problems(machine: Machine) -> Iterator[str]:
    for job in machine.jobs.values():
        if job.name not in machine.namings:
            yield f"job {job.name} has no naming: its facts would mean nothing"
    for n in machine.namings.values():
        if not n.pairs or n.pairs[-1][0] is not otherwise:
            yield f"naming of {n.subject.name} does not end with otherwise"
        elif _leads_to_success(machine, n.pairs[-1][1]):
            yield f"naming of {n.subject.name} names {n.pairs[-1][1].name} otherwise, which is a success"
        for _, event in n.pairs:
            if event.origin not in ORIGINS_BY_JOB_KIND[n.subject.kind]:
                yield f"naming of {n.subject.name} names {event.name}, whose origin is {event.origin.value}"


def _leads_to_success(machine: Machine, event: EventDef) -> bool:
    """Whether a row on this event gives the run an outcome that counts as success."""
    return any(
        r.sets.get("outcome") in machine.successes
        or (isinstance(r.to, StateDef) and r.to.name in machine.successes)
        for r in machine.rows
        if r.on is event
    )


def _find_computed_problems(machine: Machine) -> Iterator[str]:
    for naming in machine.computed.values():
        for _, event in naming.pairs:
            if event.origin is not Origin.MACHINE:
                yield f"computed {naming.state.name} names {event.name}, whose origin is {event.origin.value}"


def _find_context_problems(machine: Machine) -> Iterator[str]:
    begins = {f.name: f.default for f in structs.fields(machine.context)}
    tracked = {*machine.constants, *machine.memory}
    if machine.context.__struct_config__.omit_defaults:
        yield "the context leaves out defaults: a default that changes later would change the past"
    yield from (
        f"{name} is declared but the context has no such field" for name in sorted(tracked - set(begins))
    )
    for name, values in machine.memory.items():
        if begins.get(name, values[0]) not in (values[0], msgspec.NODEFAULT):
            yield f"memory {name} begins with {values[0]!r} here and with {begins[name]!r} in the context"
    for guard in machine_guards(machine):
        yield from (
            f"guard '{guard.name}' reads {name}, which is neither constant nor memory"
            for name in guard.reads
            if name not in tracked
        )
    for state in machine.states.values():
        for state_work in state.work:
            if state_work.when is not otherwise and not state_work.when.reads and state_work.when.cap is None:
                yield f"work {state_work.job.name} of {state.name} depends on '{state_work.when.name}', which is not tracked: name what it reads"


def _find_cap_problems(machine: Machine) -> Iterator[str]:
    fields: Any = machine.context.__struct_fields__
    for cap in _all_machine_caps(machine):
        if isinstance(cap.limit, str) and cap.limit not in fields:
            yield f"cap {cap.name} takes its limit from {cap.limit}, which the context does not have"
        if cap.name not in machine.caps:
            yield f"a guard asks about cap {cap.name}, which no row counts"


# ── build ────────────────────────────────────────────────────────────────────────────────


def machine(
    name: str,
    meaning: str,
    *,
    states: type[State],
    events: type[Events],
    rows: tuple[Row, ...],
    context: type[msgspec.Struct],
    namings: Sequence[Naming] = (),
    computes: Sequence[ComputedNaming] = (),
    folds: Sequence[Fold] = (),
    laws: Sequence[Law] = (),
    constants: Mapping[str, tuple[Any, ...]] | None = None,
    memory: Mapping[str, tuple[Any, ...]] | None = None,
    context_version: int = 1,
    upcasts: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] | None = None,
    abort: EventDef | None = None,
    successes: tuple[str, ...] = (),
    roles: tuple[str, ...] = (),
    begin: Callable[[dict[str, Any]], tuple[EventDef, Any, Any]] | None = None,
    begin_version: int = 1,
    tree: bool = True,
) -> Machine:
    """The machine, or a DefinitionError that says which line of its table is wrong."""
    jobs = {d.job.name: d.job for s in states.all for d in s.work}
    caps = {r.cap.name: r.cap for r in rows if r.cap is not None}
    settled = frozenset(s.name for s in states.all if s.final or s.resting)
    built = Machine(
        name=name,
        meaning=meaning,
        states={s.name: s for s in states.all},
        events={e.name: e for e in events.all},
        rows=rows,
        namings={n.subject.name: n for n in namings},
        computed={c.state.name: c for c in computes},
        folds={f.on.name: f for f in folds},
        laws=tuple(laws),
        context=context,
        context_version=context_version,
        upcasts=dict(upcasts or {}),
        constants=dict(constants or {}),
        memory=dict(memory or {}),
        jobs=jobs,
        caps=caps,
        lookup=_index_rows(states.all, rows),
        resets={e.name: tuple(("clear", c.name) for c in caps.values() if e in c.resets) for e in events.all},
        settled=settled,
        eventful=settled | {c.state.name for c in computes},
        tracked=frozenset((*(constants or ()), *(memory or ()))),
        abort=abort,
        successes=successes,
        roles=roles,
        begin=begin,
        begin_version=begin_version,
        initial=_find_initial_state(name, states.all),
        tree=tree,
    )
    return _validate_built_machine(built, find_definition_problems(built, namings, computes, folds))


def _validate_built_machine(built: Machine, problems: Sequence[str]) -> Machine:
    """The machine with its digest, or everything that is wrong with it."""
    if problems:
        raise DefinitionError(f"{built.name}: " + "; ".join(problems))
    return replace(built, digest=definition_digest(built))


def _index_rows(
    states: Sequence[StateDef], rows: Sequence[Row]
) -> dict[tuple[str | None, str], tuple[Row, ...]]:
    rows_by_key: dict[tuple[str | None, str], tuple[Row, ...]] = {}
    for row in rows:
        for source in row_source_states(row, states):
            rows_by_key[source, row.on.name] = (*rows_by_key.get((source, row.on.name), ()), row)
    return rows_by_key


def _find_initial_state(name: str, states: Sequence[StateDef]) -> StateDef:
    initial = [s for s in states if "initial" in s.flags]
    if len(initial) != 1:
        raise DefinitionError(f"{name}: exactly one state must be initial, found {len(initial)}")
    return initial[0]
