"""A machine as a Mermaid state diagram.

Rows that share their ends and their label are one edge with one text, so that nine ways to fail read as one.
"""

from collections.abc import Iterable, Iterator

from steersman.kernel.definition import ANY, STAY, Row
from steersman.kernel.machine import Machine, sources
from steersman.views.quotation import label, node

ANYWHERE = "any_state"


def mermaid(m: Machine) -> str:
    """The diagram's text, ending in a newline."""
    lines = ["stateDiagram-v2", "    direction LR"]
    lines += [f"    {node(s.name)} : {label(s.name)}" for s in m.states.values()]
    if any(row.source is ANY for row in m.rows):
        lines.append(f'    state "any state that is not over" as {ANYWHERE}')
    lines += [f"    {a} --> {b} : {_text(rows)}" for (a, b, _), rows in _edges(m).items()]
    lines += [f"    {node(s.name)} --> [*]" for s in m.states.values() if s.final]
    lines += [
        f"    note right of {node(s.name)} : resting, it has its outcome"
        for s in m.states.values()
        if s.resting
    ]
    return "\n".join(lines) + "\n"


def _edges(m: Machine) -> dict[tuple[str, str, str], list[Row]]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in m.rows:
        for source in _sources(m, row):
            target = source if row.to is STAY else node(row.to.name)
            found.setdefault((source, target, row.label), []).append(row)
    return found


def _sources(m: Machine, row: Row) -> Iterator[str]:
    if row.source is ANY:
        yield ANYWHERE
        return
    for name in sources(row, tuple(m.states.values())):
        yield node(name) if name is not None else "[*]"


def _text(rows: Iterable[Row]) -> str:
    rows = list(rows)
    names = list(dict.fromkeys(row.on.name for row in rows))
    text = names[0] if len(names) == 1 else _together(names)
    cap = next((row.cap for row in rows if row.cap is not None), None)
    extra = " (stays)" if rows[0].to is STAY else ""
    return label(text + extra + (f" (at most {cap.limit})" if cap is not None else ""))


def _together(names: list[str]) -> str:
    start = names[0].partition("_")[0] + "_"
    alike = all(name.startswith(start) for name in names)
    return f"{start}* ({len(names)} events)" if alike else ", ".join(names)
