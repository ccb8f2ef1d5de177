"""Task against its specification: the diagram, the rules of its sections 3 to 8, and what the check would find."""

import hashlib
import json
from itertools import product

import pytest
from msgspec.structs import replace
from tests.specifications import task as spec
from tests.specifications.documents import name_wording
from tests.specifications.task_guards import TASK_GUARDS, TASK_RETURNS
from tests.support.cases import for_each_case
from tests.support.simulated_task import SimulatedTask, task_at, task_payload
from tests.support.task_table_errors import (
    TASK_STATES,
    find_edge_rows,
    find_missing_edges,
    find_table_errors,
    find_unexplained_rows,
    is_row_loss_unnoticed,
    rebuild_task,
    row_target,
)

from steersman.kernel.check import check_machine
from steersman.kernel.definition import Origin
from steersman.kernel.machine import row_source_states
from steersman.kernel.step import EventOccurrence, StepRefused, StepTaken, override_guard, take_step
from steersman.machines.task import MACHINE, phases, table
from steersman.views.machine_json import machine_json

DIGEST = (
    "3ea3f59abf299dc3a4ccdef1eed1ea361dac615c2130913260dce66748086c12"  # of what is written down beside §3
)
S, E = table.S, table.E
CODER = {
    "codegen": ("coder",)
}  # a constant never changes: a law that is broken here is broken in the whole machine


# ── the diagram ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_phases_are_the_specifications_eight():
    """§1: eight, in their order; a task begins with planning, and `done` is where it has its outcome."""
    assert tuple(MACHINE.states) == spec.STATES
    assert MACHINE.initial.name == "planning"
    assert tuple(sorted(MACHINE.settled)) == spec.TERMINAL


@for_each_case("edge", spec.DIAGRAM)
def test_every_edge_of_the_diagram_is_executed_and_published(edge):
    """§2: a row has its source, its target and its own words, and `machine show` says the same."""
    source, label, to = edge
    assert find_edge_rows(edge)
    lines = [r for r in machine_json(MACHINE)["rows"] if (r["from"], r["to"]) == (source, to)]
    assert [r for r in lines if not label or name_wording(r["label"], spec.WORDINGS) == label]


def test_every_other_row_says_where_it_comes_from():
    """A row that the diagram does not draw names a section that asks for it, or calls itself an extension."""
    assert find_unexplained_rows(MACHINE.rows) == []
    assert all(r.label and r.origin for r in MACHINE.rows)


@for_each_case("edge", spec.DIAGRAM)
def test_a_table_that_draws_something_else_is_noticed(edge):
    """Without the rows of an edge, with another target or another label for them, the diagram is not the table's."""
    rows = find_edge_rows(edge)
    gone = tuple(r for r in MACHINE.rows if r not in rows)
    assert edge in find_missing_edges(gone)
    elsewhere = S.review if edge[2] != "review" else S.planning
    assert edge in find_missing_edges(
        tuple(replace(r, to=elsewhere) if r in rows else r for r in MACHINE.rows)
    )
    if edge[1]:
        assert edge in find_missing_edges(
            tuple(replace(r, label="go on") if r in rows else r for r in MACHINE.rows)
        )


@for_each_case("origin", ["", "because", "extension:", "§9 of something"])
def test_a_row_without_a_source_is_noticed(origin):
    """A row beyond the diagram with no source, or with one that is none, is found."""
    n = next(n for n, r in enumerate(MACHINE.rows) if r.on is E.phase_ready)
    changed = replace(MACHINE.rows[n], origin=origin)
    assert find_unexplained_rows((*MACHINE.rows, changed)) == [changed.label]


# ── section 3 and 6: what a transition needs ────────────────────────────────────────────────────────────────────────


def naming_of(event):
    """Where an event is named: the job, the guard, and the guards that were asked before."""
    return [
        (n.subject.name, pairs[i][0].name, {g.name for g, _ in pairs[:i]})
        for n in MACHINE.namings.values()
        for pairs in [n.pairs]
        for i in range(len(pairs))
        if pairs[i][1].name == event
    ]


def test_every_transition_of_the_specification_has_its_event_written_down():
    """§3: the twelve transitions with their phases, all of them and no others, and none of our names is left out."""
    written_down = {
        (rule.split()[0], source, to)
        for rule, (source, to, *_) in (*TASK_GUARDS.items(), *TASK_RETURNS.items())
    }
    assert written_down == {(n, source, to) for n, source, targets in spec.TRANSITIONS for to in targets}
    assert hashlib.sha256(json.dumps((TASK_GUARDS, TASK_RETURNS)).encode()).hexdigest() == DIGEST


