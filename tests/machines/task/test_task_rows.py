"""Every row of task's table is taken; whatever has no row is refused, whoever sends it, and told what is legal."""

import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.simulated_task import SimulatedTask, coder_facts, task_at, task_gate_answer, task_payload

from steersman.errors import UserError
from steersman.kernel.definition import STAY, Origin, otherwise
from steersman.kernel.machine import row_source_states
from steersman.kernel.step import EventOccurrence, StepRefused, StepTaken, legal_events, take_step
from steersman.machines.task import MACHINE, table
from steersman.machines.task.context import TaskContext, TaskReceived

STATES = tuple(MACHINE.states.values())
CASES = [(n, source) for n, r in enumerate(MACHINE.rows) for source in row_source_states(r, STATES)]
HOLDS = {  # what has to be so for a guarded row to be the first that fits
    "comes_after": {"after": ["r-first"]},
    "awaits": {"others": "awaited"},
    "touches": {},
    "untouched": {"codegen": "roundtable"},
    "seen_by_person": {"evidence": "accepted"},
    "was_delivered": {"delivered": "yes"},
    "at_work": {"step": "broken"},
    "at_record": {"step": "unwritten"},
    "otherwise": {},
    **{f"chose_{choice}": {} for choice in table.DECISIONS},
}


def _id(case):
    n, source = case
    r = MACHINE.rows[n]
    to = "stay" if r.to is STAY else r.to.name
    return f"{source or 'null'}-{r.on.name}-{r.when.name}-{to}-{'capped' if r.cap else n}"


def _data(r):
    if r.when is table.TOUCHES:
        return coder_facts(infrastructure=1)
    if r.when is table.UNTOUCHED:
        return replace(task_payload(r.on.name), infrastructure=0)
    choice = r.when.name.removeprefix("chose_")
    if r.on is table.E.decision_given:
        return task_gate_answer(choice if choice in table.DECISIONS else "")
    return task_payload(r.on.name)


def _full(n, source):
    """The caps of the rows before, used up."""
    r = MACHINE.rows[n]
    before = [
        b for b in MACHINE.rows[:n] if b.on is r.on and source in row_source_states(b, STATES) and b.cap
    ]
    return {b.cap.name: 3 for b in before}


@for_each_case("case", CASES)
def test_the_row_is_taken(case):
    """With its guard true and those before it false or full, a row is taken, leads where it says and sets what it says."""
    n, source = case
    r = MACHINE.rows[n]
    here = task_at(source or "planning", _full(n, source), **HOLDS[r.when.name])
    step = take_step(
        MACHINE, None if source is None else here, EventOccurrence(r.on, _data(r), r.on.origin), here.context
    )
    assert isinstance(step, StepTaken)
    assert step.row is r
    assert step.to == (source if r.to is STAY else r.to.name)
    assert step.guards.get(r.when.name, r.when is otherwise) is True
    assert {name: getattr(step.context, name) for name in r.sets} == dict(r.sets)
    assert [op for op in step.counts if op[0] == "count"] == ([("count", r.cap.name, 1)] if r.cap else [])


def test_the_rows_are_counted():
    """Each row has a case for each of its source states."""
    assert {n for n, _ in CASES} == set(range(len(MACHINE.rows)))
    assert len({_id(c) for c in CASES}) == len(CASES)
    print(f"{len(MACHINE.rows)} rows, {len(CASES)} cases")


UNLISTED = [(s, e) for s in (None, *MACHINE.states) for e in MACHINE.events if (s, e) not in MACHINE.lookup]
BY_PERSONS = [(s, e) for s, e in UNLISTED if MACHINE.events[e].origin is Origin.PERSON]


@for_each_case(("state", "event"), BY_PERSONS)
def test_what_a_person_may_not_say_there_is_refused(state, event):
    """An event of a person's that has no row is an answer, not an exception, and it says what is legal now."""
    here = task_at(state or "planning", delivered="yes")
    told = _sent(None if state is None else here, event, here.context)
    assert isinstance(told, StepRefused)
    assert told.legal == legal_events(MACHINE, state, context=None if state is None else here.context)
    assert event not in told.legal


@pytest.mark.untraced
def test_whatever_else_has_no_row_is_refused():
    """The same for everything that effects, gates and children bring about, in every state and on every step."""
    tried = 0
    for state, event in UNLISTED:
        for step_ in MACHINE.memory["step"]:
            here = task_at(state or "planning", step=step_)
            assert isinstance(_sent(None if state is None else here, event, here.context), StepRefused)
            tried += 1
    assert tried > 5_000
    print(f"{len(UNLISTED)} pairs of state and event, {tried} refusals")


def _sent(here, event, context):
    happened = EventOccurrence(MACHINE.events[event], task_payload(event), MACHINE.events[event].origin)
    return take_step(MACHINE, here, happened, context)


@for_each_case("event", MACHINE.events)
def test_an_event_of_another_origin_is_refused(event):
    """Nobody makes an event happen that is not theirs to make, in any state: no person sends a `tests_complete`."""
    known = MACHINE.events[event]
    for origin in Origin:
        for state in MACHINE.states if origin is not known.origin else ():
            step = take_step(MACHINE, task_at(state), EventOccurrence(known, task_payload(event), origin))
            assert isinstance(step, StepRefused)
            assert step.why == f"{event} comes from {known.origin.value}, not from {origin.value}"


