"""The model check: each kind of mistake is found, with the shortest way to it."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.ferry_machine import (
    BARGE,
    DRY,
    FERRY,
    FERRY_TABLE,
    LANDED,
    LEAKS,
    E,
    S,
    WaterFacts,
    ferry,
)  # fmt: skip

from steersman.errors import DefinitionError
from steersman.kernel.build import machine
from steersman.kernel.check import ModelFinding, check_machine
from steersman.kernel.definition import (
    STAY,
    Cap,
    Events,
    Guard,
    Origin,
    State,
    child,
    computed,
    do,
    effect,
    event,
    naming,
    otherwise,
    resting,
    row,
    state,
    table,
    timer,
)
from steersman.kernel.laws import Before, Never, Only, Possible

HERE = "extension: test"


def kinds(m):
    return sorted({f.kind for f in check_machine(m).findings})


def one(m, kind):
    found = [f for f in check_machine(m).findings if f.kind == kind]
    assert found, kinds(m)
    return found[0]


def more(*rows, **changes):
    return ferry(rows=(*FERRY_TABLE, *rows), **changes)


def without(label, **changes):
    return ferry(rows=tuple(r for r in FERRY_TABLE if r.label != label), **changes)


def wrong(label):
    """What is said about a ferry without one of its rows, when it is built or when it is checked."""
    try:
        return check_machine(without(label)).findings
    except DefinitionError as told:
        return str(told)


def test_the_ferry_is_sound():
    """A sound machine has no finding, and the report says how much was looked at."""
    report = check_machine(FERRY)
    assert (report.machine, report.findings) == ("ferry", ())
    assert report.cases > report.nodes > 10


def test_any_missing_row_is_found():
    """Whichever row is removed from the ferry, something is found."""
    found = [r.label for r in FERRY_TABLE if wrong(r.label)]
    print(f"{len(found)} of {len(FERRY_TABLE)} removed rows found")
    assert found == [r.label for r in FERRY_TABLE]


def test_a_named_event_without_a_row_has_its_path():
    """Facts that can be named where no row is are found, once per state and event, with the shortest path."""
    finding = one(without("leak"), "named event without a row")
    assert finding.where == "leaked in sail"
    assert finding.path == ("boarded → dock", "cast_off → sail")
    assert (
        str(finding)
        == "named event without a row: leaked in sail\n    shortest path: boarded → dock  ·  cast_off → sail"
    )
    assert str(ModelFinding("event without a row", "x")) == "event without a row: x"


def test_a_beginning_without_a_row_is_found():
    """A setting with which a run could not begin is found: one would only see it when somebody chooses it."""
    rows = (row(None, E.boarded, BARGE, S.dock, None, "board a barge", HERE), *FERRY_TABLE[1:])
    assert one(ferry(rows=rows), "beginning without a row").where == "boarded with boat='skiff'"
    plain = (row(None, E.boarded, DRY, S.dock, None, "board dry", HERE), *FERRY_TABLE[1:])
    assert one(ferry(rows=plain, constants={}), "beginning without a row").where == "boarded"


def test_an_exit_from_a_final_state_is_found():
    """Nothing leaves a final state; a row that would is found with the way there."""
    finding = one(
        more(row(S.sunk, E.called, otherwise, S.dock, None, "raise it", HERE)), "exit from a final state"
    )
    assert finding.where == "sunk on called ('raise it')"
    assert finding.path == ("boarded → dock", "left → sunk")


def test_an_exit_from_a_resting_state_needs_a_person():
    """A run that has its outcome is reopened by somebody or not at all."""
    finding = one(
        more(row(S.ashore, E.bailed, otherwise, S.dock, None, "drift", HERE)),
        "exit from a resting state without a person's request",
    )
    assert finding.where == "ashore on bailed ('drift')"
    assert finding.path[-1] == "landed → ashore"


def test_a_note_in_a_final_state_is_no_exit():
    """A row that stays in a final state leaves nothing."""
    assert (
        check_machine(more(row(S.sunk, E.called, otherwise, STAY, None, "call in vain", HERE))).findings == ()
    )


def test_guards_without_otherwise_are_found():
    """Guarded rows must say what happens when no guard holds, unless a person's event is guarded exactly."""
    guarded = ferry(rows=tuple(replace(r, when=DRY) if r.label == "arrive" else r for r in FERRY_TABLE))
    finding = one(guarded, "guarded rows without otherwise")
    assert "sail on rowed: nothing says what happens when 'no water came in' is false" in finding.where
    assert finding.path == ("boarded → dock", "cast_off → sail")
    exact = ferry(rows=tuple(replace(r, when=LANDED) if r.label == "call" else r for r in FERRY_TABLE))
    assert check_machine(exact).findings == ()


def test_an_event_that_no_row_uses_is_found():
    """An event that stands in no row is told, even when a naming can name it."""
    assert one(without("turn"), "event without a row").where == "turned"


