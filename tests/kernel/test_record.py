"""Entries: what a step, a refusal, a note and a seal say; what a run's status and outcome are."""

import msgspec
import pytest
from tests.support.cases import for_each_case
from tests.support.ferry_machine import FERRY, FERRY_RUN, E, FerryContext, WaterFacts, begin_ferry

from steersman.kernel.build import machine
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.definition import (
    Events,
    GateAnswer,
    Origin,
    State,
    do,
    effect,
    event,
    naming,
    otherwise,
    resting,
    row,
    state,
    table,
)
from steersman.kernel.record import (
    StepMeta,
    advance_run,
    create_run_entries,
    record_late_result,
    record_note,
    record_refusal,
    run_outcome,
    run_status_word,
)
from steersman.kernel.snapshot import JobItem, Snapshot, context_fields, runtime_field, state_hash
from steersman.kernel.step import EventOccurrence, StepRefused, name_facts
from steersman.kernel.tape import GENESIS_HASH, EntryRetry, read_entry


def sailing(**meta):
    return advance_run(
        FERRY, begin_ferry().snapshot, EventOccurrence(E.cast_off, E.cast_off.carries(), Origin.PERSON),
        StepMeta(20, **meta),
    )  # fmt: skip


def test_a_creation_says_everything_about_the_beginning():
    """The first entry carries machine, definition, context and its version, and follows nothing."""
    entry = begin_ferry(actor="person:ann").entries[0].entry
    assert (entry.seq, entry.prev, entry.kind, entry.machine, entry.definition) == (
        1, GENESIS_HASH, "created", "ferry", FERRY.digest,
    )  # fmt: skip
    assert entry.context == msgspec.to_builtins(FerryContext())
    assert (entry.context_version, entry.root, entry.actor) == (1, FERRY_RUN, "person:ann")


def test_an_entry_reads_back_as_it_was():
    """The bytes of an entry are the entry."""
    for sealed in sailing().entries:
        assert read_entry(sealed.body).planned == sealed.entry.planned
        assert read_entry(sealed.body).seq == sealed.entry.seq


@for_each_case("name", ["ann", "Zoë", "\ue000", "\U0001f6a3"])
def test_the_bytes_of_an_entry_are_canonical_in_any_script(name):
    """Whatever alphabet a name is in, the stored bytes are the canonical ones."""
    for made in begin_ferry(actor=f"person:{name}").entries:
        assert made.body == canonical_bytes(made.entry)


def test_time_never_goes_back():
    """A clock that goes back does not take the tape with it."""
    later = sailing().snapshot
    back = advance_run(FERRY, later, EventOccurrence(E.left, GateAnswer("abort"), Origin.PERSON), StepMeta(1))
    assert [s.entry.at for s in back.entries] == [20, 20]


def test_a_refusal_is_an_entry_that_changes_nothing():
    """A refused event is journaled with why and what is legal, and counted."""
    before = begin_ferry().snapshot
    done = advance_run(
        FERRY, before, EventOccurrence(E.rowed, WaterFacts(), Origin.EFFECT),
        StepMeta(30, cause="x", why="said so"),
    )  # fmt: skip
    entry = done.entries[0].entry
    assert (entry.kind, entry.event, entry.source, entry.legal) == (
        "refused", "rowed", "dock", ("cast_off", "left"),
    )  # fmt: skip
    assert entry.why == "no row accepts rowed in dock now"
    assert done.refused is not None
    assert (done.snapshot.state, done.snapshot.refused, done.snapshot.context) == ("dock", 1, before.context)


def test_a_run_that_reaches_its_outcome_is_sealed():
    """Entering a resting or final state adds a seal over the whole state in the same commit."""
    done = advance_run(
        FERRY, begin_ferry().snapshot, EventOccurrence(E.left, GateAnswer("abort"), Origin.PERSON),
        StepMeta(20),
    )  # fmt: skip
    assert [s.entry.kind for s in done.entries] == ["transition", "sealed"]
    before = msgspec.structs.replace(done.snapshot, seq=2)
    assert done.entries[1].entry.state_hash == state_hash(before)


