"""A machine as Markdown tables: states, rows, namings, laws."""

from collections.abc import Iterable, Iterator, Sequence

from steersman.judges.text import printable
from steersman.kernel.definition import Pairs
from steersman.kernel.machine import Machine
from steersman.views.machine_json import machine_json


def markdown(m: Machine) -> str:
    """The four tables under headings, ending in a newline."""
    parts = [
        "## States",
        _table(("state", "flags", "what is true now"), _states(m)),
        "## Rows",
        "Read top to bottom; the first whose event, cap and guard fit is taken.",
        _table(("from", "on", "when", "to", "cap", "label", "source"), _rows(m)),
        "## Namings",
        "How facts become events: first fit; every guard is evaluated and recorded.",
        _table(("of", "when", "event"), _namings(m)),
        "## Laws",
        "\n".join(f"- {cell(str(law))}" for law in m.laws) or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _states(m: Machine) -> Iterator[Sequence[str]]:
    for s in m.states.values():
        yield f"`{s.name}`", ", ".join(sorted(s.flags)), s.meaning


def _rows(m: Machine) -> Iterator[Sequence[str]]:
    for row in machine_json(m)["rows"]:
        cap = row["cap"]
        to = "stays" if row.get("stay") else f"`{row['to']}`"
        yield (
            f"`{row['from'] or 'null'}`",
            f"`{row['on']}`",
            row["when"],
            to,
            f"{cap['name']} ≤ {cap['limit']}" if cap else "",
            row["label"],
            row["source"],
        )


def _namings(m: Machine) -> Iterator[Sequence[str]]:
    for name, naming in m.namings.items():
        yield from _pairs(f"facts of `{name}`", naming.pairs)
    for name, computed in m.computed.items():
        yield from _pairs(f"the machine in `{name}`", computed.pairs)


def _pairs(of: str, pairs: Pairs) -> Iterator[Sequence[str]]:
    for guard, event in pairs:
        yield of, guard.sentence, f"`{event.name}`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(c) for c in line) + " |" for line in lines)


_SIGNS = {"\\": "\\\\", "|": "\\|", "[": "\\[", "&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "\\$"}


def cell(text: str) -> str:
    """Text that stays inside its cell and is neither a tag nor a link there; our own code spans stay."""
    return "".join(_SIGNS.get(char, char) for char in printable(" ".join(text.splitlines())))