@for_each_case("rule", TASK_GUARDS)
def test_what_a_transition_requires_is_asked(rule):
    """§3: only the named guard names the event, after every guard that forbids it was asked; it leads to its phase alone."""
    source, to, event, says_yes, says_no = TASK_GUARDS[rule]
    asked = naming_of(event)
    assert {guard for _, guard, _ in asked} == set(says_yes)
    assert all(set(says_no) <= before for _, _, before in asked)
    assert [
        (s, row_target(r, s))
        for r in MACHINE.rows
        if r.on.name == event
        for s in row_source_states(r, TASK_STATES)
    ] == [(source, to)]


@for_each_case("rule", TASK_RETURNS)
def test_what_triggers_a_transition_leads_there(rule):
    """§3, §6: the signal leads from its phase to the one the rule names; what is capped waits where it is."""
    source, to, event = TASK_RETURNS[rule]
    targets = {
        row_target(r, s)
        for r in MACHINE.rows
        if r.on.name == event
        for s in row_source_states(r, TASK_STATES)
    }
    assert to in targets
    assert targets <= {to, source}
    assert {s for r in MACHINE.rows if r.on.name == event for s in row_source_states(r, TASK_STATES)} == {
        source
    }


def test_only_a_recorded_decision_is_delivered():
    """§3.10: what leads to `deliver` is the decision as it was read from the disk, and it says accepted."""
    (row,) = [r for r in MACHINE.rows if r.sets.get("step") == "deliver"]
    assert row.on is E.decision_recorded
    assert naming_of("decision_recorded") == [("inspect_decision", "decided_accepted", {"damage_found"})]


# ── section 5: invariants ───────────────────────────────────────────────────────────────────────────────────────────


def test_whatever_leads_to_another_phase_has_looked_at_the_disk():
    """§5.2: a phase is left by a look at the files, by a person, or in accept by what a look has led to."""
    leaving = {
        (s, r.on.name) for r in MACHINE.rows for s in row_source_states(r, TASK_STATES) if s and row_target(r, s) != s
    }  # fmt: skip
    looks = {e.name for n in MACHINE.namings.values() if n.subject.does == "task_inspect" for _, e in n.pairs}
    persons = {e.name for e in MACHINE.events.values() if e.origin is Origin.PERSON}
    assert {(s, e) for s, e in leaving if e not in looks | persons} == {
        ("accept", "accepted"),
        ("accept", "base_moved"),
        ("accept", "base_conflicts"),
        ("test", "evidence_declined"),
    }


def test_every_phase_looks_at_the_disk():
    """§5.2: each phase has an inspection of its own, and nothing else looks for it."""
    for phase in phases.PHASES:
        looks = [d.job.name for d in phase.work if d.job.does == "task_inspect"]
        assert len(looks) == 1, phase.name


def test_nothing_but_a_redo_leaves_done():
    """§5.4: `done` does not advance; every event that is no explicit redo is refused there."""
    for name, event in MACHINE.events.items():
        if not name.startswith("redo_"):
            step = take_step(
                MACHINE, task_at("done"), EventOccurrence(event, task_payload(name), event.origin)
            )
            assert isinstance(step, StepRefused), name


@pytest.mark.parametrize(
    ("event", "to", "known"),
    [
        ("redo_planning", "planning", {}),
        ("redo_codegen", "codegen", {}),
        ("redo_accept", "accept", {"delivered": "yes"}),
    ],
)
def test_a_redo_reopens(event, to, known):
    """§5.4: a new redo reopens a task, and it has no outcome any more."""
    step = take_step(
        MACHINE,
        task_at("done", outcome="accepted", **known),
        EventOccurrence(E.__dict__[event], task_payload(event), Origin.PERSON),
    )
    assert isinstance(step, StepTaken)
    assert (step.to, step.context.outcome, step.context.decision) == (to, None, "none")


def test_the_decision_about_nothing_delivered_is_not_reopened():
    """What was taken back, or never delivered, has no decision to reopen."""
    for delivered in ("no", "reverted"):
        step = take_step(
            MACHINE,
            task_at("done", delivered=delivered),
            EventOccurrence(E.redo_accept, task_payload("redo_accept"), Origin.PERSON),
        )
        assert isinstance(step, StepRefused)


@for_each_case("phase", ["planning", "plan_review", "codegen", "review", "test"])
def test_a_phase_can_be_run_again(phase):
    """§5.3, §8: a redo of the phase at hand begins it anew, as often as one likes, and ends in the same place."""
    task = SimulatedTask(pace="step").advance_to(phase, "ready")
    seen = dict(task.context.artifacts)
    for _ in range(3):
        task.tell(f"redo_{phase}")
        assert task.position == (phase, "work")
        task.advance_to(phase, "ready")
    assert task.context.artifacts == seen


# ── section 7: overrides ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_edges_that_may_be_waived_are_the_forward_ones():
    """§7: what may be overridden is a direct edge forward, and each needs something to go on with."""
    waivable = {(r.source.name, r.to.name): r.waivable.name for r in MACHINE.rows if r.waivable is not None}
    assert tuple(waivable) == spec.FORWARD
    assert set(waivable.values()) == {"has_plan", "has_scope", "has_change", "has_seen"}


