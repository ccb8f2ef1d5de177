"""Everything of a machine that decides, as plain data, and its digest, which every run records.

Words for people (labels, meanings, sections) are no part of it. Every declared version is.
"""

from typing import Any

from steersman.kernel.canonical import digest_of
from steersman.kernel.definition import STAY, Cap, Guard, NamingPairs, Row, StateWork
from steersman.kernel.machine import Machine

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
