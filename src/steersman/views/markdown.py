"""Renders a machine as Markdown tables: states, rows, namings, laws."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steersman.judges.text import printable_text
from steersman.kernel.definition import NamingPairs
from steersman.kernel.machine import Machine
from steersman.views.machine_json import machine_json

ROW_COLUMNS = ("from", "on", "when", "to", "cap", "label", "source")


def machine_markdown(machine: Machine, *, stay_rows: bool = False) -> str:
    """Renders the tables under headings: the specification's rows first, and rows that stay in their state on request."""
    rows = machine_json(machine)["rows"]
    specified = [r for r in rows if not is_extension(r["source"])]
    extensions = [r for r in rows if is_extension(r["source"]) and (stay_rows or not r.get("stay"))]
    left_out = len(rows) - len(specified) - len(extensions)
    parts = [
        "## States",
        _markdown_table(("state", "flags", "what is true now"), _state_table_rows(machine)),
        "## Rows",
        "For a state and an event the rows are read in their order; the first whose cap and guard fit is taken.",
        _markdown_table(ROW_COLUMNS, _transition_table_rows(specified)),
        *(
            ["## Extensions", _markdown_table(ROW_COLUMNS, _transition_table_rows(extensions))]
            if extensions
            else []
        ),
        *(
            [f"{left_out} further extensions only stay in their state: `machine show {machine.name} --all`."]
            if left_out
            else []
        ),
        "## Namings",
        "How facts become events: first fit; every guard is evaluated and recorded.",
        _markdown_table(("of", "when", "event"), _naming_table_rows(machine)),
        "## Laws",
        "\n".join(f"- {escape_markdown_cell(str(law))}" for law in machine.laws) or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _state_table_rows(machine: Machine) -> Iterator[Sequence[str]]:
    for state in machine.states.values():
        yield f"`{state.name}`", ", ".join(sorted(state.flags)), state.meaning


def is_extension(source: str) -> bool:
    """Whether a row is our extension and not the specification's."""
    return source.startswith("extension")


def _transition_table_rows(rows: Iterable[dict[str, Any]]) -> Iterator[Sequence[str]]:
    for row in rows:
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


def _naming_table_rows(machine: Machine) -> Iterator[Sequence[str]]:
    for name, naming in machine.namings.items():
        yield from _naming_pair_rows(f"facts of `{name}`", naming.pairs)
    for name, computed in machine.computed.items():
        yield from _naming_pair_rows(f"the machine in `{name}`", computed.pairs)


def _naming_pair_rows(subject: str, pairs: NamingPairs) -> Iterator[Sequence[str]]:
    for guard, event in pairs:
        yield subject, guard.sentence, f"`{event.name}`"


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(escape_markdown_cell(c) for c in line) + " |" for line in lines)


_MARKDOWN_ESCAPES = {"\\": "\\\\", "|": "\\|", "[": "\\[", "&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "\\$"}


def escape_markdown_cell(text: str) -> str:
    """Escapes text so that it stays in its cell and becomes no tag or link; code spans of our own stay."""
    return "".join(_MARKDOWN_ESCAPES.get(char, char) for char in printable_text(" ".join(text.splitlines())))
