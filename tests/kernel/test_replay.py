"""From tape to state and back: the first bad record is named, forks and overrides are understood."""

import msgspec
import pytest
from cases import for_each_case
from ferry import FERRY, FOLDS, RUN, TABLE, Context, E, S, Water, begun, ferry

from steersman.errors import ContractError
from steersman.kernel.build import machine
from steersman.kernel.canonical import digest, plain
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
from steersman.kernel.record import Meta, advance, note, overridden
from steersman.kernel.replay import (
    Bad,
    Decision,
    applied,
    carried,
    chain,
    decision_hash,
    rebuilt,
    redecided,
    typed,
)
from steersman.kernel.step import Happened, name_facts, override
from steersman.kernel.tape import GENESIS, Entry, read, sealed


def voyage(m=FERRY):
    """A whole trip: a leak, a landing, a call; as stored rows, entries, and the run at its end."""
    made = begun(m)
    stored, snapshot = list(made.entries), made.snapshot
    for job, event_, data in (
        (None, E.cast_off, None), ("row", None, Water(4)), ("row", None, Water(0)), ("ask", None, GateAnswer("land")), (None, E.called, None),
    ):  # fmt: skip
        if job is None:
            done = advance(
                m, snapshot, Happened(event_, event_.carries(), Origin.PERSON), Meta(snapshot.seq * 10)
            )
        else:
            (item,) = snapshot.items
            happened = name_facts(m, snapshot, job, data)
            done = advance(m, snapshot, happened, Meta(snapshot.seq * 10, cause=item, closes=(item,)))
        stored += done.entries
        snapshot = done.snapshot
    return stored, snapshot


STORED, END = voyage()
ROWS = [(s.entry.seq, s.body, s.hash) for s in STORED]
READ = [(read(s.body), s.hash) for s in STORED]


def test_a_tape_is_the_run():
    """Applying a tape gives the run that wrote it."""
    assert plain(rebuilt(ROWS, RUN)) == plain(END)
    assert typed(FERRY, rebuilt(ROWS, RUN)).context == END.context


def test_a_tape_may_be_taken_up_from_a_snapshot():
    """From a snapshot the entries after it are enough to apply, one by one."""
    half = rebuilt(ROWS[:4], RUN)
    for entry, hash_ in READ[4:]:
        half = applied(half, entry, hash_)
    assert plain(half) == plain(END)


def test_an_empty_tape_is_no_run():
    """Nothing is not a run."""
    assert rebuilt([], RUN) == Bad(1, "the run has no entry")


def _forged(n, **changes):
    """The tape with entry n replaced by a well-hashed forgery."""
    entry = msgspec.structs.replace(read(ROWS[n][1]), **changes)
    made = sealed(entry)
    return [*ROWS[:n], (ROWS[n][0], made.body, made.hash), *ROWS[n + 1 :]]


# fmt: off
TAMPERED = {
    "a missing entry":       (lambda: [*ROWS[:2], *ROWS[3:]],                                          Bad(3, "entry 3 is missing, the next one is 4")),
    "a changed byte":        (lambda: [*ROWS[:2], (3, ROWS[2][1].replace(b"leaked", b"leaces"), ROWS[2][2])], Bad(3, "entry 3 does not have the hash it was stored with")),
    "no entry at all":       (lambda: [*ROWS[:2], (3, b"{}", digest(b"{}"))],                          None),
    "another run's entry":   (lambda: _forged(2, run="260101-cccccc"),                                 Bad(3, f"entry 3 does not follow entry 2 of run {RUN}")),
    "another number":        (lambda: _forged(2, seq=9),                                               Bad(3, f"entry 3 does not follow entry 2 of run {RUN}")),
    "another past":          (lambda: _forged(2, prev=GENESIS),                                        Bad(3, f"entry 3 does not follow entry 2 of run {RUN}")),
    "a forged entry":        (lambda: _forged(2, actor="person:eve"),                                  Bad(4, f"entry 4 does not follow entry 3 of run {RUN}")),
    "an earlier time":       (lambda: _forged(5, at=1),                                                Bad(6, "entry 6 is earlier than entry 5")),
}
# fmt: on


@for_each_case("how", TAMPERED)
def test_the_first_bad_record_is_named(how):
    """Whatever is done to a tape, reading ends at the first record that does not fit, and says how."""
    rows, bad = TAMPERED[how]
    told = rebuilt(rows(), RUN)
    assert isinstance(told, Bad)
    assert bad is None or told == bad
    assert list(chain(rows(), RUN))[-1] == told


def test_another_form_of_the_same_entry_is_bad():
    """An entry that says the same in other bytes is not the entry."""
    body = ROWS[0][1].replace(b'{"', b'{ "', 1)
    assert rebuilt([(1, body, digest(body))], RUN) == Bad(1, "entry 1 is not in canonical form")


