"""A machine as data: the published table holds every transition of the specification, and is the executed one."""

import json

from tests.specifications import roundtable as spec
from tests.specifications.documents import name_wording
from tests.support.cases import for_each_case

from steersman.kernel.definition import STAY
from steersman.kernel.machine import row_source_states
from steersman.machines.roundtable import MACHINE
from steersman.views.machine_json import machine_json

SHOWN = machine_json(MACHINE)
STATES = tuple(MACHINE.states.values())
UNPROVEN = "nothing is proven about the current tree"
STANDS = "what was accepted is what was recorded of the current tree"


def test_shape():
    """The data has exactly the promised keys, and is JSON."""
    assert list(SHOWN) == ["name", "initial", "states", "rows", "laws"]
    assert (SHOWN["name"], SHOWN["initial"]) == ("roundtable", "intake")
    assert all(list(s) == ["name", "flags", "meaning"] for s in SHOWN["states"])
    keys = ["from", "on", "when", "to", "cap", "label", "source"]
    assert all(list(r) in (keys, [*keys, "stay"]) for r in SHOWN["rows"])
    assert json.loads(json.dumps(SHOWN)) == SHOWN


def test_states():
    """Every state is there with its flags and what is true in it."""
    assert [s["name"] for s in SHOWN["states"]] == list(spec.STATES)
    assert {s["name"]: s["flags"] for s in SHOWN["states"] if s["flags"]} == {
        "intake": ["initial"],
        "finalize": ["resting"],
    }


@for_each_case("t", spec.TRANSITIONS)
def test_every_transition(t):
    """A transition of the specification is a published row under its own names, with its action."""
    rows = [r for r in SHOWN["rows"] if (r["from"], r["on"], r["to"]) == (t.source, t.event, t.to)]
    assert rows
    assert all(
        name_wording(r["label"], spec.WORDINGS) == t.action and not r["source"].startswith("extension:")
        for r in rows
    )


def test_nothing_else():
    """A published row that the specification does not have says that it is an extension, and why."""
    known = {(t.source, t.event, t.to) for t in spec.TRANSITIONS}
    beyond = [r for r in SHOWN["rows"] if (r["from"], r["on"], r["to"]) not in known]
    assert beyond
    assert all(r["source"].startswith("extension: ") for r in beyond)


def test_order():
    """Rows are published in the order in which they are read; a row of several states is one line each."""
    wanted = []
    for row in MACHINE.rows:
        froms = (
            row_source_states(row, STATES) if isinstance(row.source, tuple) or row.source is None else None
        )
        names = froms or (("*",) if not hasattr(row.source, "name") else (row.source.name,))
        wanted += [(name, row.on.name) for name in names]
    assert [(r["from"], r["on"]) for r in SHOWN["rows"]] == wanted


def test_stay():
    """A row that stays says so and names the state it stays in."""
    stays = {(r["from"], r["on"]) for r in SHOWN["rows"] if r.get("stay")}
    assert stays == {
        (s, row.on.name) for row in MACHINE.rows if row.to is STAY for s in row_source_states(row, STATES)
    }
    assert all(r["to"] == r["from"] for r in SHOWN["rows"] if r.get("stay"))


@for_each_case(
    ("source", "event", "sentence"),
    [
        ("review", "review_approved", "reviewer decision=approve"),
        ("test", "tests_passed", f"all commands pass or {STANDS}"),
        ("iterate", "start_coder", "iterations remaining"),
        ("test", "tests_failed", f"command result has real failures or {UNPROVEN} or otherwise"),
        ("finalize", "aborted_by_operator", "a proposal awaits the operator"),
        ("review", "review_schema_invalid", "otherwise"),
    ],
)
def test_when(source, event, sentence):
    """`when` is the row's own guard or, for an event that facts or the machine name, the guard that names it there."""
    row = next(r for r in SHOWN["rows"] if (r["from"], r["on"]) == (source, event))
    assert row["when"] == sentence


def test_cap():
    """A capped row names its cap and where the limit comes from."""
    caps = [r["cap"] for r in SHOWN["rows"] if r["on"] == "start_coder"]
    assert caps == [{"name": "iterations", "limit": "max_iterations"}] * 2


def test_laws():
    """Laws are sentences."""
    assert "outcome becomes approved only by tests_passed" in SHOWN["laws"]
    assert len(SHOWN["laws"]) == len(MACHINE.laws)
