"""Puts a machine together from its table and complains at once about what contradicts itself."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.errors import DefinitionError
from steersman.kernel.definition import (
    ANY,
    ComputedNaming,
    EventDef,
    Events,
    Fold,
    Naming,
    Row,
    State,
    StateDef,
)
from steersman.kernel.definition_digest import (
    KERNEL_VERSION,
    definition_data,
    definition_digest,
    state_definition,
)
from steersman.kernel.laws import Law
from steersman.kernel.machine import Machine, cap_limit, machine_guards, row_source_states
from steersman.kernel.table_problems import find_definition_problems


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


__all__ = [
    "ANY",
    "KERNEL_VERSION",
    "Machine",
    "cap_limit",
    "definition_data",
    "definition_digest",
    "machine",
    "machine_guards",
    "row_source_states",
    "state_definition",
]
