"""Task as stories: what each phase keeps, what sends it back, what a person says, what is decided and taken back."""

import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.simulated_task import (
    ALL_DOCUMENTS,
    SimulatedTask,
    base_conflict_facts,
    coder_facts,
    failed_agent_facts,
    moved_base_facts,
    record_facts,
    reply_facts,
    task_gate_answer,
)

from steersman.contracts.facts import AgentFacts, BaseFacts, DeliveryFacts, SetupFacts
from steersman.errors import UserError
from steersman.kernel.definition import ChildEnded
from steersman.kernel.record import run_outcome, run_status_word
from steersman.kernel.step import StepRefused, override_guard
from steersman.machines.task import MACHINE
from steersman.machines.task.context import upcast_checked_base
from steersman.machines.task.facts import PrerequisiteFacts, RecordFacts, RevertFacts

PLAN, SCOPE = "planning/planning.ai.json", "plan.files.json"
THREE = {"planners": ["lead", "second", "third"]}
TWO = {"plan_reviewers": ["one", "two"], "code_reviewers": ["one", "two"]}


def fixes(task):
    return [(item["id"], item["text"]) for item in task.context.must_fix]


# ── the whole way ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_goes_all_the_way():
    """Plan, review, code, review, tests, decision, delivery: every phase by its own event, every document recorded."""
    task = SimulatedTask().advance_to("done")
    assert task.events == [
        "task_received", "workspace_ready", "baseline_recorded", "planning_converged", "documents_recorded",
        "planning_succeeded",
        "plan_reviews_complete", "documents_recorded", "review_ok",
        "code_written", "documents_recorded", "codegen_completed",
        "code_reviews_complete", "documents_recorded", "review_passes",
        "suites_run", "documents_recorded", "tests_complete",
        "base_unmoved", "decision_given", "documents_recorded", "decision_recorded", "accepted",
    ]  # fmt: skip
    c = task.context
    assert sorted(c.artifacts) == sorted(name for name in ALL_DOCUMENTS if name != "revert/record.json")
    assert sorted(c.documents) == sorted(name for name in c.artifacts if name != "code/files")
    assert (c.outcome, c.delivered, c.delivered_tree, c.delivered_commit) == (
        "accepted", "yes", "t1", "c-delivered",
    )  # fmt: skip
    assert (run_outcome(MACHINE, task.snapshot), run_status_word(MACHINE, task.snapshot)) == (
        "accepted",
        "done",
    )
    assert c.sessions == {"planner": "s-planner", "reviewer": "s-reviewer"}
    assert c.providers == {"planner": "scripted", "reviewer": "scripted", "coder": "scripted"}


def test_step_by_step_a_person_says_next():
    """With the pace `step` every phase waits at a gate about exactly what was seen; next looks once more and goes on."""
    task = SimulatedTask(pace="step")
    for phase in ("planning", "plan_review", "codegen", "review", "test"):
        task.advance_to(phase, "ready")
        assert task.open_jobs() == ["next"]
        assert task.item("next").input["choices"] == ["approve", "rework"]
        assert task.item("next").input["shown"] == {"told": "p-told"}
        task.advance("next")
        assert task.position == (phase, "confirmed")
    task.advance_to("done")
    assert task.events.count("phase_ready") == 5
    assert task.events.count("next_requested") == 5


def test_what_has_changed_since_it_was_shown_is_shown_again():
    """Between the gate and the second look a document became another one: nothing goes on that nobody has seen."""
    task = SimulatedTask(pace="step").advance_to("planning", "ready")
    before = task.item("next").input["digest"]
    task.advance("next")
    task.advance("inspect_plan", seen={**task.context.artifacts, PLAN: "another"})
    assert task.position == ("planning", "ready")
    assert task.item("next").input["digest"] != before


def test_rework_does_the_phase_again():
    """A person who wants it done again is heard by whoever does it."""
    task = SimulatedTask(pace="step").advance_to("codegen", "ready")
    task.advance("next", choice="rework", text="p-rework")
    assert task.position == ("codegen", "work")
    assert task.item("code").input["texts"]["note_1"] == "p-rework"
    task.advance_to("codegen", "ready").advance("next", choice="rework", text="")
    assert task.context.notes == []


# ── planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_planners_settle_a_plan():
    """One drafts, the others look at it; what they have to settle is another round; then it is laid down."""
    task = SimulatedTask(**THREE).advance("prepare", "measure")
    assert task.open_jobs() == ["draft"]
    task.advance("draft")
    assert sorted(i.input["role"] for i in task.snapshot.items.values()) == ["second", "third"]
    assert task.item("comment").input["texts"]["draft"] == "p-lead"
    task.finish("comment", reply_facts("second", ready=False, concerns=1, blocking=0))
    task.advance("comment")
    assert (task.events[-1], task.position, task.context.round) == (
        "round_needed", ("planning", "work"), 2,
    )  # fmt: skip
    texts = task.item("draft").input["texts"]
    assert (texts["comment_of_second"], texts["comment_of_third"]) == ("p-second", "p-third")
    task.advance("draft")
    assert task.context.comments == {}
    task.advance("comment", "comment")
    assert task.position == ("planning", "record")
    assert task.item("record").input["comments"] == {"second": "p-second", "third": "p-third"}


