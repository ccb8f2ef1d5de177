"""Renders a machine as plain data, for `machine show --format json` and other programs.

**Invariant:** the data comes from the definition that is executed.
"""

from collections.abc import Iterator
from typing import Any

from steersman.kernel.definition import ANY, STAY, EventDef, Guard, Origin, Row, otherwise
from steersman.kernel.machine import Machine, row_source_states


def machine_json(machine: Machine) -> dict[str, Any]:
    """Returns name, initial state, states, rows in the order in which they are read, and laws."""
    return {
        "name": machine.name,
        "initial": machine.initial.name,
        "states": [
            {"name": s.name, "flags": sorted(s.flags), "meaning": s.meaning} for s in machine.states.values()
        ],
        "rows": [line for row in machine.rows for line in _row_json_lines(machine, row)],
        "laws": [str(law) for law in machine.laws],
    }


def _row_json_lines(machine: Machine, row: Row) -> Iterator[dict[str, Any]]:
    """Yields one line for each state that a row names; `*` is every state neither final nor resting."""
    froms = ("*",) if row.source is ANY else row_source_states(row, tuple(machine.states.values()))
    for name in froms:
        line: dict[str, Any] = {
            "from": name,
            "on": row.on.name,
            "when": row_guard_text(machine, row, name),
            "to": name if row.to is STAY else row.to.name,
            "cap": {"name": row.cap.name, "limit": row.cap.limit} if row.cap is not None else None,
            "label": row.label,
            "source": row.origin,
        }
        yield {**line, "stay": True} if row.to is STAY else line


def row_guard_text(machine: Machine, row: Row, name: str | None) -> str:
    """Returns the row's guard, and for an event that a naming gives, the naming's guards."""
    own = [] if row.when is otherwise else [row.when.sentence]
    sentences = [] if row.on.origin is Origin.PERSON else _naming_guard_sentences(machine, row.on, name)
    return "; ".join([*own, *([" or ".join(sentences)] if sentences else [])]) or otherwise.sentence


def _naming_guard_sentences(machine: Machine, event: EventDef, name: str | None) -> list[str]:
    sentences = (g.sentence for g, e in _naming_pairs_in_state(machine, name) if e is event)
    return list(dict.fromkeys(sentences))


def _naming_pairs_in_state(machine: Machine, name: str | None) -> Iterator[tuple[Guard, EventDef]]:
    """Yields the namings and computed events of a state, or of every state for `*`."""
    for state in machine.states.values():
        if name not in ("*", state.name):
            continue
        for do in state.work:
            yield from machine.namings[do.job.name].pairs
        if state.name in machine.computed:
            yield from machine.computed[state.name].pairs
