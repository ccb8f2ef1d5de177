"""Puts a machine together from its table and complains at once about what contradicts itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from steersman.errors import DefinitionError
from steersman.kernel.canonical import digest_of
from steersman.kernel.definition import (
    ANY,
    STAY,
    Cap,
    Computed,
    EventDef,
    Events,
    Fold,
    Guard,
    Job,
    Naming,
    Origin,
    Row,
    State,
    StateDef,
    otherwise,
)
from steersman.kernel.laws import Law

KERNEL_VERSION = 1
SOURCES = {
    "effect": (Origin.EFFECT,),
    "gate": (Origin.PERSON, Origin.GATE),
    "timer": (Origin.TIMER,),
    "child": (Origin.CHILD,),
}


@dataclass(frozen=True, eq=False)
class Machine:
    """An immutable, executable definition: the published table is the executed table."""

    name: str
    meaning: str
    states: dict[str, StateDef]
    events: dict[str, EventDef]
    rows: tuple[Row, ...]
    namings: dict[str, Naming]
    computed: dict[str, Computed]
    folds: dict[str, Fold]
    laws: tuple[Law, ...]
    context: type[msgspec.Struct]
    context_version: int
    upcasts: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]
    constants: Mapping[str, tuple[Any, ...]]
    memory: Mapping[str, tuple[Any, ...]]
    jobs: dict[str, Job]
    caps: dict[str, Cap]
    lookup: dict[tuple[str | None, str], tuple[Row, ...]] = field(repr=False)
    resets: dict[str, tuple[tuple[str, str], ...]] = field(repr=False)  # event -> ops that clear its caps
    settled: frozenset[str] = field(repr=False)  # states in which a run has its outcome
    abort: EventDef | None
    successes: tuple[str, ...]
    roles: tuple[str, ...]
    begin: Callable[[dict[str, Any]], tuple[EventDef, Any, Any]] | None
    initial: StateDef
    digest: str = ""


def machine(
    name: str,
    meaning: str,
    *,
    states: type[State],
    events: type[Events],
    rows: tuple[Row, ...],
    context: type[msgspec.Struct],
    namings: Sequence[Naming] = (),
    computes: Sequence[Computed] = (),
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
) -> Machine:
    """The machine, or a DefinitionError that says which line of its table is wrong."""
    jobs = {d.job.name: d.job for s in states.all for d in s.work}
    caps = {r.cap.name: r.cap for r in rows if r.cap is not None}
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
        lookup=_lookup(states.all, rows),
        resets={e.name: tuple(("clear", c.name) for c in caps.values() if e in c.resets) for e in events.all},
        settled=frozenset(s.name for s in states.all if s.final or s.resting),
        abort=abort,
        successes=successes,
        roles=roles,
        begin=begin,
        initial=_initial(name, states.all),
    )
    _complain(built)
    object.__setattr__(built, "digest", definition_digest(built))
    return built


def sources(row: Row, states: Sequence[StateDef]) -> tuple[str | None, ...]:
    """The names of the states a row starts from; None is creation."""
    match row.source:
        case None:
            return (None,)
        case StateDef() as one:
            return (one.name,)
        case tuple() as many:
            return tuple(s.name for s in many)
        case _:
            return tuple(s.name for s in states if not (s.final or s.resting))


def _lookup(states: Sequence[StateDef], rows: Sequence[Row]) -> dict[tuple[str | None, str], tuple[Row, ...]]:
    found: dict[tuple[str | None, str], tuple[Row, ...]] = {}
    for r in rows:
        for source in sources(r, states):
            found[source, r.on.name] = (*found.get((source, r.on.name), ()), r)
    return found


def _initial(name: str, states: Sequence[StateDef]) -> StateDef:
    initial = [s for s in states if "initial" in s.flags]
    if len(initial) != 1:
        raise DefinitionError(f"{name}: exactly one state must be initial, found {len(initial)}")
    return initial[0]


def _complain(m: Machine) -> None:
    problems = [*_bad_rows(m), *_bad_namings(m), *_bad_fields(m)]
    if problems:
        raise DefinitionError(f"{m.name}: " + "; ".join(problems))


def _bad_rows(m: Machine) -> list[str]:
    problems = []
    for r in m.rows:
        if r.on.name not in m.events or m.events[r.on.name] is not r.on:
            problems.append(f"row '{r.label}' is on an event of another machine")
        if isinstance(r.to, StateDef) and m.states.get(r.to.name) is not r.to:
            problems.append(f"row '{r.label}' leads to a state of another machine")
        if r.source is None and r.to is STAY:
            problems.append(f"row '{r.label}' creates a run and stays nowhere")
        problems += [
            f"row '{r.label}' sets {f} to {v!r}, which is not declared in memory"
            for f, v in r.sets.items()
            if v not in m.memory.get(f, ())
        ]
    return problems


def _bad_namings(m: Machine) -> list[str]:
    problems = []
    for job in m.jobs.values():
        if job.name not in m.namings:
            problems.append(f"job {job.name} has no naming: its facts would mean nothing")
    for n in m.namings.values():
        if not n.pairs or n.pairs[-1][0] is not otherwise:
            problems.append(f"naming of {n.subject.name} does not end with otherwise")
        problems += [
            f"naming of {n.subject.name} names {e.name}, whose origin is {e.origin.value}"
            for _, e in n.pairs
            if e.origin not in SOURCES[n.subject.kind]
        ]
    for c in m.computed.values():
        problems += [
            f"computed {c.state.name} names {e.name}, whose origin is {e.origin.value}"
            for _, e in c.pairs
            if e.origin is not Origin.MACHINE
        ]
    return problems


def _bad_fields(m: Machine) -> list[str]:
    fields = set(m.context.__struct_fields__)
    tracked = set(m.constants) | set(m.memory)
    problems = [f"{f} is declared but the context has no such field" for f in tracked if f not in fields]
    problems += [
        f"guard '{g.name}' reads {f}, which is neither constant nor memory"
        for g in guards(m)
        for f in g.reads
        if f not in tracked
    ]
    for s in m.states.values():
        problems += [
            f"work {d.job.name} of {s.name} depends on '{d.when.name}', which is not tracked: name what it reads"
            for d in s.work
            if d.when is not otherwise and not d.when.reads and d.when.cap is None
        ]
    for cap in m.caps.values():
        if isinstance(cap.limit, str) and cap.limit not in fields:
            problems.append(
                f"cap {cap.name} takes its limit from {cap.limit}, which the context does not have"
            )
    return problems


def guards(m: Machine) -> tuple[Guard, ...]:
    """Every guard of a machine, each once, in the order of the file."""
    seen: dict[int, Guard] = {}
    for g in (
        *(r.when for r in m.rows),
        *(g for n in m.namings.values() for g, _ in n.pairs),
        *(g for c in m.computed.values() for g, _ in c.pairs),
        *(d.when for s in m.states.values() for d in s.work),
    ):
        seen.setdefault(id(g), g)
    return tuple(seen.values())


def limit_of(cap: Cap, context: Any) -> int:
    """How often a cap's row may be taken in this run."""
    return cap.limit if isinstance(cap.limit, int) else int(getattr(context, cap.limit))