def test_planners_who_never_agree_wait_for_a_person():
    """After the last round a person is asked; another try drafts again, and it may go on for as long again."""
    task = SimulatedTask(**THREE, max_rounds=1).advance("prepare", "measure")
    for _ in range(2):
        task.advance("draft")
        task.finish("comment", reply_facts("second", ready=False))
        task.advance("comment")
    assert task.position == ("planning", "broken")
    task.advance("again")
    assert task.position == ("planning", "work")
    assert task.snapshot.counts.get("rounds", 0) == 0


def test_a_planner_who_breaks_down_costs_no_phase():
    """One of several who does not answer is counted; when nobody is awaited any more a person is asked."""
    task = SimulatedTask(**THREE).advance("prepare", "measure", "draft")
    task.finish("comment", failed_agent_facts())
    assert (task.events[-1], task.context.failures) == ("plan_commented", {"comments": 1})
    task.advance("comment")
    assert (task.events[-1], task.position) == ("agent_failed", ("planning", "broken"))
    task.advance("again")
    assert (task.position, task.context.failures) == (("planning", "work"), {})
    task.advance("draft").advance("comment", "comment")
    assert task.position == ("planning", "record")


@pytest.mark.parametrize(
    "facts", [failed_agent_facts(), AgentFacts(text_ref="p-odd", problems_ref="p-detail")]
)
def test_a_draft_that_never_came_is_told(facts):
    """What broke is shown at the gate, and the work is done again."""
    task = SimulatedTask().advance("prepare", "measure")
    task.finish("draft", facts)
    assert task.position == ("planning", "broken")
    assert task.item("again").input["shown"] == {"detail": "p-detail"}


def test_a_person_answers_what_the_plan_asks():
    """Open questions go to a person; the answer belongs to the plan that asked, and the planner drafts with it."""
    task = SimulatedTask().advance_to("planning", "inspect").advance("inspect_plan", blocking=2)
    gate = task.item("questions").input
    assert (gate["choices"], gate["shown"]) == (["answer"], {"questions": "p-told"})
    task.advance("questions", text="p-answer")
    asked = {"text": "p-answer", "plan": task.context.artifacts[PLAN]}
    assert (task.context.answers, task.context.round) == ([asked], 2)
    assert task.item("draft").input["texts"]["note_1"] == "p-answer"
    assert task.item("draft").input["texts"]["plan"] == task.context.documents[PLAN]
    task.advance_to("planning", "record")
    assert task.item("record").input["answers"] == [asked]


def test_a_plan_without_files_is_drafted_again():
    """The planner is told to name them; after the last round a person is asked, and everything is looked at again."""
    task = SimulatedTask(max_rounds=1).advance_to("planning", "inspect").advance("inspect_plan", files=0)
    assert fixes(task) == [("scope", "")]
    task.advance_to("planning", "inspect").advance("inspect_plan", files=0)
    assert task.position == ("planning", "stuck")
    task.advance("again")
    assert task.position == ("planning", "confirmed")


def test_a_scope_that_is_taken_away_is_not_looked_for():
    """A plan that no longer names a file takes its scope with it: neither its digest nor its text is kept."""
    task = SimulatedTask().advance_to("plan_review")
    assert SCOPE in task.context.artifacts
    task.tell("redo_planning")
    task.advance_to("planning", "record")
    task.finish("record", RecordFacts(written={PLAN: "d2", SCOPE: ""}, refs={PLAN: "p2"}))
    assert task.context.artifacts == {PLAN: "d2"}
    assert task.context.documents == {PLAN: "p2"}


# ── reviews ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("phase", "job", "kept"),
    [("plan_review", "review_plan", "plan_opinions"), ("review", "review_code", "code_opinions")],
)
def test_reviewers_are_asked_until_all_have_answered(phase, job, kept):
    """Opinions are kept by reviewer; whoever broke down is asked again, and nobody else."""
    task = SimulatedTask(**TWO).advance_to(phase)
    assert sorted(i.input["role"] for i in task.snapshot.items.values()) == ["one", "two"]
    task.advance(job)
    assert list(getattr(task.context, kept)) == ["one"]
    task.finish(job, failed_agent_facts())
    assert task.position == (phase, "broken")
    task.advance("again")
    assert [i.input["role"] for i in task.snapshot.items.values()] == ["two"]
    task.advance(job)
    assert task.position == (phase, "record")
    assert task.item("record").input["opinions"] == {"one": "p-one", "two": "p-two"}


@pytest.mark.parametrize(("phase", "job"), [("plan_review", "review_plan"), ("review", "review_code")])
def test_the_first_reviewer_may_break_down(phase, job):
    """The others are waited for and kept; then a person is asked, what broke is named, and it alone is asked again."""
    task = SimulatedTask(**TWO).advance_to(phase)
    task.finish(job, failed_agent_facts(detail_ref="", problems_ref="p-problems"))
    assert (task.state, task.context.detail_ref) == (phase, "p-problems")
    task.advance(job)
    assert (task.position, task.context.failures) == ((phase, "broken"), {})
    assert task.item("again").input["shown"]["detail"] == "p-problems"
    task.advance("again")
    assert [i.input["role"] for i in task.snapshot.items.values()] == ["one"]
    task.advance(job)
    assert task.position == (phase, "record")
    assert task.item("record").input["opinions"] == {"one": "p-one", "two": "p-two"}


