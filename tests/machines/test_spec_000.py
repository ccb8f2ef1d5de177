"""Roundtable against its specification: the published table, the executed table and §2 are one table."""

import pytest
from msgspec.structs import replace
from tests.specifications import roundtable as spec
from tests.specifications.documents import name_wording
from tests.specifications.roundtable_guards import ROUNDTABLE_GUARDS
from tests.support.cases import for_each_case

from steersman.contracts.agent import PROVIDER_CLASSES
from steersman.kernel.definition import STAY, otherwise
from steersman.kernel.explore import explore_machine
from steersman.kernel.machine import row_source_states
from steersman.kernel.tape import EntryRetry
from steersman.machines.roundtable import MACHINE
from steersman.machines.roundtable.table import AWAITS, REJECTS
from steersman.views.machine_json import machine_json

pytestmark = pytest.mark.untraced


def rows_of(t, m=MACHINE):
    """The machine's rows for one transition of the specification."""
    wanted = (None,) if t.source is None else _unsettled(m) if t.source == "*" else (t.source,)
    return [r for r in m.rows if r.on.name == t.event and set(_sources(r, m)) == set(wanted)]


def _unsettled(m):
    return tuple(s.name for s in m.states.values() if not s.final and not s.resting)


def _sources(r, m):
    return row_source_states(r, tuple(m.states.values()))


def stands(t, m):
    """What stands for a transition's guard in a machine: rows, what is asked, what is published, and by what sentence."""
    rows = rows_of(t, m)
    asked = [
        (where, pairs, n)
        for where, pairs in _namings(t, m)
        for n, p in enumerate(pairs)
        if p[1] is rows[0].on
    ]
    published = [
        line["when"] for line in machine_json(m)["rows"] if (line["from"], line["on"]) == (t.source, t.event)
    ]
    said = [
        pairs[n][0].name
        for _, pairs, n in asked
        if name_wording(pairs[n][0].sentence, spec.WORDINGS) == t.guard
    ]
    names = tuple(f"{where}: {_guard(pairs, n)}" for where, pairs, n in asked)
    return tuple(r.when.name for r in rows), names, tuple(published), said


def _namings(t, m):
    """Every naming and computation of the states that a transition leaves, with its pairs."""
    for s in m.states.values():
        if t.source in ("*", s.name):
            yield from ((do.job.name, m.namings[do.job.name].pairs) for do in s.work)
            yield from ((c.state.name, c.pairs) for c in m.computed.values() if c.state.name == s.name)


def _guard(pairs, n):
    if pairs[n][0] is not otherwise:
        return pairs[n][0].name
    before = ("error" if g.name in PROVIDER_CLASSES else g.name for g, _ in pairs[:n])
    return f"none of {', '.join(dict.fromkeys(before))}"


def unlike(transitions, m):
    """The transitions whose guard is not what is written down beside it."""
    return [t for t in transitions if not _as_written(t, m)]


def _as_written(t, m):
    wanted = ROUNDTABLE_GUARDS[t.source, t.event]
    rows, asked, published, said = stands(t, m)
    found = (t.guard, rows, asked, published)
    return found == wanted[:4] and (wanted.by in said or (not said and wanted.by.startswith("structural: ")))


def test_the_states_are_the_specifications_seven():
    """Roundtable has the seven states of §1, no more and no fewer, in its order."""
    assert tuple(MACHINE.states) == spec.STATES


@for_each_case("t", spec.TRANSITIONS)
def test_every_transition_is_in_the_table(t):
    """A transition of §2 is a row under its own state and event names, with its action, and no extension."""
    rows = rows_of(t)
    assert rows
    for r in rows:
        assert r.to is not STAY
        assert r.to.name == t.to
        assert name_wording(r.label, spec.WORDINGS) == t.action
        assert r.origin == "§2"


@for_each_case("t", spec.TRANSITIONS)
def test_every_guard_of_the_specification_is_the_one_that_stands_for_it(t):
    """A guard of §2 is asked by the named guard that has its words, or holds for the reason written beside it."""
    wanted = ROUNDTABLE_GUARDS[t.source, t.event]
    assert stands(t, MACHINE)[:3] == wanted[1:4]
    assert unlike([t], MACHINE) == []