def test_a_state_that_cannot_be_aborted_is_found():
    """With an abort declared, every state that works must have its row; without one, nothing is asked."""
    finding = one(without("leave it"), "state that cannot be aborted")
    assert (finding.where, finding.path) == ("dock", ("boarded → dock",))
    unabortable = ferry(rows=tuple(r for r in FERRY_TABLE if r.label != "leave it"), abort=None)
    assert kinds(unabortable) == ["event without a row"]


def test_an_unreachable_state_is_found():
    """A state to which no path leads is found."""
    assert one(without("arrive"), "unreachable state").where == "moor"


def test_an_unreached_memory_value_is_found():
    """A declared value that no path sets is found."""
    spare = ferry(memory={"outcome": (None, "landed", "lost", "stolen")})
    assert one(spare, "memory value that is never reached").where == "outcome = 'stolen'"


def test_a_hidden_row_is_found():
    """A row behind a catch-all is never taken; the finding shows the way to where it would stand."""
    finding = one(
        more(row(S.dock, E.cast_off, BARGE, S.moor, None, "a barge is there already", HERE)),
        "row that is never taken",
    )
    assert finding.where == "dock on cast_off when 'the boat is a barge' ('a barge is there already')"
    assert finding.path == ("boarded → dock",)


def test_a_dead_end_is_found():
    """A state from which nothing but an abort leads to an outcome is found, with the path into it."""
    finding = one(without("leave"), "dead end")
    assert (finding.where, finding.path) == (
        "dock: nothing but an abort leads to an outcome",
        ("boarded → dock",),
    )


def test_a_trap_is_a_dead_end():
    """Going round with a person for ever, without a way to an outcome, is a dead end too."""
    rows = tuple(replace(r, to=S.sail) if r.label in ("land", "give up") else r for r in FERRY_TABLE)
    trapped = ferry(rows=rows, computes=(computed(S.bail, (otherwise, E.given_up)),), laws=())
    finding = one(trapped, "dead end")
    assert finding.path == ("boarded → dock",)


def test_a_loop_without_a_cap_is_found():
    """A loop that neither a cap nor a person ends is found with the nearest way into it; a capped one is not."""
    uncapped = tuple(replace(r, cap=None) if r.label == "bail" else r for r in FERRY_TABLE)
    finding = one(
        ferry(rows=uncapped, computes=(computed(S.bail, (otherwise, E.bailed)),)),
        "loop bounded by neither a cap nor a person",
    )
    assert finding.where == "sail → bail → sail"
    assert finding.path == ("boarded → dock", "cast_off → sail")


def test_a_loop_beside_the_way_is_found():
    """The nearest node from which a walk goes on for ever need not lie on the loop."""
    again = row(S.bail, E.given_up, otherwise, S.bail, None, "despair", HERE)
    rows = (again, *(r for r in FERRY_TABLE if r.label != "give up"))
    loops = [f for f in check_machine(ferry(rows=rows, laws=())).findings if f.kind.startswith("loop")]
    assert [f.where for f in loops] == ["bail → bail"]
    assert loops[0].path[-1] == "leaked → bail"


def test_each_kind_of_law_can_be_broken():
    """Never, Before, Only and Possible are each found broken, with the path where there is one."""
    never = one(ferry(laws=(Never(S.moor, when=BARGE),)), "broken law")
    assert never.where == "never moor while the boat is a barge"
    assert never.path == ("boarded → dock", "cast_off → sail", "rowed → moor")
    before = one(ferry(laws=(Before(S.bail, then=S.ashore, when=LANDED),)), "broken law")
    assert before.where == "bail before ashore while the trip came to its end"
    assert before.path[-1] == "landed → ashore"
    only = one(ferry(laws=(Only("outcome", "lost", by=(E.given_up,)),)), "broken law")
    assert only.where == "outcome becomes lost only by given_up; but 'leave it' does it by left"
    possible = one(ferry(laws=(Possible(S.dock, when=LANDED),)), "broken law")
    assert (possible.where, possible.path) == ("dock can be entered while the trip came to its end", ())


def test_a_law_may_ask_about_a_cap():
    """A law over a cap speaks of the moments when it has room: a ferry is given up when it may not be bailed any more."""
    lost = Guard(
        "lost", "lost though one may bail once more", lambda c, _: c.outcome == "lost", reads=("outcome",),
        cap=LEAKS,
    )  # fmt: skip
    by_water = (Never(S.sunk, when=lost),)
    only_leaks = tuple(r for r in FERRY_TABLE if r.on is not E.left)
    assert "broken law" not in kinds(ferry(rows=only_leaks, laws=by_water))
    found = one(ferry(laws=by_water), "broken law")
    assert (found.where, found.path[-1]) == (
        "never sunk while lost though one may bail once more",
        "left → sunk",
    )


def test_a_law_about_the_beginning_holds_by_itself():
    """Nothing gets anywhere without having been where every run begins."""
    assert check_machine(ferry(laws=(Before(S.dock, then=S.sunk),))).findings == ()


