"""From tape to state and back: the first bad record is named, forks and overrides are understood."""

import msgspec
import pytest
from tests.support.cases import for_each_case
from tests.support.ferry_machine import (
    FERRY,
    FERRY_FOLDS,
    FERRY_RUN,
    FERRY_TABLE,
    E,
    FerryContext,
    S,
    WaterFacts,
    begin_ferry,
    ferry,
)

from steersman.errors import ContractError
from steersman.kernel.build import machine
from steersman.kernel.canonical import plain_value, sha256_hex
from steersman.kernel.definition import (
    Events,
    GateAnswer,
    Origin,
    State,
    event,
    fold,
    otherwise,
    row,
    state,
    table,
)
from steersman.kernel.record import StepMeta, advance_run, record_note, record_override
from steersman.kernel.replay import (
    BadEntry,
    RepeatedDecision,
    apply_entry,
    convert_context,
    decision_hash,
    rebuild_snapshot,
    repeat_decisions,
    typed_event_data,
    verify_chain,
)
from steersman.kernel.step import EventOccurrence, name_facts, override_guard
from steersman.kernel.tape import GENESIS_HASH, Entry, read_entry, seal_entry


def replay_story(m=FERRY):
    """A whole trip: a leak, a landing, a call; as stored rows, entries, and the run at its end."""
    made = begin_ferry(m)
    stored, snapshot = list(made.entries), made.snapshot
    for job, event_, data in (
        (None, E.cast_off, None), ("row", None, WaterFacts(4)), ("row", None, WaterFacts(0)), ("ask", None, GateAnswer("land")), (None, E.called, None),
    ):  # fmt: skip
        if job is None:
            done = advance_run(
                m, snapshot, EventOccurrence(event_, event_.carries(), Origin.PERSON),
                StepMeta(snapshot.seq * 10),
            )  # fmt: skip
        else:
            (item,) = snapshot.items
            happened = name_facts(m, snapshot, job, data)
            done = advance_run(m, snapshot, happened, StepMeta(snapshot.seq * 10, cause=item, closes=(item,)))
        stored += done.entries
        snapshot = done.snapshot
    return stored, snapshot


STORED, END = replay_story()
ROWS = [(s.entry.seq, s.body, s.hash) for s in STORED]
READ = [(read_entry(s.body), s.hash) for s in STORED]


def test_a_tape_is_the_run():
    """Applying a tape gives the run that wrote it."""
    assert plain_value(rebuild_snapshot(ROWS, FERRY_RUN)) == plain_value(END)
    assert convert_context(FERRY, rebuild_snapshot(ROWS, FERRY_RUN)).context == END.context


def test_a_tape_may_be_taken_up_from_a_snapshot():
    """From a snapshot the entries after it are enough to apply, one by one."""
    half = rebuild_snapshot(ROWS[:4], FERRY_RUN)
    for entry, hash_ in READ[4:]:
        half = apply_entry(half, entry, hash_)
    assert plain_value(half) == plain_value(END)


def test_an_empty_tape_is_no_run():
    """Nothing is not a run."""
    assert rebuild_snapshot([], FERRY_RUN) == BadEntry(1, "the run has no entry")


def _forged(n, **changes):
    """The tape with entry n replaced by a well-hashed forgery."""
    entry = msgspec.structs.replace(read_entry(ROWS[n][1]), **changes)
    made = seal_entry(entry)
    return [*ROWS[:n], (ROWS[n][0], made.body, made.hash), *ROWS[n + 1 :]]