@for_each_case(
    ("phase", "look", "changed", "to", "points"),
    [
        ("plan_review", "inspect_plan_review", {"ok": False}, "planning", "review/plan-review.json"),
        ("plan_review", "inspect_plan_review", {"blocked": True}, "planning", "review/plan-review.json"),
        ("review", "inspect_review", {"ok": False}, "codegen", "review/code-review.json"),
        ("review", "inspect_review", {"decision": "plan_flawed"}, "planning", "review/code-review.json"),
        ("test", "inspect_tests", {"overall_pass": False}, "codegen", "test/report.json"),
        ("codegen", "inspect_code", {"outside": 1}, "planning", "code/files.json"),
    ],
)
def test_who_has_to_mend_it_is_given_the_document(phase, look, changed, to, points):
    """What sends a task back is a document, word for word; nobody's opinion outlives its phase."""
    task = SimulatedTask().advance_to(phase, "inspect").advance(look, **changed)
    assert task.position == (to, "work")
    assert fixes(task) == [(points, task.context.documents[points])]
    assert (task.context.plan_opinions, task.context.code_opinions) == ({}, {})
    job = {"planning": "draft", "codegen": "code"}[to]
    assert task.item(job).input["must_fix"] == task.context.must_fix


# ── code and tests ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tree_that_cannot_be_set_up_is_told():
    """The work is done again when a person says so, setup first."""
    task = SimulatedTask()
    task.finish("prepare", SetupFacts(detail_ref="p-setup"))
    shown = task.item("again").input["shown"]
    assert (task.position, shown) == (("planning", "broken"), {"detail": "p-setup"})
    task.advance("again")
    assert task.open_jobs() == ["prepare"]


@pytest.mark.parametrize("changed", [{"red": 1}, {"unstarted": 1}])
def test_no_planner_is_asked_on_a_base_that_is_not_green(changed):
    """The task waits with the reason; another try checks the base tree again, and a green one is planned on."""
    task = SimulatedTask().advance("prepare", "measure", **changed, first_ref="p-first")
    assert (task.position, task.item("again").input["shown"]) == (
        ("planning", "broken"),
        {"detail": "p-first"},
    )
    assert not {i.job for s in task.stored for i in s.entry.planned} - {"prepare", "measure", "again"}
    task.advance("again", "measure")
    assert (task.open_jobs(), task.context.detail_ref) == (["draft"], "")


def test_a_base_that_became_red_while_the_task_was_at_work_stops_nothing():
    """Work that was paid for goes on: the suites of the change are held against the new base."""
    task = SimulatedTask().advance_to("accept", "base")
    task.finish("look_at_base", moved_base_facts())
    task.advance_to("test").advance("measure_again", red=1)
    assert task.open_jobs() == ["run_suites"]


def test_the_coder_is_given_what_a_failing_suite_printed():
    """Beside the report on disk there is the first suite that failed, with what it printed."""
    task = SimulatedTask().advance_to("test", "work").advance("run_suites", failed=1, first_ref="p-first")
    task.advance_to("test", "inspect").advance("inspect_tests", overall_pass=False)
    assert fixes(task)[-1] == ("checks", "p-first")


@for_each_case(
    ("old", "now"),
    [
        ({"workspace": "ready", "providers": {"planner": "x"}}, "moved"),
        ({"workspace": "unprepared", "providers": {"planner": "x"}}, "moved"),
        ({"workspace": "measured", "providers": {"planner": "x"}}, "measured"),
        ({"workspace": "unprepared", "providers": {}}, "unprepared"),
    ],
)
def test_a_task_of_before_goes_on(old, now):
    """A task that has begun checks its base without stopping; one that has not begins as any other."""
    made = upcast_checked_base(old)
    assert (made["workspace"], made["red_base"]) == (now, "fix")


def test_a_coder_without_a_plan_to_build_says_so():
    """An unclear plan goes to its reviewers with the coder's words; a plan that lacks files goes to the planner with them."""
    task = SimulatedTask().advance_to("codegen", "work")
    task.finish("code", coder_facts("t0", "plan_unclear"))
    task.advance("record", "inspect_code")
    assert (task.position, fixes(task)) == (("plan_review", "work"), [("unclear", "p-coder")])
    task.advance_to("codegen", "work")
    task.finish("code", coder_facts("t0", "scope_mismatch"))
    task.advance("record", "inspect_code")
    assert task.position == ("planning", "work")
    assert fixes(task) == [("code/files.json", "p-d-code/files.json"), ("scope", "p-coder")]


def test_nothing_was_changed():
    """An empty change is made again, with the reason."""
    task = SimulatedTask().advance_to("codegen", "inspect").advance("inspect_code", copies=0)
    assert (task.position, fixes(task), task.context.turn) == (("codegen", "work"), [("no-change", "")], 2)


