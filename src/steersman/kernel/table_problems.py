"""Finds contradictions in a table. They are reported when a machine is built, never when it runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import structs

from steersman.kernel.definition import (
    STAY,
    Cap,
    ComputedNaming,
    EventDef,
    Fold,
    Naming,
    Origin,
    Row,
    StateDef,
    otherwise,
)
from steersman.kernel.machine import Machine, machine_guards

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