# fmt: off
TAMPERED = {
    "a missing entry":       (lambda: [*ROWS[:2], *ROWS[3:]],                                          BadEntry(3, "entry 3 is missing, the next one is 4")),
    "a changed byte":        (lambda: [*ROWS[:2], (3, ROWS[2][1].replace(b"leaked", b"leaces"), ROWS[2][2])], BadEntry(3, "entry 3 does not have the hash it was stored with")),
    "no entry at all":       (lambda: [*ROWS[:2], (3, b"{}", sha256_hex(b"{}"))],                          None),
    "another run's entry":   (lambda: _forged(2, run="260101-cccccc"),                                 BadEntry(3, f"entry 3 does not follow entry 2 of run {FERRY_RUN}")),
    "another number":        (lambda: _forged(2, seq=9),                                               BadEntry(3, f"entry 3 does not follow entry 2 of run {FERRY_RUN}")),
    "another past":          (lambda: _forged(2, prev=GENESIS_HASH),                                        BadEntry(3, f"entry 3 does not follow entry 2 of run {FERRY_RUN}")),
    "a forged entry":        (lambda: _forged(2, actor="person:eve"),                                  BadEntry(4, f"entry 4 does not follow entry 3 of run {FERRY_RUN}")),
    "an earlier time":       (lambda: _forged(5, at=1),                                                BadEntry(6, "entry 6 is earlier than entry 5")),
}
# fmt: on


@for_each_case("how", TAMPERED)
def test_the_first_bad_record_is_named(how):
    """Whatever is done to a tape, reading ends at the first record that does not fit, and says how."""
    rows, bad = TAMPERED[how]
    told = rebuild_snapshot(rows(), FERRY_RUN)
    assert isinstance(told, BadEntry)
    assert bad is None or told == bad
    assert list(verify_chain(rows(), FERRY_RUN))[-1] == told


def test_another_form_of_the_same_entry_is_bad():
    """An entry that says the same in other bytes is not the entry."""
    body = ROWS[0][1].replace(b'{"', b'{ "', 1)
    assert rebuild_snapshot([(1, body, sha256_hex(body))], FERRY_RUN) == BadEntry(
        1, "entry 1 is not in canonical form"
    )


def test_every_decision_is_the_same_again():
    """A tape under its own definition is decided again to the same rows, guards and ops."""
    verdicts = list(repeat_decisions(FERRY, READ))
    assert {d.verdict for d in verdicts} == {"same"}
    assert len(verdicts) == len([e for e, _ in READ if e.kind in ("created", "transition")])


def test_a_decision_that_would_be_another_is_told():
    """A recorded decision that today's code, under the same versions, would take differently is different."""
    lying = ferry(folds=(fold(E.leaked, lambda *_: ()), FERRY_FOLDS[1]))  # the version was not raised
    assert lying.digest == FERRY.digest
    wrong = [d for d in repeat_decisions(lying, READ) if d.verdict == "different"]
    assert [d.seq for d in wrong] == [3]
    assert "'leaked'" in wrong[0].detail


def test_a_decision_that_would_be_refused_is_told():
    """A recorded transition for which no row would fit is different, with the refusal's reason."""
    entry = msgspec.structs.replace(READ[1][0], event="bailed")
    verdicts = list(repeat_decisions(FERRY, [READ[0], (entry, "x")]))
    assert verdicts[1] == RepeatedDecision(2, "different", "no row accepts bailed in dock now")


def test_another_definition_is_another_version():
    """Without the old definition at hand nothing is claimed about its entries."""
    other = ferry(context_version=2, upcasts={1: dict})
    assert {(d.verdict, d.detail) for d in repeat_decisions(other, READ)} == {("other version", FERRY.digest)}


def test_an_override_is_decided_again():
    """A waived guard is understood when it is replayed."""
    m = ferry(
        rows=(
            *FERRY_TABLE,
            row(S.sail, E.called, otherwise, S.dock, None, "row back", "§", waivable=otherwise),
        )
    )
    made = begin_ferry(m)
    out = advance_run(
        m, made.snapshot, EventOccurrence(E.cast_off, E.cast_off.carries(), Origin.PERSON), StepMeta(20)
    )
    done = record_override(
        m, out.snapshot, override_guard(m, out.snapshot, "dock", "the tide is out"), StepMeta(30)
    )
    tape = [(read_entry(s.body), s.hash) for s in (*made.entries, *out.entries, *done.entries)]
    assert [d.verdict for d in repeat_decisions(m, tape)] == ["same", "same", "same"]