def test_an_override_needs_a_reason_and_an_edge():
    """§7: a reason, a direct successor, and the artifacts to go on with; never into what has to be reached."""
    bare = {"artifacts": {}, "documents": {}, "tree": "t0"}
    targets, reasons = [*spec.STATES, "nowhere"], ["", " \t", "I accept the risk"]
    for source, to, reason, files in product(spec.STATES, targets, reasons, [{}, bare]):
        step = override_guard(MACHINE, task_at(source, step="ready", **files), to, reason)
        allowed = (source, to) in spec.FORWARD and bool(reason.strip()) and not files
        assert isinstance(step, StepTaken) == allowed, (source, to, reason, files)
        if isinstance(step, StepTaken):
            assert (step.to, step.waived) == (to, reason)
            assert step.planned
        else:
            assert step.why


@for_each_case(
    ("missing", "source", "to"),
    [
        ("planning/planning.ai.json", "planning", "plan_review"),
        ("plan.files.json", "plan_review", "codegen"),
        ("code/files.json", "codegen", "review"),
        ("code/files.json", "review", "test"),
        ("code/files.json", "test", "accept"),
    ],
)
def test_nothing_is_waived_where_there_is_nothing_to_go_on_with(missing, source, to):
    """§7: a phase whose input does not exist is not reachable, whatever the reason."""
    here = task_at(source, step="stuck")
    there = {name: digest for name, digest in here.context.artifacts.items() if name != missing}
    step = override_guard(MACHINE, task_at(source, step="stuck", artifacts=there), to, "because")
    assert isinstance(step, StepRefused)
    assert step.why.startswith("nothing may be waived before the phase stands still")
    assert isinstance(override_guard(MACHINE, here, to, "because"), StepTaken)


@pytest.mark.parametrize("tree", ["", "t0"])
def test_no_change_is_no_change_to_go_on_with(tree):
    """A tree that is the base tree, or none, is nothing that could be reviewed, tested or accepted."""
    assert isinstance(
        override_guard(MACHINE, task_at("codegen", step="stuck", tree=tree), "review", "because"), StepRefused
    )


def test_what_a_change_does_to_the_tests_is_accepted_not_waived():
    """A failure may be waived; that tests were changed is a question of its own, which somebody has answered first."""
    for evidence, fits in (("touched", StepRefused), ("plain", StepTaken), ("accepted", StepTaken)):
        step = override_guard(MACHINE, task_at("test", step="stuck", evidence=evidence), "accept", "because")
        assert isinstance(step, fits)


def test_nothing_is_waived_while_somebody_works():
    """§7: only a phase that stands still can be left by an override: what it waits for then is a person."""
    for (source, to), step_ in product(spec.FORWARD, MACHINE.memory["step"]):
        step = override_guard(MACHINE, task_at(source, step=step_), to, "because")
        assert isinstance(step, StepTaken) == (step_ in ("ready", "stuck", "broken", "unwritten")), (
            source,
            to,
            step_,
        )


def test_every_trigger_names_a_phase():
    """§8: each phase that a person may begin again has an event of its own."""
    for name in (e for e in MACHINE.events if e.startswith("redo_")):
        assert name.removeprefix("redo_") in spec.STATES
        assert MACHINE.events[name].origin is Origin.PERSON


# ── what the check finds ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.untraced
def test_the_check_finds_nothing():
    """The machine is followed to a fixpoint over constants, memory, facts and caps, and there is nothing wrong with it."""
    report = check_machine(MACHINE)
    assert report.findings == ()
    assert report.cases > 20_000
    assert find_table_errors(MACHINE) == []
    print(f"{report.cases} cases in {report.nodes} nodes")


@pytest.mark.untraced
def test_a_row_that_is_missing_is_found():
    """A row that is removed: the diagram, the row beside it or the check finds it (proofs/rows.py has every row)."""
    assert not is_row_loss_unnoticed(63), MACHINE.rows[63].label


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("event", "to"), [(E.review_ok, S.test), (E.base_unmoved, S.done)], ids=lambda v: v.name
)
def test_a_way_around_a_phase_breaks_a_law(event, to):
    """A shortcut past a phase, whoever opens it, is found by the laws with its path."""
    n = next(n for n, r in enumerate(MACHINE.rows) if r.on is event)
    sets = {"step": "work", "outcome": "accepted"} if to is S.done else {"step": "work"}
    rows = (*MACHINE.rows[:n], replace(MACHINE.rows[n], to=to, sets=sets), *MACHINE.rows[n + 1 :])
    found = [
        f for f in check_machine(rebuild_task(rows=rows, constants=CODER)).findings if f.kind == "broken law"
    ]
    assert found
    assert all(f.path for f in found if " before " in f.where)
