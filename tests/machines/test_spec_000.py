"""Roundtable against its specification: the published table, the executed table and §2 are one table."""

import re
from pathlib import Path

import pytest
import spec_000 as spec

from steersman.kernel.definition import STAY, otherwise
from steersman.kernel.explore import explore
from steersman.kernel.machine import sources
from steersman.kernel.tape import Retry
from steersman.machines.roundtable import MACHINE

PAGE = Path(__file__).resolve().parents[3] / "shared" / "spec" / "000_c470057fdd0c4a7a.txt"
beside = pytest.mark.skipif(not PAGE.exists(), reason="the specification is not beside this checkout")


def rows_of(t):
    """The machine's rows for one transition of the specification."""
    wanted = (None,) if t.source is None else _unsettled() if t.source == "*" else (t.source,)
    return [r for r in MACHINE.rows if r.on.name == t.event and set(_sources(r)) == set(wanted)]


def _unsettled():
    return tuple(s.name for s in MACHINE.states.values() if not s.final and not s.resting)


def _sources(r):
    return sources(r, tuple(MACHINE.states.values()))


def _guards(r):
    """Every guard that decides about a row: its own, and those of the naming or computation that lead to it."""
    pairs = [
        p
        for group in (*MACHINE.namings.values(), *MACHINE.computed.values())
        for p in group.pairs
        if p[1] is r.on
    ]
    return [r.when, *(guard for guard, _ in pairs)]


def test_the_states_are_the_specifications_seven():
    """Roundtable has the seven states of §1, no more and no fewer, in its order."""
    assert tuple(MACHINE.states) == spec.STATES


@pytest.mark.parametrize("t", spec.TRANSITIONS, ids=lambda t: f"{t.source}-{t.event}-{t.to}")
def test_every_transition_is_in_the_table(t):
    """A transition of §2 is a row under its own state and event names, with its action, and no extension."""
    rows = rows_of(t)
    assert rows
    for r in rows:
        assert r.to is not STAY
        assert r.to.name == t.to
        assert r.label == t.action
        assert r.origin == "§2"


@pytest.mark.parametrize("t", spec.TRANSITIONS, ids=lambda t: f"{t.source}-{t.event}-{t.to}")
def test_every_guard_of_the_specification_is_asked_or_is_what_is_left(t):
    """A guard of §2 is the sentence of a guard that decides about its row, or the row is the rest: otherwise."""
    asked = [g for r in rows_of(t) for g in _guards(r)]
    said = any(g.sentence == t.guard or g.sentence.startswith(f"{t.guard}:") for g in asked)
    assert said or otherwise in asked


def test_what_the_specification_does_not_have_says_so():
    """A row is either one of §2's twenty transitions or has a source that starts with `extension:`."""
    of_spec = {id(r) for t in spec.TRANSITIONS for r in rows_of(t)}
    for r in MACHINE.rows:
        assert r.origin.startswith("extension: ") != (id(r) in of_spec), r.label
    assert len(spec.TRANSITIONS) == 20


def test_every_outcome_can_be_reached():
    """Each outcome of §3 is a value that some path gives, as the run's or the round's; the legacy one is not."""
    nodes = [dict(n.memory) for n in explore(MACHINE).edges]
    reached = {m["outcome"] for m in nodes} | {m["last_round_outcome"] for m in nodes}
    assert {o for o in spec.OUTCOMES if o not in reached} == set(spec.LEGACY)


def test_the_additions_are_there():
    """Every recommended addition of §4 is an event of the table, and retries carry the metadata it names."""
    used = {r.on.name for r in MACHINE.rows}
    assert set(spec.ADDITIONS) <= used
    assert Retry.__struct_fields__ == spec.RETRY


def test_chat_is_not_in_the_machine():
    """§5: free conversation uses no state and no event of this machine."""
    assert not [name for name in (*MACHINE.states, *MACHINE.events) if "chat" in name]


@beside
def test_the_transcription_is_faithful():
    """What these tests compare with is what the specification's page says: states, twenty rows, outcomes."""
    sections = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    by_number = {s[0]: s for s in sections}
    assert tuple(re.findall(r"^- `(\w+)`$", by_number["1"], re.MULTILINE)) == spec.STATES
    assert tuple(_table(by_number["2"])) == spec.TRANSITIONS
    assert tuple(re.findall(r"^- `(\w+)`:", by_number["3"], re.MULTILINE)) == spec.OUTCOMES
    assert all(f"`{name}`" in by_number["4"] for name in (*spec.ADDITIONS, *spec.RETRY))


def _table(section):
    for line in section.splitlines():
        if not line.startswith("| `"):
            continue
        source, event, guard, action, to = (
            cell.strip().replace("`", "") for cell in line.strip("|").split("|")
        )
        yield spec.Transition(None if source == "null" else source, event, guard, action, to)
