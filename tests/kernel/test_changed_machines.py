"""Two versions of one machine: what a paused run may go on with, what is refused and how it is said, what is read back."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.ferry_machine import (
    DRY,
    FERRY,
    FERRY_COMPUTES,
    FERRY_FOLDS,
    FERRY_NAMINGS,
    FERRY_RUN,
    FERRY_TABLE,
    ROW,
    E,
    S,
    WaterFacts,
    begin_ferry,
    ferry,
    fold_water,
)

from steersman.errors import ContractError, UserError
from steersman.kernel.canonical import plain_value
from steersman.kernel.compatible import find_definition_changes, reachable_states
from steersman.kernel.definition import (
    GateAnswer,
    Origin,
    State,
    StateDef,
    computed,
    do,
    effect,
    final,
    fold,
    naming,
    otherwise,
    resting,
    row,
    state,
)
from steersman.kernel.machine import definition_data
from steersman.kernel.record import StepMeta, advance_run, build_budget_gate, migrate_run
from steersman.kernel.replay import apply_entry, convert_context, repeat_decisions
from steersman.kernel.step import EventOccurrence, name_facts
from steersman.kernel.tape import read_entry

OLD = plain_value(definition_data(FERRY))


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
    return ferry(rows=tuple(replace(r, **changes) if r.label == which else r for r in FERRY_TABLE))


# fmt: off
CHANGES = {
    "a guard":          (ferry(namings=(naming(ROW, (replace(DRY, version=2), E.rowed), (otherwise, E.leaked)), FERRY_NAMINGS[1])), ["sail: its work changed"]),
    "a fold":           (ferry(folds=(fold(E.leaked, fold_water, version=2), FERRY_FOLDS[1])), ["sail: its rows on leaked changed (fold)"]),
    "a row's target":   (changed("turn", to=S.dock), ["moor: its rows on turned changed (to)"]),
    "a row more":       (ferry(rows=(*FERRY_TABLE, row(S.moor, E.called, otherwise, S.sail, None, "call", "§"))), ["moor: a new row on called"]),
    "another row more": (ferry(rows=(*FERRY_TABLE, row(S.moor, E.turned, otherwise, S.dock, None, "turn", "§"))), ["moor: its rows on turned changed (1 rows, now 2)"]),
    "a row less":       (ferry(rows=tuple(r for r in FERRY_TABLE if r.label != "turn")), ["moor: no row on turned any more"]),
    "a computation":    (ferry(computes=(replace(FERRY_COMPUTES[0], version=2),)), ["bail: its computed changed"]),
    "the abort":        (ferry(abort=None), ["its abort is None, was left"]),
    "the successes":    (ferry(successes=("landed", "lost")), ["what counts as success is ['landed', 'lost'], was ['landed']"]),
}
# fmt: on


@for_each_case("what", CHANGES)
def test_what_a_run_can_still_reach_is_compared(what):
    """A change in the part that a run can still reach is told in words, state by state."""
    m, told = CHANGES[what]
    assert find_definition_changes(OLD, plain_value(definition_data(m)), "sail") == told


@for_each_case("what", [w for w in CHANGES if w not in ("the abort", "the successes")])
def test_what_a_run_cannot_reach_any_more_is_its_own(what):
    """A run whose remaining part is unchanged goes on, whatever else has changed."""
    m, _ = CHANGES[what]
    assert m.digest != FERRY.digest
    assert find_definition_changes(OLD, plain_value(definition_data(m)), "sunk") == []


def test_another_kernel_is_a_difference():
    """A definition made for another kernel version is never taken for the same."""
    assert find_definition_changes({**OLD, "kernel": 0}, OLD, "sunk") == ["the kernel's version is 1, was 0"]


def test_a_state_that_is_gone_is_a_difference():
    """A state that the run can reach and that is no more is told."""
    less = {**OLD, "states": {k: v for k, v in OLD["states"].items() if k != "moor"}}
    assert find_definition_changes(OLD, less, "sail") == ["state moor is gone"]
    assert find_definition_changes(OLD, less, "sunk") == []


def test_flags_are_compared():
    """A state that has become final is another state."""
    states = {**OLD["states"], "ashore": {**OLD["states"]["ashore"], "flags": ["final"]}}
    assert find_definition_changes(OLD, {**OLD, "states": states}, "moor") == ["ashore: its flags changed"]


def test_a_running_job_counts_wherever_the_run_is():
    """A job under way that outlives its state brings its naming along."""
    m, _ = CHANGES["a guard"]
    assert find_definition_changes(OLD, plain_value(definition_data(m)), "sunk", ("row",)) == [
        "job row: it or its naming changed"
    ]
    assert find_definition_changes(OLD, plain_value(definition_data(m)), "sunk", ("ask", "unheard of")) == []
    less = {**OLD, "states": {**OLD["states"], "sail": {**OLD["states"]["sail"], "work": []}}}
    assert find_definition_changes(OLD, less, "sunk", ("row",)) == ["job row is gone"]


def test_reachable_follows_rows():
    """What a run can still reach is what rows lead to."""
    assert reachable_states(OLD, "sunk") == {"sunk"}
    assert reachable_states(OLD, "moor") == {"moor", "ashore", "sail", "bail", "dock", "sunk"}
    assert reachable_states(OLD, "unheard of") == {"unheard of"}


# ── contexts of an older form ───────────────────────────────────────────────────────────────────────────────────────

NEWER = ferry(
    context=Deeper,
    context_version=2,
    upcasts={1: deepen},
    folds=(fold(E.leaked, lambda _, e: (("add", "draught", e.litres),), version=2),),
    rows=(*FERRY_TABLE, row(S.dock, E.called, otherwise, S.dock, None, "call out", "§")),
)


def leaking(m=FERRY):
    """A run that has leaked once and rows on."""
    out = advance_run(
        m, begin_ferry(m).snapshot, EventOccurrence(E.cast_off, E.cast_off.carries(), Origin.PERSON),
        StepMeta(20),
    )  # fmt: skip
    (item,) = out.snapshot.items
    happened = name_facts(m, out.snapshot, "row", WaterFacts(40))
    done = advance_run(m, out.snapshot, happened, StepMeta(30, cause=item, closes=(item,)))
    return (*begin_ferry(m).entries, *out.entries, *done.entries)


def plainly(stored):
    snapshot = None
    for s in stored:
        snapshot = apply_entry(snapshot, read_entry(s.body), s.hash)
    return snapshot


def test_an_old_context_is_upcast():
    """A context of an older version becomes today's, field by field, by pure functions."""
    now = convert_context(NEWER, plainly(leaking()))
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
        convert_context(m, plainly(leaking()))