def test_a_crew_builds_in_place_of_a_coder():
    """A child run goes round; what it approved is laid down, reviewed and tested here, and somebody looks at the evidence."""
    task = SimulatedTask(codegen="roundtable").advance_to("codegen")
    asked = task.item("crew").input
    assert (asked["machine"], asked["task_ref"]) == ("roundtable", task.context.documents[PLAN])
    task.finish("crew", ChildEnded("r.1", "canceled"))
    assert task.position == ("codegen", "broken")
    task.advance("again", "crew")
    assert (task.position, task.context.tree, task.context.evidence) == (
        ("codegen", "record"), "t1", "touched",
    )  # fmt: skip
    task.advance_to("test", "evidence")
    assert task.open_jobs() == ["evidence"]


def test_changed_tests_are_accepted_by_a_person():
    """What decides about tests was changed: a pass of them is a question, bound to this very tree."""
    task = (
        SimulatedTask().advance_to("codegen").advance("code", infrastructure=1, infrastructure_ref="p-infra")
    )
    task.advance_to("test", "evidence")
    gate = task.item("evidence").input
    assert (gate["digest"], gate["choices"]) == ("t1", ["approve", "rework"])
    assert gate["shown"] == {"changed": "p-infra", "patch": task.context.documents["code/diff.patch"]}
    task.advance("evidence")
    assert (task.context.evidence, task.context.accepted_tree, task.context.accepted_by) == (
        "accepted", "t1", "ann",
    )  # fmt: skip
    task.advance_to("accept", "deliver")
    assert task.item("deliver").input["accepted_by"] == "ann"


def test_a_person_may_send_changed_tests_back():
    """The coder is told so, with what the person says."""
    task = (
        SimulatedTask().advance_to("codegen").advance("code", infrastructure=1).advance_to("test", "evidence")
    )
    task.advance("evidence", choice="rework", text="p-no")
    assert (task.position, fixes(task)) == (("codegen", "work"), [("evidence", "p-no")])


def test_new_results_are_accepted_anew():
    """What somebody accepted were results: when the suites run again on the same tree, they are asked again."""
    task = SimulatedTask() .advance_to("codegen") .advance("code", infrastructure=1) .advance_to("test", "evidence") .advance(
        "evidence",
    )  # fmt: skip
    task.advance_to("accept", "decide").advance("decide", choice="review").advance_to("test", "work")
    assert (task.context.tree, task.context.evidence) == ("t1", "accepted")
    task.advance("run_suites", flaky=1)
    assert task.context.evidence == "touched"
    task.advance_to("test", "evidence").advance("evidence").advance_to("done")


def test_what_the_suites_counted_is_kept():
    """Counts, the tree they are about, and which commands failed; nothing that is nought."""
    task = SimulatedTask() .advance_to("test") .advance(
        "run_suites", failed=1, failed_commands=("abc",), questions_ref="p-q",
    )  # fmt: skip
    assert task.context.checks == {
        "passed": 1, "failed": 1, "tests": 3, "tree": "t1", "failed_commands": ["abc"],
    }  # fmt: skip
    assert (task.context.results_ref, task.context.evidence_ref) == ("p-results", "p-q")


def test_another_tree_voids_what_was_accepted():
    """The coder worked again: nobody has accepted anything about that."""
    task = SimulatedTask() .advance_to("codegen") .advance("code", infrastructure=1) .advance_to("test", "evidence") .advance(
        "evidence",
    )  # fmt: skip
    task.tell("redo_codegen")
    task.advance("code")
    assert (task.context.tree, task.context.accepted_tree, task.context.evidence) == ("t1", "", "plain")


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PHASES = ("planning", "plan_review", "codegen", "review", "test", "accept")


@for_each_case("phase", PHASES)
def test_a_damaged_file_stops_the_phase_until_it_is_put_back(phase):
    """Nothing is trusted; a person has it put back, everything is looked at again, and what was told is still shown."""
    task = SimulatedTask().advance_to(phase, "inspect")
    look = task.open_jobs()[0]
    task.advance(look, damaged=1, told_ref="p-damage")
    gate = task.open_jobs()[0]
    assert task.position == (phase, "damaged")
    assert task.item(gate).input["choices"] == ["restore"]
    assert task.item(gate).input["shown"] == {"damage": "p-damage"}
    task.advance(gate)
    assert task.item("restore").input["told"] == "p-told"
    task.advance("restore")
    assert task.position == (phase, "inspect")
    assert (task.context.told_ref, task.context.detail_ref) == ("p-told", "")
    task.advance(look)
    assert task.state != phase or phase == "accept"


@for_each_case("phase", PHASES)
def test_what_cannot_be_put_back_is_told_and_looked_at_again(phase):
    """The files are looked at once more: still damaged, the person is told why it failed, and nothing can be waived."""
    task = SimulatedTask().advance_to(phase, "inspect")
    look = task.open_jobs()[0]
    task.advance(look, damaged=1).advance()
    task.finish("restore", RecordFacts(error_ref="p-folder"))
    assert (task.position, task.open_jobs()) == ((phase, "inspect"), [look])
    task.advance(look, damaged=1)
    assert task.position == (phase, "damaged")
    assert task.item(task.open_jobs()[0]).input["shown"] == {"damage": "p-told", "failed": "p-folder"}
    assert all(
        isinstance(override_guard(MACHINE, task.snapshot, to, "why"), StepRefused) for to in MACHINE.states
    )
    task.advance().advance("restore")
    assert (task.context.step, task.context.repair_ref) == ("inspect", "")