def test_persons_say_words_and_redo_and_nothing_else():
    """What a person sends without being asked is a task, words or a redo; decisions are answers to a gate."""
    by_person = {e.name for e in MACHINE.events.values() if e.origin is Origin.PERSON}
    assert by_person == {"task_received", "words_given"} | {
        e for e in MACHINE.events if e.startswith("redo_")
    }


# ── caps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    ("state", "event", "to", "waits"),
    [
        ("planning", "round_needed", "planning", "broken"),
        ("planning", "scope_missing", "planning", "stuck"),
        ("plan_review", "review_needs_changes", "planning", "stuck"),
        ("plan_review", "review_blocked", "planning", "stuck"),
        ("codegen", "codegen_empty", "codegen", "stuck"),
        ("codegen", "scope_mismatch", "planning", "stuck"),
        ("codegen", "plan_unclear", "plan_review", "stuck"),
        ("review", "needs_code_changes", "codegen", "stuck"),
        ("review", "plan_flawed", "planning", "stuck"),
        ("test", "test_failures", "codegen", "stuck"),
    ],
)
@for_each_case("most", [1, 3])
def test_what_sends_a_task_back_is_capped(state, event, to, waits, most):
    """So often as the task allows it goes back by itself; then it stays, and waits for a person with another try."""
    for n in range(most + 1):
        here = task_at(state, {"rounds": n, "regressions": n}, max_rounds=most, max_regressions=most)
        told = _sent(here, event, here.context)
        assert (told.to, told.context.step) == ((to, "work") if n < most else (state, waits))
    assert [p.job for p in told.planned] == ["again"]


@pytest.mark.parametrize(
    ("event", "to", "cap"), [("base_moved", "review", "moves"), ("base_conflicts", "codegen", "regressions")]
)
def test_a_branch_that_keeps_moving_leads_back_all_the_same(event, to, cap):
    """Another tree is never decided about: with the cap full the phase that has to look at it waits for a person."""
    for n, step_ in ((2, "work"), (3, "broken")):
        here = task_at("accept", {cap: n}, evidence="accepted")
        told = _sent(here, event, here.context)
        assert (told.to, told.context.step, told.context.workspace) == (to, step_, "moved")


@for_each_case("event", [e.name for e in table.REGRESSIONS.resets])
def test_a_person_gives_new_room(event):
    """Whoever says next, redo, rework, retry or decides lets the task go back by itself again."""
    source = next(s for (s, e) in MACHINE.lookup if e == event and s is not None)
    here = task_at(source, {"regressions": 3}, delivered="yes")
    told = _sent(here, event, here.context)
    assert told.tally.get("regressions", 0) == 0


# ── beginnings ──────────────────────────────────────────────────────────────────────────────────────────────────────

ASKED = {"task_ref": "p-task", "base_commit": "c0", "base_tree": "t0", "person": "ann"}


def test_a_task_begins_with_a_plan():
    """What begins a task is fixed for good; it knows nothing else yet."""
    event, told, made = MACHINE.begin(
        {**ASKED, "pace": "step", "planners": ["lead", "second"], "what": "else"}
    )
    assert (event, told) == (table.E.task_received, TaskReceived("p-task", "ann"))
    assert (made.pace, made.panel, made.planners) == ("step", "several", ["lead", "second"])
    assert replace(made, pace="through", panel="alone", planners=["planner"]) == TaskContext(
        task_ref="p-task", base_commit="c0", base_tree="t0"
    )
    assert MACHINE.begin(ASKED)[2].panel == "alone"
    assert SimulatedTask().position == ("planning", "work")


@for_each_case(
    ("wrong", "why"),
    [
        ({"task_ref": 7}, "Expected `str`"),
        ({"pace": "hurry"}, "Invalid enum value 'hurry'"),
        ({"codegen": "monkey"}, "Invalid enum value 'monkey'"),
        ({"deliver": "by post"}, "Invalid enum value 'by post'"),
        ({"planners": "planner"}, "Expected `array`"),
        ({"planners": []}, "it needs a planner and reviewers"),
        ({"plan_reviewers": []}, "it needs a planner and reviewers"),
        ({"code_reviewers": []}, "it needs a planner and reviewers"),
        ({"planners": ["a", "b", "a"]}, "a, b, a names somebody twice"),
        ({"plan_reviewers": ["a", "a"]}, "a, a names somebody twice"),
        ({"code_reviewers": ["a", "a"]}, "a, a names somebody twice"),
        ({"max_rounds": 0}, "Expected `int` >= 1"),
        ({"max_rounds": 21}, "Expected `int` <= 20"),
        ({"max_regressions": True}, "Expected `int`"),
        ({"max_regressions": "3"}, "Expected `int`"),
    ],
)
def test_a_task_that_cannot_begin_says_why(wrong, why):
    """A request that does not fit begins nothing."""
    with pytest.raises(UserError, match="task cannot begin like this") as told:
        MACHINE.begin({**ASKED, **wrong})
    assert why in str(told.value)


def test_a_task_without_a_task_does_not_begin():
    """Without the text of the task there is nothing to plan."""
    with pytest.raises(UserError, match="task_ref"):
        MACHINE.begin({"base_commit": "c0"})