def test_the_state_hash_covers_the_end_from_outside():
    """A run canceled in place is another state than one that goes on."""
    snapshot = begin_ferry().snapshot
    assert state_hash(snapshot) != state_hash(msgspec.structs.replace(snapshot, ended="canceled"))
    assert context_fields({"a": 1}) == {"a": 1}


def test_the_runtime_finds_its_fields_in_a_plain_context():
    """The audit rebuilds a run with a plain context, a driver with a typed one."""
    assert (runtime_field({"commit": "c1"}, "commit"), runtime_field({"commit": "c1"}, "tree")) == ("c1", "")
    with pytest.raises(KeyError):
        runtime_field({}, "another")


def test_a_note_takes_no_row():
    """Entries beside the table carry what they are given, close what they name, and keep the reason."""
    snapshot = sailing().snapshot
    (item,) = snapshot.items
    again = msgspec.structs.replace(snapshot.items[item], starts=2)
    stored, after = record_note(
        snapshot, StepMeta(30, retry=EntryRetry(1, "interrupted"), why="claimed"), "effect_started",
        held=(again,),
    )  # fmt: skip
    assert (stored.entry.why, stored.entry.retry, after.items[item].starts) == (
        "claimed", EntryRetry(1, "interrupted"), 2,
    )  # fmt: skip
    stored, after = record_note(
        after, StepMeta(31, closes=(item,), why="one"), "note", why="another", closed=("x",)
    )
    assert (stored.entry.why, stored.entry.closed, after.items) == ("another", (item, "x"), {})


def test_a_run_may_end_from_outside_and_be_reopened():
    """An outcome given in place of the table's own holds until a row is taken again."""
    stored, ended = record_note(begin_ferry().snapshot, StepMeta(30), "note", ended="canceled")
    assert (ended.ended, run_outcome(FERRY, ended), stored.entry.ended) == (
        "canceled", "canceled", "canceled",
    )  # fmt: skip
    again = advance_run(
        FERRY, ended, EventOccurrence(E.cast_off, E.cast_off.carries(), Origin.PERSON), StepMeta(40)
    )
    assert (again.snapshot.ended, run_outcome(FERRY, again.snapshot)) == ("", "")


def test_a_late_result_is_journaled_and_not_folded():
    """What comes after its state was left is kept and changes nothing."""
    snapshot = begin_ferry().snapshot
    done = record_late_result(snapshot, StepMeta(30, cause=f"{FERRY_RUN}:9:1"), WaterFacts(5))
    assert (done.entries[0].entry.kind, done.entries[0].entry.late) == ("effect_finished", True)
    assert done.snapshot.context == snapshot.context


def test_a_refusal_may_be_made_elsewhere():
    """The runtime's own refusals are entries like any other."""
    done = record_refusal(
        begin_ferry().snapshot, StepRefused("answer", "the gate is void", {}, ("left",)), StepMeta(30)
    )
    assert done.entries[0].entry.why == "the gate is void"


# ── a budget that is used up ────────────────────────────────────────────────────────────────────────────────────────


class Asked(msgspec.Struct, kw_only=True):
    """Nothing to know."""


THINK = effect("think", WaterFacts, "agent")
WALK = effect("walk", WaterFacts, "legs")


class BS(State):
    think = state("Somebody thinks and somebody walks.", do(THINK), do(WALK), initial=True)
    walk = state("Only walking.", do(WALK))
    home = resting("Home.")


class BE(Events):
    asked = event("A question.", Origin.PERSON)
    thought = event("An answer.", Origin.EFFECT, WaterFacts)


BUDGETED = machine(
    "budgeted", "Thinks.", states=BS, events=BE, context=Asked,
    rows=table(
        row(None, BE.asked, otherwise, BS.think, None, "ask", "§"),
        row(BS.think, BE.thought, otherwise, BS.walk, None, "walk", "§"),
        row(BS.walk, BE.thought, otherwise, BS.home, None, "be home", "§"),
    ),
    namings=(naming(THINK, (otherwise, BE.thought)), naming(WALK, (otherwise, BE.thought))),
)  # fmt: skip