def test_a_plan_that_was_changed_by_hand_may_be_taken_over():
    """Offered only where everything that is wrong is such a plan; what is taken over is what was seen."""
    task = SimulatedTask().advance_to("planning", "inspect")
    seen = {**task.context.artifacts, PLAN: "by-hand"}
    task.advance("inspect_plan", seen=seen, damaged=1, adoptable=1)
    assert task.item("damaged_plan").input["choices"] == ["restore", "adopt"]
    task.advance("damaged_plan", choice="adopt")
    assert task.item("adopt").input["seen"] == seen
    task.finish("adopt", RecordFacts(written={PLAN: "by-hand"}, refs={PLAN: "p-hand"}, told_ref="p-new"))
    assert (task.position, task.context.artifacts[PLAN]) == (("planning", "inspect"), "by-hand")
    assert SCOPE in task.context.artifacts


@pytest.mark.parametrize(
    "facts",
    [
        {"damaged": 2, "adoptable": 1},
        {"damaged": 1, "adoptable": 0},
        {"seen": {}, "damaged": 0, "adoptable": 0},
    ],
)
def test_nothing_else_is_offered_to_be_taken_over(facts):
    """Where anything is wrong beside the plan, or nothing could be looked at, it is put back or left."""
    task = SimulatedTask().advance_to("planning", "inspect").advance("inspect_plan", **facts)
    assert task.item("damaged_plan").input["choices"] == ["restore"]


@for_each_case("phase", PHASES)
def test_documents_that_cannot_be_laid_down_are_told(phase):
    """A full disk stops the phase, with the reason; another try lays down the same, and nobody has to work again."""
    task = SimulatedTask(**TWO).advance_to(phase, "record")
    asked = task.item("record").input
    task.finish("record", RecordFacts(error_ref="p-full"))
    assert (task.position, task.context.detail_ref) == ((phase, "unwritten"), "p-full")
    assert task.open_jobs() == ["again"]
    task.advance("again")
    assert (task.position, task.open_jobs(), task.item("record").input) == (
        (phase, "record"), ["record"], asked,
    )  # fmt: skip
    task.advance_to("done")


# ── accept ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@for_each_case(
    ("choice", "decision", "to"),
    [
        ("approve", "accepted", ("accept", "deliver")),
        ("rework", "changes_requested", ("codegen", "work")),
        ("review", "review_requested", ("review", "work")),
        ("replan", "replan_requested", ("planning", "work")),
        ("revert", "revert_requested", ("revert", "record")),
    ],
)
def test_each_exit_of_accept_is_a_recorded_decision(choice, decision, to):
    """A person decides about exactly this tree and these documents; it is laid down, looked at, and then it counts."""
    task = SimulatedTask().advance_to("accept", "decide")
    gate = task.item("decide").input
    assert gate["choices"] == ["approve", "rework", "review", "replan", "revert"]
    assert set(gate["shown"]) == {"diff.patch", "plan-review.json", "code-review.json", "report.json"}
    task.advance("decide", choice=choice, reason="why not", text="p-why")
    told = task.item("record").input
    assert (told["decision"], told["person"], told["reason"], told["tree"]) == (
        decision, "ann", "why not", "t1",
    )  # fmt: skip
    task.advance("record")
    assert task.position == ("accept", "inspect")
    task.advance("inspect_decision")
    assert task.position == to
    assert task.context.notes == ["p-why"]
    assert task.context.decisions.count == 1


def test_the_decision_is_bound_to_everything_that_is_accepted():
    """Another tree, another base or another byte of a document is another question."""
    task = SimulatedTask().advance_to("accept", "decide")
    digest = task.item("decide").input["digest"]
    again = SimulatedTask().advance_to("accept", "decide")
    assert again.item("decide").input["digest"] == digest
    again.advance("decide", choice="review").advance_to("test", "record")
    again.finish("record", record_facts("test", "other"))
    again.advance_to("accept", "decide")
    assert again.item("decide").input["digest"] != digest


def test_no_answer_is_no_approval():
    """A gate that ran out of time decides nothing: the task waits, and asks again."""
    task = SimulatedTask().advance_to("accept", "decide")
    task.finish("decide", task_gate_answer("", timed_out=True))
    assert task.position == ("accept", "broken")
    task.advance("again").advance("look_at_base")
    assert task.open_jobs() == ["decide"]


def test_a_delivery_that_fails_is_told_and_decided_again():
    """Why the change is not there is shown with the next decision, after another look at the branch."""
    task = SimulatedTask().advance_to("accept", "deliver")
    task.finish("deliver", DeliveryFacts(detail_ref="p-moved"))
    assert (task.position, task.context.decision) == (("accept", "base"), "none")
    task.advance("look_at_base")
    assert task.item("decide").input["shown"]["detail"] == "p-moved"
    task.advance_to("done")


def test_a_branch_that_moves_while_somebody_decides():
    """The delivery is refused, and the change goes through review and tests on the new base by itself."""
    task = SimulatedTask(deliver="merge", target="main").advance_to("accept", "deliver")
    task.finish("deliver", DeliveryFacts(detail_ref="p-moved"))
    task.finish("look_at_base", moved_base_facts())
    assert (task.position, task.context.followed, task.context.detail_ref) == (("review", "work"), 1, "")
    task.advance_to("accept", "decide").advance_to("done")


