"""One step: first fit, caps, visits, work, overrides; an illegal event is an answer."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.ferry_machine import (
    DRY,
    FERRY,
    FERRY_RUN,
    FERRY_TABLE,
    LEAKS,
    E,
    FerryContext,
    S,
    WaterFacts,
    begin_ferry,
    ferry,
)
from tests.support.simulated_roundtable import SimulatedRun
from tests.support.small_machines import WATCH

from steersman.errors import DefinitionError, UserError
from steersman.kernel.build import machine
from steersman.kernel.definition import (
    STAY,
    Cap,
    EmptyEventData,
    Events,
    GateAnswer,
    Guard,
    Origin,
    State,
    computed,
    do,
    effect,
    event,
    fold,
    naming,
    otherwise,
    resting,
    room,
    row,
    state,
    table,
    timer,
)
from steersman.kernel.record import StepMeta, advance_run, create_run_entries, record_override
from steersman.kernel.snapshot import JobItem
from steersman.kernel.step import (
    EventOccurrence,
    StepRefused,
    StepTaken,
    compute_event,
    legal_events,
    name_facts,
    override_guard,
    take_step,
)


def person(e, data=None):
    return EventOccurrence(e, data if data is not None else e.carries(), Origin.PERSON)


def sailing(m=FERRY):
    return advance_run(m, begin_ferry(m).snapshot, person(E.cast_off), StepMeta(20)).snapshot


def came_back(m, snapshot, litres, plank="bow"):
    happened = name_facts(m, snapshot, "row", WaterFacts(litres, plank))
    (item,) = [i for i in snapshot.items.values() if i.job == "row"]
    return advance_run(m, snapshot, happened, StepMeta(30, cause=item.id, closes=(item.id,)))


def test_otherwise_holds_whoever_asks():
    """`otherwise` is a guard like any other, and its answer is yes."""
    assert otherwise.test(None, None) is True


def test_legal_says_what_has_a_row():
    """The legal events of a state, all of them or those of one origin, in the order of the table."""
    assert legal_events(FERRY, "sail") == ("rowed", "leaked", "left")
    assert legal_events(FERRY, "sail", Origin.PERSON) == ("left",)
    assert legal_events(FERRY, None) == ("boarded",)


def test_a_cap_counts_and_ends_its_row():
    """A capped row is taken as often as its cap says, then the next row is what happens."""
    snapshot = sailing()
    for n in (1, 2):
        snapshot = came_back(FERRY, snapshot, 5).snapshot
        assert (snapshot.state, snapshot.counts) == ("sail", {"leaks": n})
    done = came_back(FERRY, snapshot, 5)
    assert [s.entry.event for s in done.entries] == ["leaked", "given_up", ""]
    assert done.snapshot.state == "sunk"
    assert done.snapshot.context.litres == 15


def test_a_cap_is_reset_by_its_event():
    """The event that resets a cap clears its count."""
    snapshot = came_back(FERRY, sailing(), 5).snapshot
    snapshot = came_back(FERRY, snapshot, 0).snapshot
    (gate,) = snapshot.items.values()
    landed = name_facts(FERRY, snapshot, "ask", GateAnswer("land"))
    snapshot = advance_run(FERRY, snapshot, landed, StepMeta(40, closes=(gate.id,))).snapshot
    assert (snapshot.state, snapshot.counts) == ("ashore", {"leaks": 1})
    done = advance_run(FERRY, snapshot, person(E.called), StepMeta(50))
    assert done.snapshot.counts == {}
    assert done.entries[0].entry.counts == (("clear", "leaks"),)


def _per_plank():
    cap = Cap("plank", "planks", per=lambda _, e: e.plank, resets=(E.called,))
    rows = [replace(r, cap=cap) if r.label == "leak" else r for r in FERRY_TABLE]
    rows.insert(
        4, row(S.sail, E.leaked, otherwise, S.sunk, None, "that plank again", "§", sets={"outcome": "lost"})
    )
    return ferry(
        rows=tuple(replace(r, cap=None) if r.cap is LEAKS else r for r in rows),
        computes=(computed(S.bail, (otherwise, E.bailed)),),
    )


def test_a_keyed_cap_counts_each_key_apart():
    """The limit of a keyed cap, here a setting, holds for each key by itself."""
    m = _per_plank()
    snapshot = sailing(m)
    for plank in ("bow", "bow", "stern"):
        snapshot = came_back(m, snapshot, 1, plank).snapshot
    assert snapshot.counts == {"plank:bow": 2, "plank:stern": 1}
    done = came_back(m, snapshot, 1, "bow")
    assert (done.snapshot.state, done.entries[0].entry.guards["room:plank"]) == ("sunk", False)


def test_a_keyed_cap_is_cleared_whole():
    """Its resetting event clears every key."""
    m = _per_plank()
    snapshot = came_back(m, sailing(m), 1, "stern").snapshot
    at_rest = msgspec.structs.replace(snapshot, state="ashore", items={})
    assert advance_run(m, at_rest, person(E.called), StepMeta(60)).snapshot.counts == {}


def test_a_stay_keeps_the_visit_and_a_self_transition_starts_a_new_one():
    """What is running goes on over a stay; leaving into the same state closes it and plans it anew."""
    stay = ferry(rows=(row(S.sail, E.called, otherwise, STAY, None, "wave", "§"), *FERRY_TABLE))
    turn = ferry(rows=(row(S.sail, E.called, otherwise, S.sail, None, "turn", "§"), *FERRY_TABLE))
    kept = advance_run(stay, sailing(stay), person(E.called), StepMeta(30))
    assert (kept.snapshot.visit, kept.entries[0].entry.planned, len(kept.snapshot.items)) == (2, (), 1)
    anew = advance_run(turn, sailing(turn), person(E.called), StepMeta(30))
    assert (anew.snapshot.visit, anew.entries[0].entry.closed) == (3, (f"{FERRY_RUN}:2:1",))
    assert list(anew.snapshot.items) == [f"{FERRY_RUN}:3:1"]


def test_a_step_with_no_fold_changes_nothing_but_what_the_row_sets():
    """Without a fold a context is changed by the row alone, and not at all without `sets`."""
    before = begin_ferry().snapshot
    taken = take_step(FERRY, before, person(E.cast_off))
    assert taken.context is before.context
    assert taken.ops == ()


def test_a_fold_may_not_touch_what_the_check_follows():
    """A fold that changes a constant or a memory field would make the model check untrue: it is stopped."""
    m = ferry(folds=(fold(E.leaked, lambda *_: (("set", "outcome", "landed"),)),))
    with pytest.raises(DefinitionError, match="the fold of leaked changes outcome, which only a row may set"):
        came_back(m, sailing(m), 5)


def test_a_chain_of_computed_steps_has_an_end():
    """Eight computed steps in a row are taken in one commit; the ninth is a loop that somebody has to mend."""
    eight, nine = _bailing(8), _bailing(9)
    assert len(came_back(eight, sailing(eight), 1).entries) == 9
    with pytest.raises(DefinitionError, match="more than 8 computed steps in a row, last in bail"):
        came_back(nine, sailing(nine), 1)


def _bailing(n):
    """A ferry that bails n times in a row before it goes on."""
    cap = Cap("leaks", n)
    rows = tuple(replace(r, to=S.bail, cap=cap) if r.label == "bail" else r for r in FERRY_TABLE)
    return ferry(rows=rows, computes=(computed(S.bail, (room("room", "room", cap), E.bailed)),))


def test_a_computed_event_must_have_a_row():
    """A computation that names an event without a row is our mistake, told with state and event."""
    m = ferry(computes=(computed(S.bail, (otherwise, E.bailed)),))
    snapshot = sailing(m)
    for _ in range(2):
        snapshot = came_back(m, snapshot, 1).snapshot
    with pytest.raises(
        DefinitionError, match="in bail the machine computes bailed, but no row accepts bailed in bail now"
    ):
        came_back(m, snapshot, 1)


def test_a_state_may_have_nothing_to_compute():
    """Where no computation is declared, or none fits, the machine brings about nothing."""
    assert compute_event(FERRY, FerryContext(), {}, "dock") is None
    quiet = ferry(computes=(computed(S.bail, (Guard("no", "never", lambda *_: False), E.bailed)),))
    assert compute_event(quiet, FerryContext(), {}, "bail") is None


def test_a_run_begins_with_what_was_declared():
    """An undeclared setting is refused by name; a context that begins elsewhere is our mistake."""
    with pytest.raises(UserError, match="ferry: boat is one of skiff, barge, not 'raft'"):
        begin_ferry(context=FerryContext(boat="raft"))
    with pytest.raises(DefinitionError, match="a run begins with outcome None, not 'lost'"):
        begin_ferry(context=FerryContext(outcome="lost"))


def test_a_run_needs_a_row_that_creates_it():
    """An event that creates nothing is refused when somebody tries to begin with it."""
    with pytest.raises(DefinitionError, match="no row accepts cast_off in None now"):
        begin_ferry(event=E.cast_off)


def test_a_capped_creation_is_counted_on_tape():
    """A creation counts towards its cap like any other row, and the entry says so."""
    m = ferry(rows=(replace(FERRY_TABLE[0], cap=Cap("births", 1)), *FERRY_TABLE[1:]))
    made = begin_ferry(m)
    assert made.snapshot.counts == {"births": 1}
    assert made.entries[0].entry.counts == (("count", "births", 1),)


# ── work ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Crew(msgspec.Struct, kw_only=True):
    """Who is on board."""

    names: list[str] = msgspec.field(default_factory=lambda: ["ann", "bob"])
    ready: str = "no"


FETCH = effect("fetch", WaterFacts, "boat")
DRILL = effect("drill", WaterFacts, "boat", outlives=True)
ALARM = timer("alarm")
READY = Guard("ready", "everybody is ready", lambda c, _: c.ready == "yes", reads=("ready",))


def _each(c):
    return [(name, {"who": name}) for name in c.names]


class CS(State):
    call = state(
        "Everybody is called.", do(FETCH, each=_each), do(DRILL, when=READY),
        do(ALARM, lambda _: {"after_ms": 500}), initial=True,
    )  # fmt: skip
    off = resting("They are off.")


class CE(Events):
    rung = event("The bell.", Origin.PERSON)
    joined = event("One more.", Origin.PERSON, WaterFacts)
    fetched = event("One is here.", Origin.EFFECT, WaterFacts)
    drilled = event("The drill is over.", Origin.EFFECT, WaterFacts)
    late = event("Time is up.", Origin.TIMER)


CREW = machine(
    "crew", "Everybody on board.", states=CS, events=CE, context=Crew, memory={"ready": ("no", "yes")},
    rows=table(
        row(None, CE.rung, otherwise, CS.call, None, "ring", "§"),
        row(CS.call, CE.joined, otherwise, STAY, None, "join", "§", sets={"ready": "yes"}),
        row(CS.call, CE.fetched, otherwise, STAY, None, "fetch", "§"),
        row(CS.call, CE.drilled, otherwise, STAY, None, "drill", "§"),
        row(CS.call, CE.late, otherwise, CS.off, None, "go", "§"),
    ),
    namings=(naming(FETCH, (otherwise, CE.fetched)), naming(DRILL, (otherwise, CE.drilled)), naming(ALARM, (otherwise, CE.late))),
    folds=(fold(CE.joined, lambda c, e: (("set", "names", [*c.names, e.plank]),)),),
)  # fmt: skip


def called():
    return create_run_entries(CREW, FERRY_RUN, person(CE.rung), Crew(), StepMeta(100)).snapshot


def test_work_is_planned_once_per_key_and_visit():
    """One job per key when a state is entered; after a step, only keys that this visit has not planned."""
    snapshot = called()
    assert snapshot.planned == ("fetch/ann", "fetch/bob", "alarm")
    joined = advance_run(CREW, snapshot, person(CE.joined, WaterFacts(plank="cid")), StepMeta(110))
    assert [i.key for i in joined.entries[0].entry.planned] == ["fetch/cid", "drill"]
    again = advance_run(CREW, joined.snapshot, person(CE.joined, WaterFacts(plank="cid")), StepMeta(120))
    assert again.entries[0].entry.planned == ()


def test_a_job_that_is_over_is_not_planned_again():
    """A key stays planned in its visit also when its job is done."""
    snapshot = called()
    done = advance_run(
        CREW,
        snapshot,
        name_facts(CREW, snapshot, "fetch", WaterFacts()),
        StepMeta(110, closes=(f"{FERRY_RUN}:1:1",)),
    )
    assert f"{FERRY_RUN}:1:1" not in done.snapshot.items
    assert done.entries[0].entry.planned == ()


def test_leaving_closes_what_does_not_outlive():
    """Leaving a state ends what it had asked for, except jobs declared to outlive it."""
    snapshot = advance_run(CREW, called(), person(CE.joined, WaterFacts(plank="cid")), StepMeta(110)).snapshot
    rang = name_facts(CREW, snapshot, "alarm", EmptyEventData())
    done = advance_run(CREW, snapshot, rang, StepMeta(700, closes=(f"{FERRY_RUN}:1:3",)))
    assert [i.job for i in done.snapshot.items.values()] == ["drill"]
    assert done.entries[0].entry.closed == (
        f"{FERRY_RUN}:1:3", f"{FERRY_RUN}:1:1", f"{FERRY_RUN}:1:2", f"{FERRY_RUN}:2:1",
    )  # fmt: skip


def test_a_timer_is_due_when_its_input_says():
    """`after_ms` becomes a moment on tape."""
    assert [i.due for i in called().items.values()] == [None, None, 600]


def test_a_timer_that_fires_names_its_event():
    """The event is taken at the moment on the tape, and a gate planned then counts its deadline from there."""
    tape = SimulatedRun(WATCH, after=500)
    due = tape.item("alarm").due
    assert due == tape.snapshot.at + 500
    tape.let_timer_fire("alarm")
    assert (tape.events[-1], tape.snapshot.state, tape.snapshot.at) == ("rang", "asking", due)
    assert (tape.open_jobs(), tape.item("ask").due) == (["ask"], due + 500)


def test_work_of_a_guard_with_a_cap():
    """Work may depend on whether a cap has room."""

    class OneMore(State):
        call = state("Once more.", do(FETCH, when=room("again", "once more", Cap("bells", 1))), initial=True)

    cap = OneMore.call.work[0].when.cap
    m = machine(
        "bell", "Once.", states=OneMore, events=CE, context=Crew,
        rows=table(row(None, CE.rung, otherwise, OneMore.call, None, "ring", "§"), row(OneMore.call, CE.fetched, otherwise, OneMore.call, cap, "again", "§")),
        namings=(naming(FETCH, (otherwise, CE.fetched)),),
    )  # fmt: skip
    snapshot = create_run_entries(m, FERRY_RUN, person(CE.rung), Crew(), StepMeta(1)).snapshot
    done = advance_run(
        m, snapshot, name_facts(m, snapshot, "fetch", WaterFacts()), StepMeta(2, closes=(f"{FERRY_RUN}:1:1",))
    )
    assert (snapshot.planned, done.snapshot.planned, done.snapshot.items) == (("fetch",), (), {})


# ── overrides ───────────────────────────────────────────────────────────────────────────────────────────────────────


def waivable():
    """A ferry whose ways out of `sail` and `moor` may be waived, where a table may allow it."""
    odd = row(S.sail, E.rowed, DRY, S.dock, None, "back", "§", sets={"outcome": None}, waivable=otherwise)
    rows = [
        replace(r, waivable=otherwise if r.label in ("arrive", "leave", "give up") else None)
        for r in FERRY_TABLE
    ]
    return ferry(
        rows=(odd, *rows, row(S.sail, E.given_up, otherwise, S.sunk, None, "sink", "§", waivable=otherwise))
    )


@for_each_case(
    ("to", "reason", "why"),
    [
        ("dock", "  ", "an override needs a reason"),
        ("harbour", "because", "ferry has no state harbour"),
        ("sunk", "because", "an override into sunk is not possible: it has to be reached"),
        ("ashore", "because", "an override into ashore is not possible: it has to be reached"),
        ("bail", "because", "bail does not follow sail by an edge that may be waived"),
    ],
)
def test_an_override_is_refused(to, reason, why):
    """No override without a reason, into an outcome, past a state, or over an edge that may not be waived."""
    step = override_guard(waivable(), sailing(waivable()), to, reason)
    assert isinstance(step, StepRefused)
    assert step.why == why
    assert "left" in step.legal


def test_an_override_needs_something_to_go_on_with():
    """What has to be there for a guard to be waived is not waived with it."""
    wet = replace(DRY, name="wet", test=lambda *_: False)
    odd = row(S.sail, E.rowed, DRY, S.dock, None, "back", "§", sets={"outcome": None}, waivable=wet)
    m = ferry(rows=(odd, *FERRY_TABLE))
    step = override_guard(m, sailing(m), "dock", "the tide is out")
    assert isinstance(step, StepRefused)
    assert step.why == f"nothing may be waived before {DRY.sentence}"


@pytest.mark.parametrize(
    ("yields", "job", "why"),
    [
        (True, "ask", ""),
        (False, "ask", "ask waits for an answer, and nothing is waived in place of one"),
        (True, "budget", "budget waits for an answer, and nothing is waived in place of one"),
    ],
)
def test_an_override_is_no_answer(yields, job, why):
    """While a gate is open nothing is waived, except where the gate says that it yields; the budget's never does."""
    m = waivable()
    m.jobs["ask"] = replace(m.jobs["ask"], yields=yields)
    before = sailing(m)
    before.items["g"] = JobItem("g", job, "gate", job, {}, before.visit)
    step = override_guard(m, before, "dock", "the tide is out")
    assert (step.why if isinstance(step, StepRefused) else "") == why


def test_an_override_waives_one_guard():
    """It takes one waivable edge to a direct successor, with the reason on tape, and the state's work starts."""
    m = waivable()
    before = sailing(m)
    taken = override_guard(m, before, "dock", "the tide is out")
    assert isinstance(taken, StepTaken)
    assert taken.guards == {"dry": False}
    done = record_override(m, before, taken, StepMeta(30, "person:ann"))
    entry = done.entries[0].entry
    assert (entry.kind, entry.actor, entry.why, entry.to) == (
        "override", "person:ann", "the tide is out", "dock",
    )  # fmt: skip
    assert done.snapshot.items == {}


def test_refusals_say_which_guards_were_asked():
    """A refusal carries every guard that was evaluated."""
    m = ferry(rows=tuple(replace(r, when=DRY) if r.label == "leave" else r for r in FERRY_TABLE))
    step = take_step(m, begin_ferry(m).snapshot, EventOccurrence(E.cast_off, WaterFacts(1), Origin.PERSON))
    assert isinstance(step, StepRefused)
    assert step.guards == {"dry": False}
