"""A machine drawn: the diagram and the tables hold all of it and can be read."""

import re

from steersman.kernel.build import machine
from steersman.kernel.definition import Events, Origin, State, event, final, otherwise, row, state, table
from steersman.machines.roundtable import MACHINE
from steersman.machines.roundtable.context import RoundtableContext
from steersman.views.machine_json import machine_json
from steersman.views.markdown import escape_markdown_cell, is_extension, machine_markdown
from steersman.views.mermaid import machine_diagram

DRAWN = machine_diagram(MACHINE, stay_rows=True)
EDGE = re.compile(r"^    (\S+) --> (\S+) : (.+)$", re.MULTILINE)


class S(State):
    here = state("Begun.", initial=True)
    over = final("Ended | for good.")


class E(Events):
    begun = event("It begins.", Origin.PERSON)
    ended = event("It ends.", Origin.PERSON)
    dropped = event("It is dropped.", Origin.PERSON)


SMALL = machine(
    "small",
    "Two states.",
    states=S,
    events=E,
    rows=table(
        row(None, E.begun, otherwise, S.here, None, "begin", "toy"),
        row(S.here, E.ended, otherwise, S.over, None, "end", "toy"),
        row(S.here, E.dropped, otherwise, S.over, None, "end", "toy"),
    ),
    context=RoundtableContext,
)


def test_every_state_and_way():
    """Every state is declared once, and every pair of states that a row joins is joined."""
    assert DRAWN.startswith("stateDiagram-v2\n")
    assert re.findall(r"^    (\w+) : (\w+)$", DRAWN, re.MULTILINE) == [(s, s) for s in MACHINE.states]
    drawn = {(a, b) for a, b, _ in EDGE.findall(DRAWN)}
    names = {None: "[*]", "*": "any_state"}
    assert drawn == {(names.get(r["from"], r["from"]), r["to"]) for r in machine_json(MACHINE)["rows"]}


def test_failures_are_one_edge():
    """The nine ways in which a provider fails are one edge from each state, not nine."""
    lines = [line for line in DRAWN.splitlines() if "provider_" in line]
    assert lines == [
        f"    {s} --> finalize : provider_* (9 events)" for s in ("plan", "build", "review", "test")
    ]


def test_signs():
    """No text holds a sign that ends or splits it in a diagram."""
    assert all(not set(":;#") & set(text) for _, _, text in EDGE.findall(DRAWN))


def test_notes():
    """What stays, what is bounded and what rests is said."""
    assert "test --> test : tester_replied (stays)" in DRAWN
    assert "plan --> build : start_coder (at most max_iterations)" in DRAWN
    assert "note right of finalize" in DRAWN


def test_small():
    """A final state leads out of the diagram; events that share no word are named side by side."""
    drawn = machine_diagram(SMALL)
    assert "    over --> [*]\n" in drawn
    assert "    here --> over : ended, dropped\n" in drawn
    assert "any_state" not in drawn


def test_tables():
    """The tables have a line for every state, every published row and every pair of a naming, and a list of laws."""
    text = machine_markdown(MACHINE, stay_rows=True)
    headings = ["States", "Rows", "Extensions", "Namings", "Laws"]
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == headings
    pairs = sum(len(n.pairs) for n in (*MACHINE.namings.values(), *MACHINE.computed.values()))
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == len(MACHINE.states) + len(machine_json(MACHINE)["rows"]) + pairs + 4 * 2
    assert sum(line.startswith("- ") for line in text.splitlines()) == len(MACHINE.laws)


def test_the_specification_comes_first():
    """Its rows stand under their own heading; ours that only stay in their state are counted unless they are asked for."""
    text = machine_markdown(MACHINE)
    specified, extensions = text.split("## Extensions")
    assert "extension:" not in specified
    rows = machine_json(MACHINE)["rows"]
    staying = [r for r in rows if r.get("stay") and is_extension(r["source"])]
    assert f"{len(staying)} further extensions only stay in their state" in extensions
    assert "tester_replied" not in extensions.split("## Namings")[0]
    assert "tester_replied" not in machine_diagram(MACHINE)


def test_cells():
    """A cell cannot break its row."""
    assert escape_markdown_cell("a|b\\c\nd") == r"a\|b\\c d"
    assert r"Ended \| for good." in machine_markdown(SMALL)
    assert machine_markdown(SMALL).endswith("None.\n")