def test_a_branch_that_has_moved_is_reviewed_and_tested_again():
    """The change on top of it is another tree, with documents of its own; nobody has accepted anything about it."""
    task = SimulatedTask(deliver="merge", target="main").advance_to("accept", "base")
    asked = task.item("look_at_base").input
    assert (asked["form"], asked["target"], asked["base"], asked["delivered"]) == ("merge", "main", "c0", "")
    task.finish("look_at_base", moved_base_facts())
    c = task.context
    assert (task.position, c.base_commit, c.base_tree, c.commit, c.tree) == (
        ("review", "work"), "c9", "t9", "c-t8", "t8",
    )  # fmt: skip
    assert c.artifacts["code/diff.patch"] == "r-code/diff.patch"
    assert task.item("review_code").input["texts"]["patch"] == "p-r-code/diff.patch"
    task.advance_to("test")
    assert task.open_jobs() == ["measure_again"]
    task.advance_to("done")
    assert task.context.delivered_tree == "t8"


def test_a_change_that_conflicts_is_made_again():
    """The coder begins on the branch as it is now, and is told where both have changed the same."""
    task = SimulatedTask().advance_to("accept", "base")
    task.finish("look_at_base", base_conflict_facts())
    c = task.context
    assert (task.position, c.base_commit, c.commit, c.tree) == (("codegen", "work"), "c9", "c9", "t9")
    assert fixes(task) == [("base", "p-clash")]
    assert task.open_jobs() == ["measure_again"]
    task.advance("measure_again")
    assert task.item("code").input["commit"] == "c9"


def test_a_branch_that_cannot_be_looked_at_is_told():
    """It is not taken for one that stands still, and the change stays what it is."""
    task = SimulatedTask().advance_to("accept", "base")
    task.finish("look_at_base", BaseFacts(error="workspace", told_ref="p-gone"))
    assert (task.position, task.context.tree, task.context.base_commit) == (
        ("accept", "broken"), "t1", "c0",
    )  # fmt: skip
    assert task.item("again").input["shown"]["detail"] == "p-gone"


def test_another_tree_is_never_decided_about():
    """However often the branch moves, what is decided about was reviewed and tested as it is."""
    task = SimulatedTask(max_regressions=1)
    for n in range(4):
        task.advance_to("accept", "base")
        task.finish("look_at_base", moved_base_facts(tree=f"m{n}", commit=f"c-m{n}", base=f"b{n}"))
        assert task.state == "review"
    task.advance_to("accept", "decide")
    assert task.context.checks["tree"] == task.context.tree == "m3"


# ── revert and redo ─────────────────────────────────────────────────────────────────────────────────────────────────


def delivered(**request):
    return SimulatedTask(target="main", **request).advance_to("done")


def test_what_was_delivered_is_taken_back():
    """Reopened, decided, taken back by a commit of its own, recorded: the task has another outcome."""
    task = delivered()
    task.tell("redo_accept")
    task.advance("decide", choice="revert", reason="it broke").advance_to("revert", "work")
    asked = task.item("take_back").input
    assert (asked["commit"], asked["target"], asked["person"]) == ("c-delivered", "main", "ann")
    task.advance("take_back", commit="c-undone")
    told = task.item("record").input
    assert (told["revert"], told["reverted"]) == ({"status": "reverted", "detail": ""}, "c-undone")
    task.advance_to("done")
    assert (task.context.outcome, task.context.delivered) == ("reverted", "reverted")
    assert isinstance(task.tell("redo_accept").refused, StepRefused)


@pytest.mark.parametrize("status", ["conflicted", "not_merged", "blocked"])
def test_what_cannot_be_taken_back_is_decided_again(status):
    """The record says why; nothing was changed, and the person decides otherwise."""
    task = delivered()
    task.tell("redo_accept")
    task.advance("decide", choice="revert").advance_to("revert", "work")
    task.finish("take_back", RevertFacts(status=status, detail_ref="p-why"))
    assert task.item("record").input["revert"] == {"status": status, "detail": "p-why"}
    task.advance("record").advance("inspect_revert", status=status)
    assert (task.position, task.context.delivered) == (("accept", "decide"), "yes")
    task.advance_to("done")
    assert (task.events[-1], task.context.outcome) == ("accepted", "accepted")


def test_there_may_be_nothing_to_take_back():
    """Nothing was delivered: the record says so, and the task is over."""
    task = SimulatedTask() .advance_to("accept", "decide") .advance("decide", choice="revert") .advance_to(
        "revert", "record",
    )  # fmt: skip
    assert task.item("record").input["revert"] == {"status": "nothing_delivered", "detail": ""}
    task.advance("record").advance("inspect_revert", status="nothing_delivered")
    assert (task.state, task.context.outcome, task.context.delivered) == ("done", "reverted", "no")