def part(m: Machine, name: str | None) -> dict[str, Any]:
    """Everything that decides what a run in this state can do: rows, work, namings, computed, folds, all with versions."""
    rows = [_row_part(m, r) for (s, _), group in m.lookup.items() if s == name for r in group]
    here = m.states[name] if name is not None else None
    work = [_work_part(m, d) for d in here.work] if here else []
    comp = m.computed.get(name) if name is not None else None
    return {
        "flags": sorted(here.flags) if here else [],
        "rows": sorted(rows, key=lambda r: str(r["on"])),  # stable: the order within one event is kept
        "work": work,
        "computed": _pairs_part(comp.pairs, comp.version) if comp else None,
    }


def _guard_part(g: Guard) -> list[Any]:
    return [g.name, g.version, list(g.reads), g.cap.name if g.cap else None]


def _pairs_part(pairs: Any, version: int) -> dict[str, Any]:
    return {"version": version, "pairs": [[_guard_part(g), e.name] for g, e in pairs]}


def _row_part(m: Machine, r: Row) -> dict[str, Any]:
    f = m.folds.get(r.on.name)
    return {
        "on": r.on.name,
        "event_version": r.on.version,
        "when": _guard_part(r.when),
        "to": "stay" if r.to is STAY else r.to.name,
        "cap": [r.cap.name, r.cap.limit, r.cap.version, [e.name for e in r.cap.resets]] if r.cap else None,
        "sets": dict(r.sets),
        "fold": f.version if f else 0,
        "waivable": r.waivable,
    }


def _work_part(m: Machine, d: Any) -> dict[str, Any]:
    n = m.namings[d.job.name]
    return {
        "job": [d.job.name, d.job.kind, d.job.does, d.job.outlives, d.job.edits, d.job.version],
        "when": _guard_part(d.when),
        "version": d.version,
        "naming": _pairs_part(n.pairs, n.version),
    }


def definition(m: Machine) -> dict[str, Any]:
    """The part of a machine that decides, as plain data: stored with the first run that uses it."""
    return {
        "name": m.name,
        "kernel": KERNEL_VERSION,
        "context_version": m.context_version,
        "creation": part(m, None),
        "states": {s: part(m, s) for s in m.states},
    }


def definition_digest(m: Machine) -> str:
    """The name of a definition: changes when anything that decides changes."""
    return digest_of(definition(m))[:16]


__all__ = [
    "ANY",
    "KERNEL_VERSION",
    "Machine",
    "definition",
    "definition_digest",
    "guards",
    "limit_of",
    "machine",
    "part",
    "sources",
]
