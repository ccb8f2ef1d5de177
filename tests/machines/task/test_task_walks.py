"""Random walks through task: what is rebuilt is what was live, nobody waits for nothing, and nothing is delivered unseen."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.specifications import task as spec
from tests.support.simulated_task import SIMULATED_RUN, SimulatedTask, base_conflict_facts, moved_base_facts

from steersman.contracts.facts import BaseFacts
from steersman.kernel.canonical import canonical_bytes, plain_value
from steersman.kernel.machine import definition_data
from steersman.kernel.replay import convert_context, rebuild_snapshot, repeat_decisions
from steersman.kernel.snapshot import state_hash
from steersman.kernel.step import StepRefused, override_guard
from steersman.machines.task import MACHINE
from steersman.machines.task.facts import RecordFacts

WALKS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
REDO = sorted(e for e in MACHINE.events if e.startswith("redo_"))
TREES = ("t0", "t1", "t2", "t3")
CHANGED = {  # how facts that are well may be otherwise, by the job
    "draft": ({"error": "provider_timeout"}, {"reply": None}),
    "comment": (
        {"error": "provider_timeout"},
        {"reply": None},
        {"reply": {"role": "second", "ready": False}},
    ),
    "review_plan": ({"error": "provider_timeout"},),
    "review_code": ({"reply": None},),
    "prepare": ({"ready": False},),
    "measure": ({"red": 1}, {"unstarted": 1}),
    "code": (
        {"reply": {"role": "coder", "status": "plan_unclear"}},
        {"error": "provider_timeout"},
        {"infrastructure": 1},
        *({"tree": t, "commit": f"c-{t}"} for t in TREES),
    ),
    "crew": ({"success": False}, {"tree": "t2"}),
    "run_suites": ({"flaky": 1}, {"tree": "t0"}, {"error": "workspace"}),
    "deliver": ({"done": False},),
    "take_back": ({"status": "conflicted"},),
    "inspect_plan": ({"blocking": 1}, {"files": 0}, {"damaged": 1, "adoptable": 1}),
    "inspect_plan_review": ({"ok": False}, {"blocked": True}),
    "inspect_code": ({"outside": 1}, {"copies": 0}, {"tree": "t0"}),
    "inspect_review": ({"ok": False}, {"decision": "plan_flawed"}),
    "inspect_tests": ({"overall_pass": False}, {"tree": "t0"}),
    "inspect_decision": ({"decision": "changes_requested"},),
    "inspect_revert": ({"status": "conflicted"},),
}
GENERAL = ({"damaged": 1}, {"seen": {}})  # of every look at the disk


@st.composite
def walks(draw):
    """A task of up to 90 steps: mostly it goes well, people interrupt, waive and redo."""
    task = SimulatedTask(
        pace=draw(st.sampled_from(("through", "through", "step"))),
        codegen=draw(st.sampled_from(("coder", "coder", "roundtable"))),
        planners=["lead", "second", "third"][: draw(st.integers(1, 3))],
        plan_reviewers=["one", "two"][: draw(st.integers(1, 2))],
        code_reviewers=["two", "three"][: draw(st.integers(1, 2))],
        max_regressions=draw(st.integers(1, 2)),
        max_rounds=1,
    )
    for _ in range(draw(st.integers(0, 90))):
        kind = draw(st.integers(0, 39))
        if kind == 0:
            task.tell(draw(st.sampled_from([*REDO, "words_given"])))
        elif kind == 1:
            _waive(task, draw(st.sampled_from(spec.STATES)))
        elif not task.open_jobs():
            task.tell(draw(st.sampled_from(REDO)))
        else:
            job = draw(st.sampled_from(task.open_jobs()))
            task.finish(job, draw(facts_of(task, job)))
    return task


def _waive(task, to):
    if not isinstance(override_guard(MACHINE, task.snapshot, to, "because"), StepRefused):
        task.waive(to)


def facts_of(task, job):
    fine = task.successful_facts(job)
    if task.item(job).kind == "gate":
        choices = task.item(job).input["choices"]
        return st.sampled_from([fine, fine, *(replace(fine, choice=c) for c in choices)])
    if job == "look_at_base":
        return st.sampled_from(
            (
                fine,
                fine,
                BaseFacts(error="x"),
                base_conflict_facts(),
                *(moved_base_facts(tree=t, commit=f"c-{t}") for t in ("m1", "m2")),
            )
        )
    if job in ("record", "restore", "adopt"):
        return st.sampled_from((*[fine] * 12, RecordFacts(error_ref="p-x")))
    others = (*CHANGED.get(job, ()), *(GENERAL if job.startswith("inspect") else ()))
    return st.sampled_from(
        (*[fine] * (3 * len(others) + 1), *(replace(fine, **changes) for changes in others))
    )


@WALKS
@given(walks())
def test_what_is_rebuilt_is_what_was_live(task):
    """Applying the recorded ops on plain data gives the task that was computed with the machine's own code."""
    back = rebuild_snapshot(task.rows, SIMULATED_RUN)
    assert plain_value(back) == plain_value(task.snapshot)
    assert canonical_bytes(convert_context(MACHINE, back)) == canonical_bytes(task.snapshot)
    assert state_hash(back) == state_hash(task.snapshot)