def test_a_reopened_task_delivers_what_it_made_next():
    """What was delivered before is no reason to skip the look at the branch: this is another tree."""
    task = delivered()
    task.tell("redo_codegen", "")
    assert task.context.outcome is None
    task.finish("code", coder_facts("t7"))
    task.advance_to("accept", "base")
    assert task.item("look_at_base").input["delivered"] == ""
    task.advance_to("accept", "deliver").advance("deliver", commit="c-second")
    assert (task.events[-1], task.context.delivered_tree) == ("accepted", "t7")
    assert task.context.deliveries == ["c-delivered", "c-second"]
    task.tell("redo_accept")
    task.advance("decide", choice="revert").advance_to("revert", "work")
    asked = task.item("take_back").input
    assert (asked["commit"], asked["also"]) == ("c-second", ["c-delivered"])
    assert task.advance_to("done").context.deliveries == []


def test_a_delivered_change_stays_accepted():
    """Reopened and approved once more: whoever hands it over is told that it was, and finds it there."""
    task = delivered()
    task.tell("redo_accept")
    task.finish("decide", task_gate_answer("", timed_out=True))
    task.advance("again")
    assert task.item("look_at_base").input["delivered"] == "c-delivered"
    task.advance_to("accept", "deliver")
    asked = task.item("deliver").input
    assert (asked["delivered"], asked["ref"]) == ("c-delivered", "refs/heads/main")
    task.advance_to("done")
    assert (task.events.count("accepted"), task.context.deliveries) == (2, ["c-delivered"])


def test_a_delivery_that_was_lost_is_made_again():
    """What was handed over and is not there any more is a change like any other: looked at, decided, handed over."""
    task = delivered()
    task.tell("redo_accept")
    task.advance_to("accept", "deliver").advance("deliver", done=False, detail_ref="p-gone")
    assert (task.position, task.context.detail_ref) == (("accept", "base"), "p-gone")
    task.advance("look_at_base", lost=True, told_ref="p-lost")
    assert (task.position, task.item("look_at_base").input["delivered"]) == (("accept", "base"), "")
    assert (task.context.delivered, task.context.detail_ref) == ("yes", "p-lost")
    task.advance_to("accept", "deliver").advance("deliver", commit="c-again")
    assert (task.state, task.context.deliveries) == ("done", ["c-delivered", "c-again"])


def test_what_keeps_getting_lost_waits_for_a_person():
    """As often as anything else sends a task back, and no more."""
    task = delivered(max_regressions=1)
    task.tell("redo_codegen", "")
    task.finish("code", coder_facts("t1"))
    task.advance_to("accept", "base")
    for _ in range(2):
        task.advance("look_at_base", lost=True)
    assert (task.position, task.open_jobs()) == (("accept", "broken"), ["again"])


def test_a_branch_that_has_it_all_leaves_nothing_to_accept():
    """An empty change waits for a person, who is told; looked at again, it may not be empty any more."""
    task = SimulatedTask(deliver="merge", target="main").advance_to("accept", "base")
    task.finish("look_at_base", BaseFacts(moved=True, absorbed=True, told_ref="p-there"))
    assert (task.position, task.open_jobs()) == (("accept", "broken"), ["again"])
    assert task.item("again").input["shown"]["detail"] == "p-there"
    task.advance("again")
    assert (task.position, task.context.detail_ref) == (("accept", "base"), "")


def test_another_try_at_the_tests_runs_them_again():
    """A report that is there already is not believed a second time."""
    task = SimulatedTask(max_regressions=1) .advance_to("test", "inspect") .advance(
        "inspect_tests", overall_pass=False,
    )  # fmt: skip
    task.advance_to("test", "inspect").advance("inspect_tests", overall_pass=False)
    assert task.position == ("test", "stuck")
    task.advance("again")
    assert (task.position, task.open_jobs()) == (("test", "work"), ["run_suites"])


# ── words, redo, overrides ──────────────────────────────────────────────────────────────────────────────────────────


def test_words_are_heard_by_whoever_works_next():
    """In planning they begin another draft; later they are kept, and nothing is interrupted."""
    task = SimulatedTask().advance("prepare", "measure")
    task.tell("words_given", "p-first")
    assert task.item("draft").input["texts"]["note_1"] == "p-first"
    assert "note_1" in task.item("draft").input["said"]
    task.advance("draft")
    assert task.context.notes == []
    task.advance_to("plan_review", "work")
    before = task.open_jobs()
    task.tell("words_given", "p-second")
    assert (task.open_jobs(), task.context.notes) == (before, ["p-second"])
    task.advance_to("codegen", "work")
    assert task.item("code").input["texts"]["note_1"] == "p-second"
    for n in range(30):
        task.tell("words_given", f"p-{n}")
    assert len(task.context.notes) == 21
    assert task.context.said.count == 32


def test_a_redo_of_planning_is_another_round():
    """It is counted, with or without words."""
    task = SimulatedTask().advance_to("plan_review")
    task.tell("redo_planning", "")
    assert (task.position, task.context.round, task.context.notes) == (("planning", "work"), 2, [])
    task.tell("redo_planning", "p-words")
    assert (task.context.round, task.context.notes) == (3, ["p-words"])