def test_every_decision_is_the_same_again():
    """A tape under its own definition is decided again to the same rows, guards and ops."""
    verdicts = list(redecided(FERRY, READ))
    assert {d.verdict for d in verdicts} == {"same"}
    assert len(verdicts) == len([e for e, _ in READ if e.kind in ("created", "transition")])


def test_a_decision_that_would_be_another_is_told():
    """A recorded decision that today's code, under the same versions, would take differently is different."""
    lying = ferry(folds=(fold(E.leaked, lambda *_: ()), FOLDS[1]))  # the version was not raised
    assert lying.digest == FERRY.digest
    wrong = [d for d in redecided(lying, READ) if d.verdict == "different"]
    assert [d.seq for d in wrong] == [3]
    assert "'leaked'" in wrong[0].detail


def test_a_decision_that_would_be_refused_is_told():
    """A recorded transition for which no row would fit is different, with the refusal's reason."""
    entry = msgspec.structs.replace(READ[1][0], event="bailed")
    verdicts = list(redecided(FERRY, [READ[0], (entry, "x")]))
    assert verdicts[1] == Decision(2, "different", "no row for bailed in dock fits now")


def test_another_definition_is_another_version():
    """Without the old definition at hand nothing is claimed about its entries."""
    other = ferry(context_version=2, upcasts={1: dict})
    assert {(d.verdict, d.detail) for d in redecided(other, READ)} == {("other version", FERRY.digest)}


def test_an_override_is_decided_again():
    """A waived guard is understood when it is replayed."""
    m = ferry(
        rows=(*TABLE, row(S.sail, E.called, otherwise, S.dock, None, "row back", "§", waivable=otherwise))
    )
    made = begun(m)
    out = advance(m, made.snapshot, Happened(E.cast_off, E.cast_off.carries(), Origin.PERSON), Meta(20))
    done = overridden(m, out.snapshot, override(m, out.snapshot, "dock", "the tide is out"), Meta(30))
    tape = [(read(s.body), s.hash) for s in (*made.entries, *out.entries, *done.entries)]
    assert [d.verdict for d in redecided(m, tape)] == ["same", "same", "same"]


def test_a_fork_begins_without_a_decision():
    """A run that was forked begins with what it was given; only what it does itself is decided again."""
    first = Entry(
        run=RUN, seq=1, at=1, kind="created", prev=GENESIS, cause="260101-cccccc@4", to="dock", definition=FERRY.digest,
        machine="ferry", context=msgspec.to_builtins(Context()), context_version=1, root=RUN,
    )  # fmt: skip
    begun_ = sealed(first)
    snapshot = typed(FERRY, applied(None, begun_.entry, begun_.hash))
    done = advance(FERRY, snapshot, Happened(E.cast_off, E.cast_off.carries(), Origin.PERSON), Meta(20))
    tape = [(read(s.body), s.hash) for s in (begun_, *done.entries)]
    assert list(redecided(FERRY, tape)) == [Decision(2, "same")]


def test_a_computed_event_that_is_computed_no_more_is_told():
    """Where the machine would bring about nothing, the recorded event is tried by itself."""
    mute = ferry(computes=())
    entries = [
        (msgspec.structs.replace(e, definition=mute.digest if e.definition else ""), h) for e, h in READ
    ]
    verdicts = {d.seq: d.verdict for d in redecided(mute, entries)}
    assert verdicts[4] == "different"  # bailed: its guard is not asked any more


def test_the_decision_hash_tells_decisions_and_trees():
    """Another guard's answer or another tree is another hash; a note beside it is not."""
    entries = [e for e, _ in READ]
    first = decision_hash(entries)
    stored, _ = note(END, Meta(99), "note", why="by the way")
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
        run=RUN, seq=1, at=1, kind="transition", prev=GENESIS, event=name, event_version=version, data=data
    )


def test_an_old_event_is_read_in_its_new_form():
    """What an older version wrote is upcast step by step to what the event carries now."""
    assert carried(SEA, _entry("sounded", 1, {"fathoms": None})) == Depth(0)
    assert carried(SEA, _entry("sounded", 2, {"fathoms": 3})) == Depth(6)
    assert carried(SEA, _entry("sounded", 3, {"metres": 7, "by": "ann"})) == Depth(7, "ann")
    assert carried(SEA, _entry("kept", 2, None)) == PE.kept.carries()


def test_an_old_event_without_an_upcaster_is_said():
    """Where an upcaster is missing the reader is told which one."""
    with pytest.raises(ContractError, match=r"entry 1: kept version 1 has no upcaster"):
        carried(SEA, _entry("kept", 1, None))
