"""Every row of roundtable's table is taken; whatever has no row is refused, and told what is legal."""

from tests.support.cases import for_each_case
from tests.support.simulated_roundtable import (
    gate_answer,
    infrastructure_change_facts,
    roundtable_at,
    roundtable_payload,
)

from steersman.kernel.definition import STAY, Origin, otherwise
from steersman.kernel.machine import row_source_states
from steersman.kernel.step import EventOccurrence, StepRefused, StepTaken, legal_events, take_step
from steersman.machines.roundtable import MACHINE

STATES = tuple(MACHINE.states.values())
CASES = [(r, source) for r in MACHINE.rows for source in row_source_states(r, STATES)]
# What has to be so for a guarded row to be the first that fits.
HOLDS = {
    "proposal_mode": {"mode": "proposal"},
    "confirms": {"outcome": "await_operator_confirm", "contract_digest": "d"},
    "awaits": {"outcome": "await_operator_confirm"}, "touches": {},
    "delivery_failed": {"outcome": "approved", "handover": "failed"},
    "delivered": {"outcome": "approved", "handover": "done"}, "otherwise": {},
}  # fmt: skip


def _id(case):
    r, source = case
    to = "stay" if r.to is STAY else r.to.name
    beyond = "-beyond the cap" if _is_beyond_cap(r) else ""
    return f"{source or 'null'}-{r.on.name}-{r.when.name}-{to}{beyond}"


def _is_beyond_cap(r):
    """A row without a cap after one of the same event with a cap."""
    return r.on.name == "base_moved" and r.cap is None


def _data(r):
    match r.when.name:
        case "confirms":
            return gate_answer("approve", "d")
        case "touches":
            return infrastructure_change_facts("t1")
        case _:
            return roundtable_payload(r.on.name)


@for_each_case("case", CASES)
def test_the_row_is_taken(case):
    """With its guard true and the ones before it false, a row is taken, leads where it says and sets what it says."""
    r, source = case
    here = roundtable_at(source or "intake", **HOLDS[r.when.name])
    if _is_beyond_cap(r):
        here.counts = {"moves": here.context.max_moves}
    happened = EventOccurrence(r.on, _data(r), r.on.origin)
    taken = take_step(MACHINE, None if source is None else here, happened, here.context)
    assert isinstance(taken, StepTaken)
    assert taken.row is r
    assert taken.to == (source if r.to is STAY else r.to.name)
    assert taken.guards.get(r.when.name, r.when is otherwise) is True
    assert {name: getattr(taken.context, name) for name in r.sets} == dict(r.sets)
    assert bool([op for op in taken.counts if op[0] == "count"]) == (r.cap is not None)


def test_the_rows_are_counted():
    """Each row of the table has a case for each of its source states."""
    assert {id(r) for r, _ in CASES} == {id(r) for r in MACHINE.rows}
    assert len({_id(c) for c in CASES}) == len(CASES)
    print(f"{len(MACHINE.rows)} rows, {len(CASES)} cases")


UNLISTED = [
    (state, event)
    for state in (None, *MACHINE.states)
    for event in MACHINE.events
    if (state, event) not in MACHINE.lookup
]


@for_each_case(("state", "event"), UNLISTED)
def test_what_has_no_row_is_refused(state, event):
    """An event without a row is an answer, not an exception, and it says what is legal now."""
    here = roundtable_at(state or "intake", outcome="await_operator_confirm")
    happened = EventOccurrence(MACHINE.events[event], roundtable_payload(event), MACHINE.events[event].origin)
    step = take_step(MACHINE, None if state is None else here, happened, here.context)
    assert isinstance(step, StepRefused)
    assert step.event == event
    assert step.legal == legal_events(MACHINE, state, context=None if state is None else here.context)
    assert event not in step.legal


OTHERS = [(e, o) for e in MACHINE.events.values() for o in Origin if o is not e.origin]


@for_each_case(("event", "origin"), OTHERS)
def test_an_event_of_another_origin_is_refused(event, origin):
    """Nobody makes an event happen that is not theirs to make, in any state: no person sends a `tests_passed`."""
    for state in MACHINE.states:
        step = take_step(
            MACHINE, roundtable_at(state), EventOccurrence(event, roundtable_payload(event.name), origin)
        )
        assert isinstance(step, StepRefused)
        assert step.why == f"{event.name} comes from {event.origin.value}, not from {origin.value}"


def test_a_full_cap_hides_its_row():
    """With no iteration left `start_coder` has no row, and the refusal says which cap was full."""
    here = roundtable_at("iterate", max_iterations=2)
    here.counts = {"iterations": 2}
    start = MACHINE.events["start_coder"]
    step = take_step(MACHINE, here, EventOccurrence(start, start.carries(), Origin.MACHINE))
    assert isinstance(step, StepRefused)
    assert step.guards == {"room:iterations": False}


def test_an_abort_of_a_finished_run_is_refused():
    """What has its outcome cannot be aborted, unless it is a proposal that waits."""
    abort = EventOccurrence(MACHINE.events["aborted_by_operator"], gate_answer("abort"), Origin.PERSON)
    assert isinstance(take_step(MACHINE, roundtable_at("finalize", outcome="approved"), abort), StepRefused)
    assert isinstance(
        take_step(MACHINE, roundtable_at("finalize", outcome="await_operator_confirm"), abort), StepTaken
    )


@for_each_case(
    ("outcome", "handover", "expected"),
    [
        ("approved", "failed", StepTaken),
        ("approved", "done", StepRefused),
        ("approved", "declined", StepRefused),
        ("approved", "none", StepRefused),
        ("approved", "granted", StepRefused),
        ("canceled", "failed", StepRefused),
    ],
)
def test_only_a_failed_delivery_is_repeated(outcome, handover, expected):
    """What is delivered, declined or still under way is not delivered again, nor what nobody approved."""
    asked = EventOccurrence(
        MACHINE.events["delivery_requested"], roundtable_payload("delivery_requested"), Origin.PERSON
    )
    assert isinstance(
        take_step(MACHINE, roundtable_at("finalize", outcome=outcome, handover=handover), asked), expected
    )


@for_each_case(
    ("outcome", "handover", "expected"),
    [
        ("approved", "done", StepTaken),
        ("approved", "reverted", StepRefused),
        ("approved", "recalled", StepRefused),
        ("approved", "failed", StepRefused),
        ("approved", "declined", StepRefused),
        ("approved", "none", StepRefused),
        ("canceled", "done", StepRefused),
    ],
)
def test_only_what_was_delivered_is_taken_back(outcome, handover, expected):
    """A change that was handed over is taken back once; nothing else is."""
    asked = EventOccurrence(
        MACHINE.events["revert_requested"], roundtable_payload("revert_requested"), Origin.PERSON
    )
    assert isinstance(
        take_step(MACHINE, roundtable_at("finalize", outcome=outcome, handover=handover), asked), expected
    )