def test_an_override_takes_nobodys_opinion_along():
    """Who has judged the plan has not judged the change, also where the phases between were waived."""
    task = SimulatedTask(pace="step").advance_to("review", "ready")
    task.tell("redo_planning")
    task.advance_to("plan_review", "ready").waive("codegen")
    task.advance_to("codegen", "ready").waive("review")
    assert [i.input["role"] for i in task.snapshot.items.values()] == ["reviewer"]
    assert task.open_jobs() == ["review_code"]
    task.advance_to("review", "ready").waive("test")
    assert task.open_jobs() == ["run_suites"]
    task.advance_to("test", "ready").waive("accept")
    task.advance_to("done")
    assert [s.entry.kind for s in task.stored].count("override") == 4


def test_a_failure_before_an_override_is_no_failure_after_it():
    """A planner who broke down does not make the reviewers of the plan broken."""
    task = SimulatedTask(**THREE).advance_to("plan_review")
    task.tell("redo_planning")
    task.advance("draft")
    task.finish("comment", failed_agent_facts())
    task.advance("comment")
    assert task.position == ("planning", "broken")
    task.waive("plan_review")
    task.advance("review_plan")
    assert task.position == ("plan_review", "record")


def test_who_keeps_no_session_is_handed_none():
    """A call that brings no session leaves the one before in place, and says nothing of one that never was."""
    task = SimulatedTask().advance_to("plan_review")
    task.finish("review_plan", replace(reply_facts("reviewer"), session=""))
    assert task.context.sessions == {"planner": "s-planner"}
    task.advance_to("review")
    assert "session" not in task.item("review_code").input
    task.tell("redo_planning")
    assert task.item("draft").input["session"] == "s-planner"


# ── tasks that come first ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_begins_after_others():
    """It looks at them before anything else, waits where one is missing, looks again, and begins on what they have left."""
    task = SimulatedTask(after=["r-first", "r-other"])
    assert (task.position, task.open_jobs()) == (("planning", "others"), ["look_at_others"])
    assert task.item("look_at_others").input["after"] == ["r-first", "r-other"]
    task.finish("look_at_others", PrerequisiteFacts(missing=1, told_ref="p-who"))
    assert (task.position, task.open_jobs()) == (("planning", "waiting"), ["others"])
    assert task.item("others").input["choices"] == ["retry", "begin"]
    assert task.item("others").input["shown"] == {"others": "p-who"}
    task.advance("others")
    assert task.open_jobs() == ["look_at_others"]
    task.advance("look_at_others")
    c = task.context
    assert (c.base_commit, c.base_tree, c.others, c.detail_ref) == ("c5", "t5", "none", "")
    task.advance("prepare", "measure")
    assert task.item("draft").input["base"] == "c5"
    assert task.advance_to("done").context.outcome == "accepted"


def test_nothing_but_a_reason_begins_without_them():
    """Words are kept, a redo looks again, an override is refused; a person's begin needs its reason, and leaves the base."""
    task = SimulatedTask(after=["r-first"], base_commit="c0", base_tree="t0")
    task.advance("look_at_others", missing=1)
    task.tell("words_given")
    assert (task.position, task.context.notes) == (("planning", "waiting"), ["p-words"])
    task.tell("redo_planning")
    assert (task.position, task.open_jobs()) == (("planning", "others"), ["look_at_others"])
    task.advance("look_at_others", missing=1)
    assert isinstance(override_guard(MACHINE, task.snapshot, "plan_review", "why"), StepRefused)
    task.advance("others", choice="begin")
    assert task.position == ("planning", "others")
    task.advance("look_at_others", error="workspace", missing=0)
    task.advance("others", choice="begin", reason="nothing in common")
    assert (task.position, task.open_jobs(), task.context.others) == (
        ("planning", "work"), ["prepare"], "none",
    )  # fmt: skip
    assert task.context.base_commit == "c0"


def test_no_task_comes_first_twice():
    """The same task is named once."""
    with pytest.raises(UserError, match="r-first, r-first names a task twice"):
        SimulatedTask(after=["r-first", "r-first"])


# ── a frozen plan ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_that_left_the_frozen_plan_is_not_built_upon():
    """The coder begins again where it began, told what was not taken; at the cap it waits, and nothing can be waived."""
    task = SimulatedTask(bounds_ref="p-bounds", max_regressions=2).advance_to("codegen", "work")
    begun = task.item("code").input["commit"]
    for turn in (1, 2):
        task.finish("code", coder_facts(f"t-astray-{turn}"))
        task.finish("record", record_facts("codegen", beyond=1, beyond_ref="p-beyond"))
        task.advance("inspect_code")
        assert (task.position, task.events[-1]) == (("codegen", "work"), "bounds_left")
        asked = task.item("code").input
        assert (asked["commit"], asked["must_fix"][0]["text"]) == (begun, "p-beyond")
    task.finish("code", coder_facts("t-astray-3"))
    task.finish("record", record_facts("codegen", beyond=1, beyond_ref="p-beyond"))
    task.advance("inspect_code")
    assert task.position == ("codegen", "stuck")
    assert isinstance(override_guard(MACHINE, task.snapshot, "review", "why"), StepRefused)
    task.advance("again").advance("inspect_code")
    task.finish("code", coder_facts("t-inside"))
    task.finish("record", record_facts("codegen", beyond=0))
    task.advance("inspect_code")
    assert (task.state, task.context.tree) == ("review", "t-inside")