def test_a_fork_begins_without_a_decision():
    """A run that was forked begins with what it was given; only what it does itself is decided again."""
    first = Entry(
        run=FERRY_RUN, seq=1, at=1, kind="created", prev=GENESIS_HASH, cause="260101-cccccc@4", to="dock", definition=FERRY.digest,
        machine="ferry", context=msgspec.to_builtins(FerryContext()), context_version=1, root=FERRY_RUN,
    )  # fmt: skip
    begun_ = seal_entry(first)
    snapshot = convert_context(FERRY, apply_entry(None, begun_.entry, begun_.hash))
    done = advance_run(
        FERRY, snapshot, EventOccurrence(E.cast_off, E.cast_off.carries(), Origin.PERSON), StepMeta(20)
    )
    tape = [(read_entry(s.body), s.hash) for s in (begun_, *done.entries)]
    assert list(repeat_decisions(FERRY, tape)) == [RepeatedDecision(2, "same")]


def test_a_computed_event_that_is_computed_no_more_is_told():
    """Where the machine would bring about nothing, the recorded event is tried by itself."""
    mute = ferry(computes=())
    entries = [
        (msgspec.structs.replace(e, definition=mute.digest if e.definition else ""), h) for e, h in READ
    ]
    verdicts = {d.seq: d.verdict for d in repeat_decisions(mute, entries)}
    assert verdicts[4] == "different"  # bailed: its guard is not asked any more


def test_the_decision_hash_tells_decisions_and_trees():
    """Another guard's answer or another tree is another hash; a note beside it is not."""
    entries = [e for e, _ in READ]
    first = decision_hash(entries)
    stored, _ = record_note(END, StepMeta(99), "note", why="by the way")
    assert decision_hash([*entries, stored.entry]) == first
    grown = [msgspec.structs.replace(e, data={"tree": "t1"}) if e.seq == 3 else e for e in entries]
    assert decision_hash(grown) != first
    assert len(first) == 64


# ── events of an older form ─────────────────────────────────────────────────────────────────────────────────────────


class Depth(msgspec.Struct, frozen=True):
    """What an event carries in its third form."""

    metres: int
    by: str = ""


class PS(State):
    sea = state("At sea.", initial=True)


class PE(Events):
    sounded = event(
        "The depth.", Origin.PERSON, Depth, version=3,
        upcasts={1: lambda d: {"fathoms": d["fathoms"] or 0}, 2: lambda d: {"metres": d["fathoms"] * 2}},
    )  # fmt: skip
    kept = event("Nothing.", Origin.PERSON, version=2)


SEA = machine(
    "sea", "Deep.", states=PS, events=PE, context=msgspec.defstruct("Sea", []),
    rows=table(row(None, PE.sounded, otherwise, PS.sea, None, "sound", "§"), row(PS.sea, PE.kept, otherwise, PS.sea, None, "keep", "§")),
)  # fmt: skip


def _entry(name, version, data):
    return Entry(
        run=FERRY_RUN, seq=1, at=1, kind="transition", prev=GENESIS_HASH, event=name, event_version=version,
        data=data,
    )  # fmt: skip


def test_an_old_event_is_read_in_its_new_form():
    """What an older version wrote is upcast step by step to what the event carries now."""
    assert typed_event_data(SEA, _entry("sounded", 1, {"fathoms": None})) == Depth(0)
    assert typed_event_data(SEA, _entry("sounded", 2, {"fathoms": 3})) == Depth(6)
    assert typed_event_data(SEA, _entry("sounded", 3, {"metres": 7, "by": "ann"})) == Depth(7, "ann")
    assert typed_event_data(SEA, _entry("kept", 2, None)) == PE.kept.carries()


def test_an_old_event_without_an_upcaster_is_said():
    """Where an upcaster is missing the reader is told which one."""
    with pytest.raises(ContractError, match=r"entry 1: kept version 1 has no upcaster"):
        typed_event_data(SEA, _entry("kept", 1, None))
