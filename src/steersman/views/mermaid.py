"""Renders a machine as a Mermaid state diagram.

Rows with the same ends and label become one edge, so that nine ways to fail read as one.
"""

from collections.abc import Iterable, Iterator

from steersman.kernel.definition import ANY, STAY, Row
from steersman.kernel.machine import Machine, row_source_states
from steersman.views.markdown import is_extension
from steersman.views.screen import diagram_label, diagram_node

ANY_STATE_NODE = "any_state"


def machine_diagram(machine: Machine, *, stay_rows: bool = False) -> str:
    """Renders the diagram; extensions that only stay in their state are drawn on request."""
    lines = ["stateDiagram-v2", "    direction LR"]
    lines += [f"    {diagram_node(s.name)} : {diagram_label(s.name)}" for s in machine.states.values()]
    if any(row.source is ANY for row in machine.rows):
        lines.append(f'    state "any state that is not over" as {ANY_STATE_NODE}')
    lines += [
        f"    {a} --> {b} : {_diagram_edge_text(rows)}"
        for (a, b, _), rows in _diagram_edges(machine, stay_rows=stay_rows).items()
    ]
    lines += [f"    {diagram_node(s.name)} --> [*]" for s in machine.states.values() if s.final]
    lines += [
        f"    note right of {diagram_node(s.name)} : resting, it has its outcome"
        for s in machine.states.values()
        if s.resting
    ]
    return "\n".join(lines) + "\n"


def _diagram_edges(machine: Machine, *, stay_rows: bool) -> dict[tuple[str, str, str], list[Row]]:
    rows_by_edge: dict[tuple[str, str, str], list[Row]] = {}
    for row in machine.rows:
        if row.to is STAY and is_extension(row.origin) and not stay_rows:
            continue
        for source in _diagram_source_nodes(machine, row):
            target = source if row.to is STAY else diagram_node(row.to.name)
            rows_by_edge.setdefault((source, target, row.label), []).append(row)
    return rows_by_edge


def _diagram_source_nodes(machine: Machine, row: Row) -> Iterator[str]:
    if row.source is ANY:
        yield ANY_STATE_NODE
        return
    for name in row_source_states(row, tuple(machine.states.values())):
        yield diagram_node(name) if name is not None else "[*]"


def _diagram_edge_text(rows: Iterable[Row]) -> str:
    rows = list(rows)
    names = list(dict.fromkeys(row.on.name for row in rows))
    text = names[0] if len(names) == 1 else _join_event_names(names)
    cap = next((row.cap for row in rows if row.cap is not None), None)
    extra = " (stays)" if rows[0].to is STAY else ""
    return diagram_label(text + extra + (f" (at most {cap.limit})" if cap is not None else ""))


def _join_event_names(names: list[str]) -> str:
    start = names[0].partition("_")[0] + "_"
    alike = all(name.startswith(start) for name in names)
    return f"{start}* ({len(names)} events)" if alike else ", ".join(names)