def test_every_transition_has_its_guard_written_down_and_nothing_else_has():
    """Twenty guards stand for twenty transitions."""
    assert list(ROUNDTABLE_GUARDS) == [(t.source, t.event) for t in spec.TRANSITIONS]


@for_each_case("n", range(len(spec.TRANSITIONS)))
def test_another_text_in_the_specification_is_noticed(n):
    """A guard of §2 with other words is not what stands for it."""
    changed = [t._replace(guard="pigs fly") if i == n else t for i, t in enumerate(spec.TRANSITIONS)]
    assert unlike(changed, MACHINE) == [changed[n]]


def _other(g, wanted, **changes):
    return replace(g, **changes) if g is wanted else g


def _asking(wanted, **changes):
    """Roundtable with one guard changed wherever it is asked."""
    swap = [tuple((_other(g, wanted, **changes), e) for g, e in group.pairs) for group in _groups(MACHINE)]
    groups = [replace(group, pairs=pairs) for group, pairs in zip(_groups(MACHINE), swap, strict=True)]
    namings = dict(zip(MACHINE.namings, groups, strict=False))
    computed = dict(zip(MACHINE.computed, groups[len(namings) :], strict=True))
    rows = tuple(replace(r, when=_other(r.when, wanted, **changes)) for r in MACHINE.rows)
    return replace(MACHINE, rows=rows, namings=namings, computed=computed)


def _groups(m):
    return (*m.namings.values(), *m.computed.values())


DECIDING = sorted(
    {r.when for t in spec.TRANSITIONS for r in rows_of(t) if r.when is not otherwise}
    | {
        p[0]
        for t in spec.TRANSITIONS
        for _, pairs in _namings(t, MACHINE)
        for p in pairs
        if p[1].name == t.event
    }
    - {otherwise},
    key=lambda g: g.name,
)


@for_each_case("guard", DECIDING)
def test_a_guard_of_another_name_is_noticed(guard):
    """A guard that decides about a transition of §2 and is called something else does not stand for it."""
    assert unlike(spec.TRANSITIONS, _asking(guard, name="pigs_fly"))


# An event of a person's publishes what its row asks, not what a gate makes of an answer.
@for_each_case("guard", [g for g in DECIDING if g is not REJECTS])
def test_a_guard_that_says_something_else_is_noticed(guard):
    """A guard that decides about a transition of §2 and says something else does not stand for it."""
    assert unlike(spec.TRANSITIONS, _asking(guard, sentence="pigs fly"))


@for_each_case("n", [n for n, r in enumerate(MACHINE.rows) if r.origin == "§2"])
def test_another_guard_in_a_row_is_noticed(n):
    """A row of §2 that asks a guard of its own, or none, is not the row that was written down."""
    r = MACHINE.rows[n]
    other = replace(r, when=AWAITS if r.when is otherwise else otherwise)
    assert unlike(spec.TRANSITIONS, replace(MACHINE, rows=(*MACHINE.rows[:n], other, *MACHINE.rows[n + 1 :])))


def test_what_the_specification_does_not_have_says_so():
    """A row is either one of §2's twenty transitions or has a source that starts with `extension:`."""
    of_spec = {id(r) for t in spec.TRANSITIONS for r in rows_of(t)}
    for r in MACHINE.rows:
        assert r.origin.startswith("extension: ") != (id(r) in of_spec), r.label
    assert len(spec.TRANSITIONS) == 20


def test_every_outcome_can_be_reached():
    """Each outcome of §3 is a value that some path gives, as the run's or the round's; the legacy one is not."""
    nodes = [dict(n.memory) for n in explore_machine(MACHINE).edges]
    reached = {m["outcome"] for m in nodes} | {m["last_round_outcome"] for m in nodes}
    assert {o for o in spec.OUTCOMES if o not in reached} == set(spec.LEGACY)


def test_the_additions_are_there():
    """Every recommended addition of §4 is an event of the table, and retries carry the metadata it names."""
    used = {r.on.name for r in MACHINE.rows}
    assert set(spec.ADDITIONS) <= used
    assert EntryRetry.__struct_fields__ == spec.RETRY


def test_chat_is_not_in_the_machine():
    """§5: free conversation uses no state and no event of this machine."""
    assert not [name for name in (*MACHINE.states, *MACHINE.events) if "chat" in name]
