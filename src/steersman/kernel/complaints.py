"""What contradicts itself in a table: told when a machine is built, never when it runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import structs

from steersman.kernel.definition import (
    STAY,
    Cap,
    Computed,
    EventDef,
    Fold,
    Naming,
    Origin,
    Row,
    StateDef,
    otherwise,
)
from steersman.kernel.machine import Machine, guards

SOURCES = {
    "effect": (Origin.EFFECT,),
    "gate": (Origin.PERSON, Origin.GATE),
    "timer": (Origin.TIMER,),
    "child": (Origin.CHILD,),
}


def complaints(
    m: Machine, namings: Sequence[Naming], computes: Sequence[Computed], folds: Sequence[Fold]
) -> list[str]:
    """Everything that is wrong with a definition, in words; empty: nothing."""
    return [
        *_twice("naming of", (n.subject.name for n in namings)),
        *_twice("computed", (c.state.name for c in computes)),
        *_twice("fold of", (f.on.name for f in folds)),
        *_namesakes(m),
        *(problem for r in m.rows for problem in _row(m, r)),
        *_namings(m),
        *_computed(m),
        *_fields(m),
        *_caps(m),
    ]


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"there are {count} times a {what} {name}"


def _namesakes(m: Machine) -> Iterator[str]:
    """Guards, caps and jobs are recorded by name: two of one name could not be told apart on tape."""
    yield from _twice("guard", (g.name for g in guards(m)))
    yield from _twice("cap", (c.name for c in _every_cap(m)))
    jobs = {id(d.job): d.job.name for s in m.states.values() for d in s.work}
    yield from _twice("job", jobs.values())


def _every_cap(m: Machine) -> Iterable[Cap]:
    asked = [g.cap for g in guards(m) if g.cap is not None]
    return {id(c): c for c in (*(r.cap for r in m.rows if r.cap is not None), *asked)}.values()


def _row(m: Machine, r: Row) -> Iterator[str]:
    if m.events.get(r.on.name) is not r.on:
        yield f"row '{r.label}' is on an event of another machine"
    if isinstance(r.to, StateDef) and m.states.get(r.to.name) is not r.to:
        yield f"row '{r.label}' leads to a state of another machine"
    if r.source is None and r.to is STAY:
        yield f"row '{r.label}' creates a run and stays nowhere"
    if r.waivable and _answers(m, r.on):
        yield f"row '{r.label}' may be waived, but {r.on.name} is the answer to a gate"
    for name, value in r.sets.items():
        if value not in m.memory.get(name, ()):
            yield f"row '{r.label}' sets {name} to {value!r}, which is not declared in memory"


def _answers(m: Machine, e: EventDef) -> bool:
    return any(e is named for n in m.namings.values() if n.subject.kind == "gate" for _, named in n.pairs)


def _namings(m: Machine) -> Iterator[str]:
    for job in m.jobs.values():
        if job.name not in m.namings:
            yield f"job {job.name} has no naming: its facts would mean nothing"
    for n in m.namings.values():
        if not n.pairs or n.pairs[-1][0] is not otherwise:
            yield f"naming of {n.subject.name} does not end with otherwise"
        elif _succeeds(m, n.pairs[-1][1]):
            yield f"naming of {n.subject.name} names {n.pairs[-1][1].name} otherwise, which is a success"
        for _, e in n.pairs:
            if e.origin not in SOURCES[n.subject.kind]:
                yield f"naming of {n.subject.name} names {e.name}, whose origin is {e.origin.value}"


def _succeeds(m: Machine, e: EventDef) -> bool:
    """Whether a row on this event gives the run an outcome that counts as success."""
    return any(
        r.sets.get("outcome") in m.successes or (isinstance(r.to, StateDef) and r.to.name in m.successes)
        for r in m.rows
        if r.on is e
    )


def _computed(m: Machine) -> Iterator[str]:
    for c in m.computed.values():
        for _, e in c.pairs:
            if e.origin is not Origin.MACHINE:
                yield f"computed {c.state.name} names {e.name}, whose origin is {e.origin.value}"


def _fields(m: Machine) -> Iterator[str]:
    begins = {f.name: f.default for f in structs.fields(m.context)}
    tracked = {*m.constants, *m.memory}
    if m.context.__struct_config__.omit_defaults:
        yield "the context leaves out defaults: a default that changes later would change the past"
    yield from (
        f"{name} is declared but the context has no such field" for name in sorted(tracked - set(begins))
    )
    for name, values in m.memory.items():
        if begins.get(name, values[0]) not in (values[0], msgspec.NODEFAULT):
            yield f"memory {name} begins with {values[0]!r} here and with {begins[name]!r} in the context"
    for g in guards(m):
        yield from (
            f"guard '{g.name}' reads {name}, which is neither constant nor memory"
            for name in g.reads
            if name not in tracked
        )
    for s in m.states.values():
        for d in s.work:
            if d.when is not otherwise and not d.when.reads and d.when.cap is None:
                yield f"work {d.job.name} of {s.name} depends on '{d.when.name}', which is not tracked: name what it reads"


def _caps(m: Machine) -> Iterator[str]:
    fields: Any = m.context.__struct_fields__
    for cap in _every_cap(m):
        if isinstance(cap.limit, str) and cap.limit not in fields:
            yield f"cap {cap.name} takes its limit from {cap.limit}, which the context does not have"
        if cap.name not in m.caps:
            yield f"a guard asks about cap {cap.name}, which no row counts"
