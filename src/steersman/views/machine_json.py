"""A machine as plain data: what `machine show --format json` prints and what other programs compare.

**Invariant:** read from the very definition that is executed; nothing is written down twice.
"""

from collections.abc import Iterator
from typing import Any

from steersman.kernel.definition import ANY, STAY, EventDef, Guard, Origin, Row, otherwise
from steersman.kernel.machine import Machine, sources


def machine_json(m: Machine) -> dict[str, Any]:
    """Name, initial state, states, rows in the order in which they are read, and laws."""
    return {
        "name": m.name,
        "initial": m.initial.name,
        "states": [
            {"name": s.name, "flags": sorted(s.flags), "meaning": s.meaning} for s in m.states.values()
        ],
        "rows": [line for row in m.rows for line in _lines(m, row)],
        "laws": [str(law) for law in m.laws],
    }


def _lines(m: Machine, row: Row) -> Iterator[dict[str, Any]]:
    """One line for each state a row names; `*` stands for every state neither final nor resting."""
    froms = ("*",) if row.source is ANY else sources(row, tuple(m.states.values()))
    for name in froms:
        line: dict[str, Any] = {
            "from": name,
            "on": row.on.name,
            "when": when(m, row, name),
            "to": name if row.to is STAY else row.to.name,
            "cap": {"name": row.cap.name, "limit": row.cap.limit} if row.cap is not None else None,
            "label": row.label,
            "source": row.origin,
        }
        yield {**line, "stay": True} if row.to is STAY else line


def when(m: Machine, row: Row, name: str | None) -> str:
    """The row's guard; for an event that the machine names itself, the guard that names it there."""
    own = [] if row.when is otherwise else [row.when.sentence]
    named = [] if row.on.origin is Origin.PERSON else _named(m, row.on, name)
    return "; ".join([*own, *([" or ".join(named)] if named else [])]) or otherwise.sentence


def _named(m: Machine, event: EventDef, name: str | None) -> list[str]:
    sentences = (g.sentence for g, e in _pairs(m, name) if e is event)
    return list(dict.fromkeys(sentences))


def _pairs(m: Machine, name: str | None) -> Iterator[tuple[Guard, EventDef]]:
    """Everything that can name an event in a state, or anywhere for `*`."""
    for state in m.states.values():
        if name not in ("*", state.name):
            continue
        for do in state.work:
            yield from m.namings[do.job.name].pairs
        if state.name in m.computed:
            yield from m.computed[state.name].pairs