def test_a_context_of_a_newer_version_is_refused():
    """An older machine never goes on with a newer context: it would lose what it does not know."""
    newer = msgspec.structs.replace(plainly(leaking()), context_version=2)
    with pytest.raises(
        ContractError, match="its context is version 2, this ferry knows 1: upgrade steersman"
    ):
        convert_context(FERRY, newer)


def test_a_migrated_run_says_which_entries_could_be_decided_again():
    """After a migration old entries are another version, new ones are decided again; nothing is claimed beyond that."""
    stored = list(leaking())
    moved = migrate_run(
        NEWER, convert_context(NEWER, plainly(stored)), StepMeta(40, "person:ann", why="new boat")
    )
    (entry,), after = moved.entries, moved.snapshot
    done = advance_run(
        NEWER, after, EventOccurrence(E.left, GateAnswer("abort"), Origin.PERSON), StepMeta(50)
    )
    tape = [(read_entry(s.body), s.hash) for s in (*stored, entry, *done.entries)]
    assert [(d.seq, d.verdict) for d in repeat_decisions(NEWER, tape)] == [
        (1, "other version"), (2, "other version"), (3, "other version"), (4, "other version"), (6, "same"),
    ]  # fmt: skip
    assert [d.verdict for d in repeat_decisions(FERRY, tape)] == ["same"] * 4 + ["other version"]


def test_with_the_old_definition_what_has_not_changed_is_decided_again():
    """Where the part of the machine in an entry's state is the same, another definition does not matter."""
    tape = [(read_entry(s.body), s.hash) for s in leaking()]
    bumped = ferry(folds=(fold(E.leaked, fold_water, version=2), FERRY_FOLDS[1]))
    verdicts = {d.seq: d.verdict for d in repeat_decisions(bumped, tape, {FERRY.digest: OLD})}
    assert verdicts == {1: "same", 2: "same", 3: "other version", 4: "same"}
    assert {d.verdict for d in repeat_decisions(NEWER, tape, {FERRY.digest: OLD})} == {"other version"}
    assert {d.verdict for d in repeat_decisions(bumped, tape, {FERRY.digest: {**OLD, "kernel": 0}})} == {
        "other version"
    }


