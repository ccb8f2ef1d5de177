"""The machine itself: an immutable value, and the few questions every reader of it asks."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from steersman.kernel.canonical import digest_of
from steersman.kernel.definition import (
    STAY,
    Cap,
    ComputedNaming,
    EventDef,
    Fold,
    Guard,
    Job,
    Naming,
    NamingPairs,
    Row,
    StateDef,
    StateWork,
)
from steersman.kernel.laws import Law


class Machine(msgspec.Struct, frozen=True, eq=False):
    """An immutable, executable definition: the published table is the executed table."""

    name: str
    meaning: str
    states: dict[str, StateDef]
    events: dict[str, EventDef]
    rows: tuple[Row, ...]
    namings: dict[str, Naming]
    computed: dict[str, ComputedNaming]
    folds: dict[str, Fold]
    laws: tuple[Law, ...]
    context: type[msgspec.Struct]
    context_version: int
    upcasts: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]
    constants: Mapping[str, tuple[Any, ...]]
    memory: Mapping[str, tuple[Any, ...]]
    jobs: dict[str, Job]
    caps: dict[str, Cap]
    lookup: dict[tuple[str | None, str], tuple[Row, ...]]
    resets: dict[str, tuple[tuple[str, str], ...]]  # event -> ops that clear its caps
    settled: frozenset[str]  # states in which a run has its outcome
    eventful: frozenset[str]  # states that bring about something by themselves: an event, a seal
    tracked: frozenset[str]  # constants and memory: rows alone may change them
    abort: EventDef | None
    successes: tuple[str, ...]
    roles: tuple[str, ...]
    begin: Callable[[dict[str, Any]], tuple[EventDef, Any, Any]] | None
    begin_version: int
    initial: StateDef
    tree: bool = True  # its runs work on a tree of the repository
    digest: str = ""

    def __repr__(self) -> str:
        return f"<Machine {self.name} {self.digest}>"


def row_source_states(row: Row, states: Sequence[StateDef]) -> tuple[str | None, ...]:
    """The names of the states a row starts from; None is creation."""
    match row.source:
        case None:
            return (None,)
        case StateDef() as state:
            return (state.name,)
        case tuple() as states_of_row:
            return tuple(s.name for s in states_of_row)
        case _:
            return tuple(s.name for s in states if not (s.final or s.resting))


def machine_guards(machine: Machine) -> tuple[Guard, ...]:
    """Every guard of a machine, each once, in the order of the file."""
    guards_by_id: dict[int, Guard] = {}
    for guard in (
        *(r.when for r in machine.rows),
        *(guard for n in machine.namings.values() for guard, _ in n.pairs),
        *(guard for c in machine.computed.values() for guard, _ in c.pairs),
        *(d.when for s in machine.states.values() for d in s.work),
    ):
        guards_by_id.setdefault(id(guard), guard)
    return tuple(guards_by_id.values())


def cap_limit(cap: Cap, context: Any) -> int:
    """How often a cap's row may be taken in this run."""
    return cap.limit if isinstance(cap.limit, int) else int(getattr(context, cap.limit))


# ── definition digest ───────────────────────────────────────────────────────────────────────────────────────────────────

# Everything of a machine that decides, as plain data, and its digest, which every run records.
#
# Words for people (labels, meanings, sections) are no part of it. Every declared version is.


KERNEL_VERSION = 1


def definition_data(machine: Machine) -> dict[str, Any]:
    """The part of a machine that decides, as plain data: stored with the first run that uses it."""
    return {
        "name": machine.name,
        "kernel": KERNEL_VERSION,
        "context_version": machine.context_version,
        "abort": machine.abort.name if machine.abort is not None else None,
        "successes": sorted(machine.successes),
        "begin": machine.begin_version,
        "creation": state_definition(machine, None),
        "states": {s: state_definition(machine, s) for s in machine.states},
    }


def definition_digest(machine: Machine) -> str:
    """The name of a definition: changes when anything that decides changes."""
    return digest_of(definition_data(machine))[:16]


def state_definition(machine: Machine, name: str | None) -> dict[str, Any]:
    """Everything that decides what a run in this state can do: rows, work, namings, computed, folds, all with versions."""
    rows = [
        _row_definition(machine, r) for (s, _), group in machine.lookup.items() if s == name for r in group
    ]
    state = machine.states[name] if name is not None else None
    computed = machine.computed.get(name) if name is not None else None
    return {
        "flags": sorted(state.flags) if state else [],
        "rows": sorted(rows, key=lambda r: str(r["on"])),  # stable: the order within one event is kept
        "work": [_work_definition(machine, d) for d in state.work] if state else [],
        "computed": _naming_definition(computed.pairs, computed.version) if computed else None,
    }


def _row_definition(machine: Machine, row: Row) -> dict[str, Any]:
    fold = machine.folds.get(row.on.name)
    return {
        "on": row.on.name,
        "event_version": row.on.version,
        "origin": row.on.origin.value,
        "when": _guard_definition(row.when),
        "to": "stay" if row.to is STAY else row.to.name,
        "cap": _cap_definition(row.cap) if row.cap else None,
        "sets": dict(row.sets),
        "fold": fold.version if fold else 0,
        "waivable": row.waivable.name if row.waivable is not None else False,
    }


def _work_definition(machine: Machine, state_work: StateWork) -> dict[str, Any]:
    n = machine.namings[state_work.job.name]
    yields = ["yields"] if state_work.job.yields else []
    return {
        "job": [
            state_work.job.name,
            state_work.job.kind,
            state_work.job.does,
            state_work.job.outlives,
            state_work.job.edits,
            state_work.job.version,
            *yields,
        ],
        "when": _guard_definition(state_work.when),
        "version": state_work.version,
        "naming": _naming_definition(n.pairs, n.version),
    }


def _guard_definition(guard: Guard) -> list[Any]:
    return [guard.name, guard.version, list(guard.reads), _cap_definition(guard.cap) if guard.cap else None]


def _cap_definition(cap: Cap) -> list[Any]:
    return [cap.name, cap.limit, cap.version, cap.per is not None, [e.name for e in cap.resets]]


def _naming_definition(pairs: NamingPairs, version: int) -> dict[str, Any]:
    return {"version": version, "pairs": [[_guard_definition(g), e.name] for g, e in pairs]}
