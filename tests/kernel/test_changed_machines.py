"""Two versions of one machine: what a paused run may go on with, what is refused and how it is said, what is read back."""

from dataclasses import replace

import msgspec
import pytest
from ferry import (
    COMPUTES,
    DRY,
    FERRY,
    FOLDS,
    NAMES,
    ROW,
    TABLE,
    E,
    S,
    Water,
    begun,
    ferry,
    wet,
)

from steersman.errors import ContractError
from steersman.kernel.build import definition
from steersman.kernel.canonical import plain
from steersman.kernel.compatible import difference, reachable
from steersman.kernel.definition import GateAnswer, Origin, fold, naming, otherwise, row
from steersman.kernel.record import Meta, advance, note
from steersman.kernel.replay import applied, redecided, typed
from steersman.kernel.step import Happened, name_facts
from steersman.kernel.tape import read

OLD = plain(definition(FERRY))


class Deeper(msgspec.Struct, kw_only=True):
    """The ferry's context in its second form: `places` are gone, `draught` is new."""

    boat: str = "skiff"
    outcome: str | None = None
    planks: int = 2
    litres: int = 0
    draught: int


def deepen(c):
    return {**{k: v for k, v in c.items() if k not in ("places", "trips")}, "draught": c["litres"] // 10}


def changed(which, **changes):
    return ferry(rows=tuple(replace(r, **changes) if r.label == which else r for r in TABLE))


# fmt: off
CHANGES = {
    "a guard":          (ferry(namings=(naming(ROW, (replace(DRY, version=2), E.rowed), (otherwise, E.leaked)), NAMES[1])), ["sail: its work changed"]),
    "a fold":           (ferry(folds=(fold(E.leaked, wet, version=2), FOLDS[1])), ["sail: its rows on leaked changed (fold)"]),
    "a row's target":   (changed("turn", to=S.dock), ["moor: its rows on turned changed (to)"]),
    "a row more":       (ferry(rows=(*TABLE, row(S.moor, E.called, otherwise, S.sail, None, "call", "§"))), ["moor: a new row on called"]),
    "another row more": (ferry(rows=(*TABLE, row(S.moor, E.turned, otherwise, S.dock, None, "turn", "§"))), ["moor: its rows on turned changed (1 rows, now 2)"]),
    "a row less":       (ferry(rows=tuple(r for r in TABLE if r.label != "turn")), ["moor: no row on turned any more"]),
    "a computation":    (ferry(computes=(replace(COMPUTES[0], version=2),)), ["bail: its computed changed"]),
    "the abort":        (ferry(abort=None), ["its abort is None, was left"]),
    "the successes":    (ferry(successes=("landed", "lost")), ["what counts as success is ['landed', 'lost'], was ['landed']"]),
}
# fmt: on


@pytest.mark.parametrize("what", CHANGES)
def test_what_a_run_can_still_reach_is_compared(what):
    """A change in the part that a run can still reach is told in words, state by state."""
    m, told = CHANGES[what]
    assert difference(OLD, plain(definition(m)), "sail") == told


@pytest.mark.parametrize("what", [w for w in CHANGES if w not in ("the abort", "the successes")])
def test_what_a_run_cannot_reach_any_more_is_its_own(what):
    """A run whose remaining part is unchanged goes on, whatever else has changed."""
    m, _ = CHANGES[what]
    assert m.digest != FERRY.digest
    assert difference(OLD, plain(definition(m)), "sunk") == []


def test_another_kernel_is_a_difference():
    """A definition made for another kernel version is never taken for the same."""
    assert difference({**OLD, "kernel": 0}, OLD, "sunk") == ["the kernel's version is 1, was 0"]


def test_a_state_that_is_gone_is_a_difference():
    """A state that the run can reach and that is no more is told."""
    less = {**OLD, "states": {k: v for k, v in OLD["states"].items() if k != "moor"}}
    assert difference(OLD, less, "sail") == ["state moor is gone"]
    assert difference(OLD, less, "sunk") == []


def test_flags_are_compared():
    """A state that has become final is another state."""
    states = {**OLD["states"], "ashore": {**OLD["states"]["ashore"], "flags": ["final"]}}
    assert difference(OLD, {**OLD, "states": states}, "moor") == ["ashore: its flags changed"]


def test_a_running_job_counts_wherever_the_run_is():
    """A job under way that outlives its state brings its naming along."""
    m, _ = CHANGES["a guard"]
    assert difference(OLD, plain(definition(m)), "sunk", ("row",)) == ["job row: its naming changed"]
    assert difference(OLD, plain(definition(m)), "sunk", ("ask", "unheard of")) == []


def test_reachable_follows_rows():
    """What a run can still reach is what rows lead to."""
    assert reachable(OLD, "sunk") == {"sunk"}
    assert reachable(OLD, "moor") == {"moor", "ashore", "sail", "bail", "dock", "sunk"}
    assert reachable(OLD, "unheard of") == {"unheard of"}


# ── contexts of an older form ───────────────────────────────────────────────────────────────────────────────────────

NEWER = ferry(
    context=Deeper,
    context_version=2,
    upcasts={1: deepen},
    folds=(fold(E.leaked, lambda _, e: (("add", "draught", e.litres),), version=2),),
    rows=(*TABLE, row(S.dock, E.called, otherwise, S.dock, None, "call out", "§")),
)


def leaking(m=FERRY):
    """A run that has leaked once and rows on."""
    out = advance(m, begun(m).snapshot, Happened(E.cast_off, E.cast_off.carries(), Origin.PERSON), Meta(20))
    (item,) = out.snapshot.items
    happened = name_facts(m, out.snapshot, "row", Water(40))
    done = advance(m, out.snapshot, happened, Meta(30, cause=item, closes=(item,)))
    return (*begun(m).entries, *out.entries, *done.entries)


def plainly(stored):
    snapshot = None
    for s in stored:
        snapshot = applied(snapshot, read(s.body), s.hash)
    return snapshot


def test_an_old_context_is_upcast():
    """A context of an older version becomes today's, field by field, by pure functions."""
    now = typed(NEWER, plainly(leaking()))
    assert (now.context.draught, now.context.litres, now.context_version) == (4, 40, 2)


@pytest.mark.parametrize(
    ("m", "words"),
    [
        (ferry(context_version=2), "has no upcaster for context version 1"),
        (ferry(context=Deeper), "its context does not fit this ferry"),
    ],
)
def test_a_context_that_cannot_be_read_is_said(m, words):
    """Without an upcaster, or with a context that does not fit, a run is refused and nothing is guessed."""
    with pytest.raises(ContractError, match=words):
        typed(m, plainly(leaking()))


def test_a_context_of_a_newer_version_is_refused():
    """An older machine never goes on with a newer context: it would lose what it does not know."""
    newer = msgspec.structs.replace(plainly(leaking()), context_version=2)
    with pytest.raises(
        ContractError, match="its context is version 2, this ferry knows 1: upgrade steersman"
    ):
        typed(FERRY, newer)


def test_a_migrated_run_says_which_entries_could_be_decided_again():
    """After a migration old entries are another version, new ones are decided again; nothing is claimed beyond that."""
    stored = list(leaking())
    before = typed(NEWER, plainly(stored))
    fields = {
        "definition": NEWER.digest,
        "context": msgspec.to_builtins(before.context),
        "context_version": 2,
    }
    entry, after = note(before, Meta(40, "person:ann", why="new boat"), "migrated", **fields)
    after.context = before.context
    done = advance(NEWER, after, Happened(E.left, GateAnswer("abort"), Origin.PERSON), Meta(50))
    tape = [(read(s.body), s.hash) for s in (*stored, entry, *done.entries)]
    assert [(d.seq, d.verdict) for d in redecided(NEWER, tape)] == [
        (1, "other version"), (2, "other version"), (3, "other version"), (4, "other version"), (6, "same"),
    ]  # fmt: skip
    assert [d.verdict for d in redecided(FERRY, tape)] == ["same"] * 4 + ["other version"]


def test_with_the_old_definition_what_has_not_changed_is_decided_again():
    """Where the part of the machine in an entry's state is the same, another definition does not matter."""
    tape = [(read(s.body), s.hash) for s in leaking()]
    bumped = ferry(folds=(fold(E.leaked, wet, version=2), FOLDS[1]))
    verdicts = {d.seq: d.verdict for d in redecided(bumped, tape, {FERRY.digest: OLD})}
    assert verdicts == {1: "same", 2: "same", 3: "other version", 4: "same"}
    assert {d.verdict for d in redecided(NEWER, tape, {FERRY.digest: OLD})} == {"other version"}
    assert {d.verdict for d in redecided(bumped, tape, {FERRY.digest: {**OLD, "kernel": 0}})} == {
        "other version"
    }