# ── migration ───────────────────────────────────────────────────────────────────────────────────────────────────────

LAMP = effect("lamp", WaterFacts, "light")


class Lit(State):
    """The ferry's states in another version: nobody rows any more, a lamp is lit, and `moor` is gone."""

    dock = state("Passengers come on board.", initial=True)
    sail = state("A lamp is lit.", do(LAMP))
    bail = state("There is water in the boat.")
    ashore = resting("The trip is over.")
    sunk = final("The boat lies on the ground.")


def lit(*more, **changes):
    """A ferry of another kind; its rows are the same where they can be."""
    here = {s.name: s for s in Lit.all}
    kept = [
        r
        for r in FERRY_TABLE
        if r.label in ("come on board", "leave", "leak", "bail", "give up", "leave it", "call")
    ]
    rows = tuple(replace(r, source=_of(here, r.source), to=here[r.to.name]) for r in kept)
    parts = {
        "states": Lit, "rows": (*rows, *more), "namings": (naming(LAMP, (otherwise, E.leaked)),), "laws": (),
        "computes": (replace(FERRY_COMPUTES[0], state=Lit.bail),),
    }  # fmt: skip
    return ferry(**{**parts, **changes})


def _of(here, source):
    return here[source.name] if isinstance(source, StateDef) else source


def test_a_migration_starts_the_work_of_the_state():
    """However a state is entered its work starts: what the new version asks for is planned, what it has no more is over."""
    before = plainly(leaking())
    m = lit()
    done = migrate_run(m, convert_context(m, before), StepMeta(40, "person:ann", why="a lamp"))
    (entry,) = done.entries
    assert (entry.entry.kind, entry.entry.actor, entry.entry.why) == ("migrated", "person:ann", "a lamp")
    assert entry.entry.closed == tuple(before.items)
    assert [(i.job, i.visit) for i in done.snapshot.items.values()] == [("lamp", before.visit)]
    assert done.snapshot.definition == m.digest
    assert plain_value(apply_entry(before, read_entry(entry.body), entry.hash)) == plain_value(done.snapshot)


def test_a_migration_goes_on_where_the_new_version_computes():
    """Where the new version brings about something by itself, it does so in the same commit, to the seal."""
    sink = row(Lit.sail, E.given_up, otherwise, Lit.sunk, None, "sink", "§")
    m = lit(
        sink,
        computes=(computed(Lit.sail, (otherwise, E.given_up)), computed(Lit.bail, (otherwise, E.bailed))),
    )
    done = migrate_run(m, convert_context(m, plainly(leaking())), StepMeta(40, why="it sinks"))
    assert [s.entry.kind for s in done.entries] == ["migrated", "transition", "sealed"]
    assert done.snapshot.state == "sunk"


def test_a_migration_keeps_a_budgets_gate():
    """The gate of a used-up budget belongs to no machine and stays."""
    held = build_budget_gate(FERRY_RUN, 4, 9, 4, "tokens")
    before = plainly(leaking())
    before.items = {**before.items, held.id: held}
    m = lit()
    assert held.id in migrate_run(m, convert_context(m, before), StepMeta(40, why="a lamp")).snapshot.items


def test_a_run_that_was_ended_is_migrated_and_no_more():
    """A run with an outcome from outside starts nothing."""
    m = lit()
    ended = convert_context(m, plainly(leaking()))
    ended.ended, ended.items = "canceled", {}
    done = migrate_run(m, ended, StepMeta(40, why="a lamp"))
    assert (len(done.entries), done.snapshot.items, done.snapshot.ended) == (1, {}, "canceled")


def test_a_run_in_a_state_that_is_gone_is_not_migrated():
    """There is nowhere to go on: the run stays what it is, and the person is told what can be done."""
    m = lit()
    moored = convert_context(m, plainly(leaking()))
    moored.state = "moor"
    words = "is in moor, which this ferry does not have: go on with the steersman that began it"
    with pytest.raises(UserError, match=words):
        migrate_run(m, moored, StepMeta(40, why="a lamp"))