@WALKS
@given(walks())
def test_every_decision_is_decided_the_same_again(task):
    """Every recorded transition and override is decided again to the same row, guards and ops."""
    verdicts = list(repeat_decisions(MACHINE, task.entries))
    assert [d for d in verdicts if d.verdict != "same"] == []
    assert (
        list(repeat_decisions(MACHINE, task.entries, {MACHINE.digest: definition_data(MACHINE)})) == verdicts
    )


@WALKS
@given(walks())
def test_nobody_waits_for_nothing(task):
    """A task that has no outcome has something under way, or asks a person."""
    assert (task.open_jobs() == []) == (task.state == "done")


@WALKS
@given(walks())
def test_phases_follow_each_other_as_drawn(task):
    """Every move from one phase to another is an edge of the diagram, a redo, or a revert that conflicts."""
    drawn = {(source, to) for source, _, to in spec.DIAGRAM} | {("revert", "accept")}
    for entry in (s.entry for s in task.stored):
        if entry.kind in ("transition", "override") and entry.source != entry.to:
            assert (entry.source, entry.to) in drawn or entry.event.startswith("redo_")
            assert entry.kind != "override" or (entry.source, entry.to) in spec.FORWARD


@WALKS
@given(walks())
def test_what_is_delivered_was_reviewed_and_tested_as_it_is(task):
    """The tree that is handed over is the one that passed its review and its tests, or whose guard somebody waived."""
    tree, reviewed, tested = "", None, None
    for entry in (s.entry for s in task.stored):
        tree = next((op[2] for op in reversed(entry.ops) if op[:2] == ("set", "tree")), tree)
        if entry.kind not in ("transition", "override"):
            continue
        if (entry.source, entry.to) == ("review", "test"):
            reviewed = tree
        if (entry.source, entry.to) == ("test", "accept"):
            tested = tree
        if entry.event == "accepted":
            assert reviewed == tested == tree
            assert tree not in ("", "t0")


@WALKS
@given(walks())
def test_folds_leave_alone_what_the_check_follows(task):
    """Constants never change, and a memory field changes only where a row says so."""
    for op in (op for s in task.stored for op in s.entry.ops):
        assert op[1] not in MACHINE.constants
        assert op[1] not in MACHINE.memory or op[2] in MACHINE.memory[op[1]]


def test_walks_get_somewhere():
    """The walks above are no short ones: a task that goes well is delivered within them."""
    task = SimulatedTask()
    steps = 0
    while task.state != "done":
        task.advance()
        steps += 1
    assert steps < 30