def asked(**meta):
    return create_run_entries(
        BUDGETED, FERRY_RUN, EventOccurrence(BE.asked, BE.asked.carries(), Origin.PERSON), Asked(),
        StepMeta(10, **meta),
    )  # fmt: skip


def test_a_used_up_budget_holds_agents_at_a_gate():
    """With a figure used up, agents that are planned wait and a gate asks to raise or stop; other work goes on."""
    items = list(asked(hold="tokens").snapshot.items.values())
    assert [(i.job, i.held) for i in items] == [("think", True), ("walk", False), ("budget", False)]
    assert items[2].input["choices"] == ["raise", "stop"]
    assert items[2].id == f"{FERRY_RUN}:1:3"
    assert [i.job for i in asked().snapshot.items.values()] == ["think", "walk"]


def test_a_used_up_budget_asks_only_when_an_agent_waits():
    """Without an agent to hold there is nothing to ask."""
    snapshot = asked().snapshot
    done = advance_run(
        BUDGETED,
        snapshot,
        name_facts(BUDGETED, snapshot, "think", WaterFacts()),
        StepMeta(20, hold="tokens", spent={"tokens": 3}),
    )
    assert [i.job for i in done.snapshot.items.values()] == ["walk"]
    assert done.snapshot.budget == {"tokens": 3}
    again = advance_run(
        BUDGETED,
        done.snapshot,
        name_facts(BUDGETED, done.snapshot, "walk", WaterFacts()),
        StepMeta(30, spent={"tokens": 4, "ms": 1}),
    )
    assert again.snapshot.budget == {"tokens": 7, "ms": 1}


# ── status and outcome ──────────────────────────────────────────────────────────────────────────────────────────────


def _item(kind, **more):
    return JobItem(f"{FERRY_RUN}:1:1", "row", kind, "row", {}, 1, **more)


# fmt: off
STATUS = [
    ("dock",   {},                                                {},                     "waiting for you", ""),
    ("sail",   {"items": (_item("effect"),)},                     {},                     "working",         ""),
    ("sail",   {"items": (_item("child"),)},                      {},                     "working",         ""),
    ("sail",   {"items": (_item("effect", held=True), _item("gate"))}, {},                "waiting for you", ""),
    ("sail",   {"items": (_item("effect", due=99),)},             {},                     "waiting until",   ""),
    ("sail",   {"items": (_item("timer", due=99),)},              {},                     "waiting until",   ""),
    ("moor",   {"items": (_item("gate"),)},                       {},                     "waiting for you", ""),
    ("ashore", {},                                                {"outcome": "landed"},  "done",            "landed"),
    ("sunk",   {},                                                {"outcome": "lost"},    "stopped",         "lost"),
    ("sunk",   {},                                                {},                     "stopped",         "sunk"),
    ("sail",   {"ended": "canceled", "items": (_item("effect"),)}, {},                    "stopped",         "canceled"),
]
# fmt: on


@for_each_case(("state_", "fields_", "context", "word", "result"), STATUS)
def test_a_run_shows_one_of_six_words(state_, fields_, context, word, result):
    """Whatever a run is, its status is one of the six words, and its outcome is there only when it has one."""
    items = {f"{n}": i for n, i in enumerate(fields_.pop("items", ()))}
    snapshot = Snapshot(
        FERRY_RUN, "ferry", FERRY.digest, state_, FerryContext(**context), items=items, **fields_
    )
    assert (run_status_word(FERRY, snapshot), run_outcome(FERRY, snapshot)) == (word, result)


def test_a_machine_without_an_outcome_field_has_its_state_for_one():
    """Where the context has no outcome, the state's name is the outcome."""
    snapshot = Snapshot(FERRY_RUN, "budgeted", "", "home", Asked())
    assert run_outcome(BUDGETED, snapshot) == "home"