def test_a_run_may_begin_elsewhere():
    """A creation that leads past the initial state is a beginning as well, for laws too."""
    afloat = row(None, E.cast_off, otherwise, S.sail, None, "begin afloat", HERE)
    assert one(more(afloat), "broken law").where == "dock before sail"


def test_laws_read_what_is_tracked():
    """A law whose guard looks at facts cannot be proved, and says so."""
    with pytest.raises(DefinitionError, match="guard 'dry' says it reads only nothing"):
        check_machine(ferry(laws=(Never(S.sail, when=DRY),)))


# ── work: many jobs, jobs that outlive their state, timers, children ────────────────────────────────────────────────


class Fleet(msgspec.Struct, kw_only=True):
    """What a regatta knows."""

    arrived: int = 0


SAIL = effect("sail", WaterFacts, "oars", outlives=True)
CLOCK = timer("clock")
ESCORT = child("escort")
ENOUGH = Guard("enough", "three suffice", lambda c, _: c.arrived >= 2)


class RS(State):
    race = state(
        "Boats are out.", do(SAIL, each=lambda _: [(str(n), {}) for n in range(5)]), do(CLOCK), initial=True
    )
    feast = state("Three are in.", do(ESCORT))
    home = resting("Everybody is home.")


class RE(Events):
    started = event("The gun.", Origin.PERSON)
    arrived = event("One more is in.", Origin.EFFECT, WaterFacts)
    decided = event("That was the third.", Origin.EFFECT, WaterFacts)
    rang = event("Time is up.", Origin.TIMER)
    escorted = event("The escort is back.", Origin.CHILD)


RTABLE = table(
    row(None, RE.started, otherwise, RS.race, None, "start", "§"),
    row(RS.race, RE.arrived, otherwise, STAY, None, "count", "§"),
    row(RS.race, RE.decided, otherwise, RS.feast, None, "decide", "§"),
    row(RS.race, RE.rang, otherwise, RS.feast, None, "stop", "§"),
    row(RS.feast, RE.escorted, otherwise, RS.home, None, "go home", "§"),
)
RNAMES = (
    naming(SAIL, (ENOUGH, RE.decided), (otherwise, RE.arrived)),
    naming(CLOCK, (otherwise, RE.rang)),
    naming(ESCORT, (otherwise, RE.escorted)),
)


def regatta(**changes):
    parts = {"states": RS, "events": RE, "rows": RTABLE, "context": Fleet, "namings": RNAMES}
    return machine("regatta", "Who is first.", **{**parts, **changes})


def test_many_jobs_that_outlive_their_state_are_followed():
    """Five boats are out, three suffice, and the late ones are journaled where no row asks for them."""
    assert check_machine(regatta()).findings == ()


def test_a_result_that_may_come_early_needs_a_row():
    """Within the visit that has asked for it, every result needs a row, also while others are still out."""
    rows = tuple(r for r in RTABLE if r.label != "count")
    finding = one(regatta(rows=rows), "named event without a row")
    assert (finding.where, finding.path) == ("arrived in race", ("started → race",))


def test_parts_are_finite_only_as_long_as_their_visit():
    """A state that leaves itself with every part is a loop: each visit asks for five more."""
    rows = tuple(replace(r, to=RS.race) if r.label == "count" else r for r in RTABLE)
    assert one(regatta(rows=rows), "loop bounded by neither a cap nor a person").where == "race → race"


def test_a_late_result_with_a_row_takes_it():
    """Where a row asks for the result of a job that outlived its state, the row is taken."""
    late = row(RS.feast, RE.arrived, otherwise, STAY, None, "cheer", "§")
    later = row(RS.feast, RE.decided, otherwise, STAY, None, "cheer", "§")
    report = check_machine(
        regatta(rows=(*RTABLE, late, later, replace(late, source=RS.home), replace(later, source=RS.home)))
    )
    assert report.findings == ()


def test_a_capped_group_that_ends_is_found():
    """When the last row of a group has a full cap nothing is left, and the check reaches that."""
    capped = tuple(replace(r, cap=Cap("one", 1)) if r.label == "count" else r for r in RTABLE)
    assert one(regatta(rows=capped), "named event without a row").where == "arrived in race"


def test_a_setting_is_explored_with_its_trial():
    """A cap whose limit is a setting is followed with its trial limit, and still ends the loop."""
    by_setting = Cap("leaks", "planks", resets=(E.called,), trial=1)
    rows = tuple(replace(r, cap=by_setting) if r.cap is LEAKS else r for r in FERRY_TABLE)
    asks = Guard("room", "one may bail once more", lambda *_: True, cap=by_setting)
    sound = ferry(rows=rows, computes=(computed(S.bail, (asks, E.bailed), (otherwise, E.given_up)),))
    assert check_machine(sound).findings == ()
    assert check_machine(sound).nodes < check_machine(FERRY).nodes
