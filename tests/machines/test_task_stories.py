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
from steersman.contracts.task.facts import PrerequisiteFacts, RecordFacts, RevertFacts
from steersman.errors import UserError
from steersman.kernel.definition import ChildEnded
from steersman.kernel.record import run_outcome, run_status_word
from steersman.kernel.step import StepRefused, override_guard
from steersman.machines.task import MACHINE
from steersman.machines.task.context import upcast_checked_base

PLAN, SCOPE = "planning/planning.ai.json", "plan.files.json"
THREE = {"planners": ["lead", "second", "third"]}
TWO = {"plan_reviewers": ["one", "two"], "code_reviewers": ["one", "two"]}


def fixes(shift):
    return [(item["id"], item["text"]) for item in shift.context.must_fix]


# ── the whole way ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_goes_all_the_way():
    """Plan, review, code, review, tests, decision, delivery: every phase by its own event, every document recorded."""
    shift = SimulatedTask().advance_to("done")
    assert shift.events == [
        "task_received", "workspace_ready", "baseline_recorded", "planning_converged", "documents_recorded",
        "planning_succeeded",
        "plan_reviews_complete", "documents_recorded", "review_ok",
        "code_written", "documents_recorded", "codegen_completed",
        "code_reviews_complete", "documents_recorded", "review_passes",
        "suites_run", "documents_recorded", "tests_complete",
        "base_unmoved", "decision_given", "documents_recorded", "decision_recorded", "accepted",
    ]  # fmt: skip
    c = shift.context
    assert sorted(c.artifacts) == sorted(name for name in ALL_DOCUMENTS if name != "revert/record.json")
    assert sorted(c.documents) == sorted(name for name in c.artifacts if name != "code/files")
    assert (c.outcome, c.delivered, c.delivered_tree, c.delivered_commit) == (
        "accepted", "yes", "t1", "c-delivered",
    )  # fmt: skip
    assert (run_outcome(MACHINE, shift.snapshot), run_status_word(MACHINE, shift.snapshot)) == (
        "accepted",
        "done",
    )
    assert c.sessions == {"planner": "s-planner", "reviewer": "s-reviewer"}
    assert c.providers == {"planner": "scripted", "reviewer": "scripted", "coder": "scripted"}


def test_step_by_step_a_person_says_next():
    """With the pace `step` every phase waits at a gate about exactly what was seen; next looks once more and goes on."""
    shift = SimulatedTask(pace="step")
    for phase in ("planning", "plan_review", "codegen", "review", "test"):
        shift.advance_to(phase, "ready")
        assert shift.open_jobs() == ["next"]
        assert shift.item("next").input["choices"] == ["approve", "rework"]
        assert shift.item("next").input["shown"] == {"told": "p-told"}
        shift.advance("next")
        assert shift.position == (phase, "confirmed")
    shift.advance_to("done")
    assert shift.events.count("phase_ready") == 5
    assert shift.events.count("next_requested") == 5


def test_what_has_changed_since_it_was_shown_is_shown_again():
    """Between the gate and the second look a document became another one: nothing goes on that nobody has seen."""
    shift = SimulatedTask(pace="step").advance_to("planning", "ready")
    before = shift.item("next").input["digest"]
    shift.advance("next")
    shift.advance("inspect_plan", seen={**shift.context.artifacts, PLAN: "another"})
    assert shift.position == ("planning", "ready")
    assert shift.item("next").input["digest"] != before


def test_rework_does_the_phase_again():
    """A person who wants it done again is heard by whoever does it."""
    shift = SimulatedTask(pace="step").advance_to("codegen", "ready")
    shift.advance("next", choice="rework", text="p-rework")
    assert shift.position == ("codegen", "work")
    assert shift.item("code").input["texts"]["note_1"] == "p-rework"
    shift.advance_to("codegen", "ready").advance("next", choice="rework", text="")
    assert shift.context.notes == []


# ── planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_planners_settle_a_plan():
    """One drafts, the others look at it; what they have to settle is another round; then it is laid down."""
    shift = SimulatedTask(**THREE).advance("prepare", "measure")
    assert shift.open_jobs() == ["draft"]
    shift.advance("draft")
    assert sorted(i.input["role"] for i in shift.snapshot.items.values()) == ["second", "third"]
    assert shift.item("comment").input["texts"]["draft"] == "p-lead"
    shift.finish("comment", reply_facts("second", ready=False, concerns=1, blocking=0))
    shift.advance("comment")
    assert (shift.events[-1], shift.position, shift.context.round) == (
        "round_needed", ("planning", "work"), 2,
    )  # fmt: skip
    texts = shift.item("draft").input["texts"]
    assert (texts["comment_of_second"], texts["comment_of_third"]) == ("p-second", "p-third")
    shift.advance("draft")
    assert shift.context.comments == {}
    shift.advance("comment", "comment")
    assert shift.position == ("planning", "record")
    assert shift.item("record").input["comments"] == {"second": "p-second", "third": "p-third"}


def test_planners_who_never_agree_wait_for_a_person():
    """After the last round a person is asked; another try drafts again, and it may go on for as long again."""
    shift = SimulatedTask(**THREE, max_rounds=1).advance("prepare", "measure")
    for _ in range(2):
        shift.advance("draft")
        shift.finish("comment", reply_facts("second", ready=False))
        shift.advance("comment")
    assert shift.position == ("planning", "broken")
    shift.advance("again")
    assert shift.position == ("planning", "work")
    assert shift.snapshot.counts.get("rounds", 0) == 0


def test_a_planner_who_breaks_down_costs_no_phase():
    """One of several who does not answer is counted; when nobody is awaited any more a person is asked."""
    shift = SimulatedTask(**THREE).advance("prepare", "measure", "draft")
    shift.finish("comment", failed_agent_facts())
    assert (shift.events[-1], shift.context.failures) == ("plan_commented", {"comments": 1})
    shift.advance("comment")
    assert (shift.events[-1], shift.position) == ("agent_failed", ("planning", "broken"))
    shift.advance("again")
    assert (shift.position, shift.context.failures) == (("planning", "work"), {})
    shift.advance("draft").advance("comment", "comment")
    assert shift.position == ("planning", "record")


@pytest.mark.parametrize(
    "facts", [failed_agent_facts(), AgentFacts(text_ref="p-odd", problems_ref="p-detail")]
)
def test_a_draft_that_never_came_is_told(facts):
    """What broke is shown at the gate, and the work is done again."""
    shift = SimulatedTask().advance("prepare", "measure")
    shift.finish("draft", facts)
    assert shift.position == ("planning", "broken")
    assert shift.item("again").input["shown"] == {"detail": "p-detail"}


def test_a_person_answers_what_the_plan_asks():
    """Open questions go to a person; the answer belongs to the plan that asked, and the planner drafts with it."""
    shift = SimulatedTask().advance_to("planning", "inspect").advance("inspect_plan", blocking=2)
    gate = shift.item("questions").input
    assert (gate["choices"], gate["shown"]) == (["answer"], {"questions": "p-told"})
    shift.advance("questions", text="p-answer")
    asked = {"text": "p-answer", "plan": shift.context.artifacts[PLAN]}
    assert (shift.context.answers, shift.context.round) == ([asked], 2)
    assert shift.item("draft").input["texts"]["note_1"] == "p-answer"
    assert shift.item("draft").input["texts"]["plan"] == shift.context.documents[PLAN]
    shift.advance_to("planning", "record")
    assert shift.item("record").input["answers"] == [asked]


def test_a_plan_without_files_is_drafted_again():
    """The planner is told to name them; after the last round a person is asked, and everything is looked at again."""
    shift = SimulatedTask(max_rounds=1).advance_to("planning", "inspect").advance("inspect_plan", files=0)
    assert fixes(shift) == [("scope", "")]
    shift.advance_to("planning", "inspect").advance("inspect_plan", files=0)
    assert shift.position == ("planning", "stuck")
    shift.advance("again")
    assert shift.position == ("planning", "confirmed")


def test_a_scope_that_is_taken_away_is_not_looked_for():
    """A plan that no longer names a file takes its scope with it: neither its digest nor its text is kept."""
    shift = SimulatedTask().advance_to("plan_review")
    assert SCOPE in shift.context.artifacts
    shift.tell("redo_planning")
    shift.advance_to("planning", "record")
    shift.finish("record", RecordFacts(written={PLAN: "d2", SCOPE: ""}, refs={PLAN: "p2"}))
    assert shift.context.artifacts == {PLAN: "d2"}
    assert shift.context.documents == {PLAN: "p2"}


# ── reviews ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("phase", "job", "kept"),
    [("plan_review", "review_plan", "plan_opinions"), ("review", "review_code", "code_opinions")],
)
def test_reviewers_are_asked_until_all_have_answered(phase, job, kept):
    """Opinions are kept by reviewer; whoever broke down is asked again, and nobody else."""
    shift = SimulatedTask(**TWO).advance_to(phase)
    assert sorted(i.input["role"] for i in shift.snapshot.items.values()) == ["one", "two"]
    shift.advance(job)
    assert list(getattr(shift.context, kept)) == ["one"]
    shift.finish(job, failed_agent_facts())
    assert shift.position == (phase, "broken")
    shift.advance("again")
    assert [i.input["role"] for i in shift.snapshot.items.values()] == ["two"]
    shift.advance(job)
    assert shift.position == (phase, "record")
    assert shift.item("record").input["opinions"] == {"one": "p-one", "two": "p-two"}


@pytest.mark.parametrize(("phase", "job"), [("plan_review", "review_plan"), ("review", "review_code")])
def test_the_first_reviewer_may_break_down(phase, job):
    """The others are waited for and kept; then a person is asked, what broke is named, and it alone is asked again."""
    shift = SimulatedTask(**TWO).advance_to(phase)
    shift.finish(job, failed_agent_facts(detail_ref="", problems_ref="p-problems"))
    assert (shift.state, shift.context.detail_ref) == (phase, "p-problems")
    shift.advance(job)
    assert (shift.position, shift.context.failures) == ((phase, "broken"), {})
    assert shift.item("again").input["shown"]["detail"] == "p-problems"
    shift.advance("again")
    assert [i.input["role"] for i in shift.snapshot.items.values()] == ["one"]
    shift.advance(job)
    assert shift.position == (phase, "record")
    assert shift.item("record").input["opinions"] == {"one": "p-one", "two": "p-two"}


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
    shift = SimulatedTask().advance_to(phase, "inspect").advance(look, **changed)
    assert shift.position == (to, "work")
    assert fixes(shift) == [(points, shift.context.documents[points])]
    assert (shift.context.plan_opinions, shift.context.code_opinions) == ({}, {})
    job = {"planning": "draft", "codegen": "code"}[to]
    assert shift.item(job).input["must_fix"] == shift.context.must_fix


# ── code and tests ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tree_that_cannot_be_set_up_is_told():
    """The work is done again when a person says so, setup first."""
    shift = SimulatedTask()
    shift.finish("prepare", SetupFacts(detail_ref="p-setup"))
    shown = shift.item("again").input["shown"]
    assert (shift.position, shown) == (("planning", "broken"), {"detail": "p-setup"})
    shift.advance("again")
    assert shift.open_jobs() == ["prepare"]


@pytest.mark.parametrize("changed", [{"red": 1}, {"unstarted": 1}])
def test_no_planner_is_asked_on_a_base_that_is_not_green(changed):
    """The task waits with the reason; another try checks the base tree again, and a green one is planned on."""
    shift = SimulatedTask().advance("prepare", "measure", **changed, first_ref="p-first")
    assert (shift.position, shift.item("again").input["shown"]) == (
        ("planning", "broken"),
        {"detail": "p-first"},
    )
    assert not {i.job for s in shift.stored for i in s.entry.planned} - {"prepare", "measure", "again"}
    shift.advance("again", "measure")
    assert (shift.open_jobs(), shift.context.detail_ref) == (["draft"], "")


def test_a_base_that_became_red_while_the_task_was_at_work_stops_nothing():
    """Work that was paid for goes on: the suites of the change are held against the new base."""
    shift = SimulatedTask().advance_to("accept", "base")
    shift.finish("look_at_base", moved_base_facts())
    shift.advance_to("test").advance("measure_again", red=1)
    assert shift.open_jobs() == ["run_suites"]


def test_the_coder_is_given_what_a_failing_suite_printed():
    """Beside the report on disk there is the first suite that failed, with what it printed."""
    shift = SimulatedTask().advance_to("test", "work").advance("run_suites", failed=1, first_ref="p-first")
    shift.advance_to("test", "inspect").advance("inspect_tests", overall_pass=False)
    assert fixes(shift)[-1] == ("checks", "p-first")


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
    shift = SimulatedTask().advance_to("codegen", "work")
    shift.finish("code", coder_facts("t0", "plan_unclear"))
    shift.advance("record", "inspect_code")
    assert (shift.position, fixes(shift)) == (("plan_review", "work"), [("unclear", "p-coder")])
    shift.advance_to("codegen", "work")
    shift.finish("code", coder_facts("t0", "scope_mismatch"))
    shift.advance("record", "inspect_code")
    assert shift.position == ("planning", "work")
    assert fixes(shift) == [("code/files.json", "p-d-code/files.json"), ("scope", "p-coder")]


def test_nothing_was_changed():
    """An empty change is made again, with the reason."""
    shift = SimulatedTask().advance_to("codegen", "inspect").advance("inspect_code", copies=0)
    assert (shift.position, fixes(shift), shift.context.turn) == (("codegen", "work"), [("no-change", "")], 2)


def test_a_crew_builds_in_place_of_a_coder():
    """A child run goes round; what it approved is laid down, reviewed and tested here, and somebody looks at the evidence."""
    shift = SimulatedTask(codegen="roundtable").advance_to("codegen")
    asked = shift.item("crew").input
    assert (asked["machine"], asked["task_ref"]) == ("roundtable", shift.context.documents[PLAN])
    shift.finish("crew", ChildEnded("r.1", "canceled"))
    assert shift.position == ("codegen", "broken")
    shift.advance("again", "crew")
    assert (shift.position, shift.context.tree, shift.context.evidence) == (
        ("codegen", "record"), "t1", "touched",
    )  # fmt: skip
    shift.advance_to("test", "evidence")
    assert shift.open_jobs() == ["evidence"]


def test_changed_tests_are_accepted_by_a_person():
    """What decides about tests was changed: a pass of them is a question, bound to this very tree."""
    shift = (
        SimulatedTask().advance_to("codegen").advance("code", infrastructure=1, infrastructure_ref="p-infra")
    )
    shift.advance_to("test", "evidence")
    gate = shift.item("evidence").input
    assert (gate["digest"], gate["choices"]) == ("t1", ["approve", "rework"])
    assert gate["shown"] == {"changed": "p-infra", "patch": shift.context.documents["code/diff.patch"]}
    shift.advance("evidence")
    assert (shift.context.evidence, shift.context.accepted_tree, shift.context.accepted_by) == (
        "accepted", "t1", "ann",
    )  # fmt: skip
    shift.advance_to("accept", "deliver")
    assert shift.item("deliver").input["accepted_by"] == "ann"


def test_a_person_may_send_changed_tests_back():
    """The coder is told so, with what the person says."""
    shift = (
        SimulatedTask().advance_to("codegen").advance("code", infrastructure=1).advance_to("test", "evidence")
    )
    shift.advance("evidence", choice="rework", text="p-no")
    assert (shift.position, fixes(shift)) == (("codegen", "work"), [("evidence", "p-no")])


def test_new_results_are_accepted_anew():
    """What somebody accepted were results: when the suites run again on the same tree, they are asked again."""
    shift = SimulatedTask() .advance_to("codegen") .advance("code", infrastructure=1) .advance_to("test", "evidence") .advance(
        "evidence",
    )  # fmt: skip
    shift.advance_to("accept", "decide").advance("decide", choice="review").advance_to("test", "work")
    assert (shift.context.tree, shift.context.evidence) == ("t1", "accepted")
    shift.advance("run_suites", flaky=1)
    assert shift.context.evidence == "touched"
    shift.advance_to("test", "evidence").advance("evidence").advance_to("done")


def test_what_the_suites_counted_is_kept():
    """Counts, the tree they are about, and which commands failed; nothing that is nought."""
    shift = SimulatedTask() .advance_to("test") .advance(
        "run_suites", failed=1, failed_commands=("abc",), questions_ref="p-q",
    )  # fmt: skip
    assert shift.context.checks == {
        "passed": 1, "failed": 1, "tests": 3, "tree": "t1", "failed_commands": ["abc"],
    }  # fmt: skip
    assert (shift.context.results_ref, shift.context.evidence_ref) == ("p-results", "p-q")


def test_another_tree_voids_what_was_accepted():
    """The coder worked again: nobody has accepted anything about that."""
    shift = SimulatedTask() .advance_to("codegen") .advance("code", infrastructure=1) .advance_to("test", "evidence") .advance(
        "evidence",
    )  # fmt: skip
    shift.tell("redo_codegen")
    shift.advance("code")
    assert (shift.context.tree, shift.context.accepted_tree, shift.context.evidence) == ("t1", "", "plain")


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PHASES = ("planning", "plan_review", "codegen", "review", "test", "accept")


@for_each_case("phase", PHASES)
def test_a_damaged_file_stops_the_phase_until_it_is_put_back(phase):
    """Nothing is trusted; a person has it put back, everything is looked at again, and what was told is still shown."""
    shift = SimulatedTask().advance_to(phase, "inspect")
    look = shift.open_jobs()[0]
    shift.advance(look, damaged=1, told_ref="p-damage")
    gate = shift.open_jobs()[0]
    assert shift.position == (phase, "damaged")
    assert shift.item(gate).input["choices"] == ["restore"]
    assert shift.item(gate).input["shown"] == {"damage": "p-damage"}
    shift.advance(gate)
    assert shift.item("restore").input["told"] == "p-told"
    shift.advance("restore")
    assert shift.position == (phase, "inspect")
    assert (shift.context.told_ref, shift.context.detail_ref) == ("p-told", "")
    shift.advance(look)
    assert shift.state != phase or phase == "accept"


@for_each_case("phase", PHASES)
def test_what_cannot_be_put_back_is_told_and_looked_at_again(phase):
    """The files are looked at once more: still damaged, the person is told why it failed, and nothing can be waived."""
    shift = SimulatedTask().advance_to(phase, "inspect")
    look = shift.open_jobs()[0]
    shift.advance(look, damaged=1).advance()
    shift.finish("restore", RecordFacts(error_ref="p-folder"))
    assert (shift.position, shift.open_jobs()) == ((phase, "inspect"), [look])
    shift.advance(look, damaged=1)
    assert shift.position == (phase, "damaged")
    assert shift.item(shift.open_jobs()[0]).input["shown"] == {"damage": "p-told", "failed": "p-folder"}
    assert all(
        isinstance(override_guard(MACHINE, shift.snapshot, to, "why"), StepRefused) for to in MACHINE.states
    )
    shift.advance().advance("restore")
    assert (shift.context.step, shift.context.repair_ref) == ("inspect", "")


def test_a_plan_that_was_changed_by_hand_may_be_taken_over():
    """Offered only where everything that is wrong is such a plan; what is taken over is what was seen."""
    shift = SimulatedTask().advance_to("planning", "inspect")
    seen = {**shift.context.artifacts, PLAN: "by-hand"}
    shift.advance("inspect_plan", seen=seen, damaged=1, adoptable=1)
    assert shift.item("damaged_plan").input["choices"] == ["restore", "adopt"]
    shift.advance("damaged_plan", choice="adopt")
    assert shift.item("adopt").input["seen"] == seen
    shift.finish("adopt", RecordFacts(written={PLAN: "by-hand"}, refs={PLAN: "p-hand"}, told_ref="p-new"))
    assert (shift.position, shift.context.artifacts[PLAN]) == (("planning", "inspect"), "by-hand")
    assert SCOPE in shift.context.artifacts


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
    shift = SimulatedTask().advance_to("planning", "inspect").advance("inspect_plan", **facts)
    assert shift.item("damaged_plan").input["choices"] == ["restore"]


@for_each_case("phase", PHASES)
def test_documents_that_cannot_be_laid_down_are_told(phase):
    """A full disk stops the phase, with the reason; another try lays down the same, and nobody has to work again."""
    shift = SimulatedTask(**TWO).advance_to(phase, "record")
    asked = shift.item("record").input
    shift.finish("record", RecordFacts(error_ref="p-full"))
    assert (shift.position, shift.context.detail_ref) == ((phase, "unwritten"), "p-full")
    assert shift.open_jobs() == ["again"]
    shift.advance("again")
    assert (shift.position, shift.open_jobs(), shift.item("record").input) == (
        (phase, "record"), ["record"], asked,
    )  # fmt: skip
    shift.advance_to("done")


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
    shift = SimulatedTask().advance_to("accept", "decide")
    gate = shift.item("decide").input
    assert gate["choices"] == ["approve", "rework", "review", "replan", "revert"]
    assert set(gate["shown"]) == {"diff.patch", "plan-review.json", "code-review.json", "report.json"}
    shift.advance("decide", choice=choice, reason="why not", text="p-why")
    told = shift.item("record").input
    assert (told["decision"], told["person"], told["reason"], told["tree"]) == (
        decision, "ann", "why not", "t1",
    )  # fmt: skip
    shift.advance("record")
    assert shift.position == ("accept", "inspect")
    shift.advance("inspect_decision")
    assert shift.position == to
    assert shift.context.notes == ["p-why"]
    assert shift.context.decisions.count == 1


def test_the_decision_is_bound_to_everything_that_is_accepted():
    """Another tree, another base or another byte of a document is another question."""
    shift = SimulatedTask().advance_to("accept", "decide")
    digest = shift.item("decide").input["digest"]
    again = SimulatedTask().advance_to("accept", "decide")
    assert again.item("decide").input["digest"] == digest
    again.advance("decide", choice="review").advance_to("test", "record")
    again.finish("record", record_facts("test", "other"))
    again.advance_to("accept", "decide")
    assert again.item("decide").input["digest"] != digest


def test_no_answer_is_no_approval():
    """A gate that ran out of time decides nothing: the task waits, and asks again."""
    shift = SimulatedTask().advance_to("accept", "decide")
    shift.finish("decide", task_gate_answer("", timed_out=True))
    assert shift.position == ("accept", "broken")
    shift.advance("again").advance("look_at_base")
    assert shift.open_jobs() == ["decide"]


def test_a_delivery_that_fails_is_told_and_decided_again():
    """Why the change is not there is shown with the next decision, after another look at the branch."""
    shift = SimulatedTask().advance_to("accept", "deliver")
    shift.finish("deliver", DeliveryFacts(detail_ref="p-moved"))
    assert (shift.position, shift.context.decision) == (("accept", "base"), "none")
    shift.advance("look_at_base")
    assert shift.item("decide").input["shown"]["detail"] == "p-moved"
    shift.advance_to("done")


def test_a_branch_that_moves_while_somebody_decides():
    """The delivery is refused, and the change goes through review and tests on the new base by itself."""
    shift = SimulatedTask(deliver="merge", target="main").advance_to("accept", "deliver")
    shift.finish("deliver", DeliveryFacts(detail_ref="p-moved"))
    shift.finish("look_at_base", moved_base_facts())
    assert (shift.position, shift.context.followed, shift.context.detail_ref) == (("review", "work"), 1, "")
    shift.advance_to("accept", "decide").advance_to("done")


def test_a_branch_that_has_moved_is_reviewed_and_tested_again():
    """The change on top of it is another tree, with documents of its own; nobody has accepted anything about it."""
    shift = SimulatedTask(deliver="merge", target="main").advance_to("accept", "base")
    asked = shift.item("look_at_base").input
    assert (asked["form"], asked["target"], asked["base"], asked["delivered"]) == ("merge", "main", "c0", "")
    shift.finish("look_at_base", moved_base_facts())
    c = shift.context
    assert (shift.position, c.base_commit, c.base_tree, c.commit, c.tree) == (
        ("review", "work"), "c9", "t9", "c-t8", "t8",
    )  # fmt: skip
    assert c.artifacts["code/diff.patch"] == "r-code/diff.patch"
    assert shift.item("review_code").input["texts"]["patch"] == "p-r-code/diff.patch"
    shift.advance_to("test")
    assert shift.open_jobs() == ["measure_again"]
    shift.advance_to("done")
    assert shift.context.delivered_tree == "t8"


def test_a_change_that_conflicts_is_made_again():
    """The coder begins on the branch as it is now, and is told where both have changed the same."""
    shift = SimulatedTask().advance_to("accept", "base")
    shift.finish("look_at_base", base_conflict_facts())
    c = shift.context
    assert (shift.position, c.base_commit, c.commit, c.tree) == (("codegen", "work"), "c9", "c9", "t9")
    assert fixes(shift) == [("base", "p-clash")]
    assert shift.open_jobs() == ["measure_again"]
    shift.advance("measure_again")
    assert shift.item("code").input["commit"] == "c9"


def test_a_branch_that_cannot_be_looked_at_is_told():
    """It is not taken for one that stands still, and the change stays what it is."""
    shift = SimulatedTask().advance_to("accept", "base")
    shift.finish("look_at_base", BaseFacts(error="workspace", told_ref="p-gone"))
    assert (shift.position, shift.context.tree, shift.context.base_commit) == (
        ("accept", "broken"), "t1", "c0",
    )  # fmt: skip
    assert shift.item("again").input["shown"]["detail"] == "p-gone"


def test_another_tree_is_never_decided_about():
    """However often the branch moves, what is decided about was reviewed and tested as it is."""
    shift = SimulatedTask(max_regressions=1)
    for n in range(4):
        shift.advance_to("accept", "base")
        shift.finish("look_at_base", moved_base_facts(tree=f"m{n}", commit=f"c-m{n}", base=f"b{n}"))
        assert shift.state == "review"
    shift.advance_to("accept", "decide")
    assert shift.context.checks["tree"] == shift.context.tree == "m3"


# ── revert and redo ─────────────────────────────────────────────────────────────────────────────────────────────────


def delivered(**request):
    return SimulatedTask(target="main", **request).advance_to("done")


def test_what_was_delivered_is_taken_back():
    """Reopened, decided, taken back by a commit of its own, recorded: the task has another outcome."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.advance("decide", choice="revert", reason="it broke").advance_to("revert", "work")
    asked = shift.item("take_back").input
    assert (asked["commit"], asked["target"], asked["person"]) == ("c-delivered", "main", "ann")
    shift.advance("take_back", commit="c-undone")
    told = shift.item("record").input
    assert (told["revert"], told["reverted"]) == ({"status": "reverted", "detail": ""}, "c-undone")
    shift.advance_to("done")
    assert (shift.context.outcome, shift.context.delivered) == ("reverted", "reverted")
    assert isinstance(shift.tell("redo_accept").refused, StepRefused)


@pytest.mark.parametrize("status", ["conflicted", "not_merged", "blocked"])
def test_what_cannot_be_taken_back_is_decided_again(status):
    """The record says why; nothing was changed, and the person decides otherwise."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.advance("decide", choice="revert").advance_to("revert", "work")
    shift.finish("take_back", RevertFacts(status=status, detail_ref="p-why"))
    assert shift.item("record").input["revert"] == {"status": status, "detail": "p-why"}
    shift.advance("record").advance("inspect_revert", status=status)
    assert (shift.position, shift.context.delivered) == (("accept", "decide"), "yes")
    shift.advance_to("done")
    assert (shift.events[-1], shift.context.outcome) == ("accepted", "accepted")


def test_there_may_be_nothing_to_take_back():
    """Nothing was delivered: the record says so, and the task is over."""
    shift = SimulatedTask() .advance_to("accept", "decide") .advance("decide", choice="revert") .advance_to(
        "revert", "record",
    )  # fmt: skip
    assert shift.item("record").input["revert"] == {"status": "nothing_delivered", "detail": ""}
    shift.advance("record").advance("inspect_revert", status="nothing_delivered")
    assert (shift.state, shift.context.outcome, shift.context.delivered) == ("done", "reverted", "no")


def test_a_reopened_task_delivers_what_it_made_next():
    """What was delivered before is no reason to skip the look at the branch: this is another tree."""
    shift = delivered()
    shift.tell("redo_codegen", "")
    assert shift.context.outcome is None
    shift.finish("code", coder_facts("t7"))
    shift.advance_to("accept", "base")
    assert shift.item("look_at_base").input["delivered"] == ""
    shift.advance_to("accept", "deliver").advance("deliver", commit="c-second")
    assert (shift.events[-1], shift.context.delivered_tree) == ("accepted", "t7")
    assert shift.context.deliveries == ["c-delivered", "c-second"]
    shift.tell("redo_accept")
    shift.advance("decide", choice="revert").advance_to("revert", "work")
    asked = shift.item("take_back").input
    assert (asked["commit"], asked["also"]) == ("c-second", ["c-delivered"])
    assert shift.advance_to("done").context.deliveries == []


def test_a_delivered_change_stays_accepted():
    """Reopened and approved once more: whoever hands it over is told that it was, and finds it there."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.finish("decide", task_gate_answer("", timed_out=True))
    shift.advance("again")
    assert shift.item("look_at_base").input["delivered"] == "c-delivered"
    shift.advance_to("accept", "deliver")
    asked = shift.item("deliver").input
    assert (asked["delivered"], asked["ref"]) == ("c-delivered", "refs/heads/main")
    shift.advance_to("done")
    assert (shift.events.count("accepted"), shift.context.deliveries) == (2, ["c-delivered"])


def test_a_delivery_that_was_lost_is_made_again():
    """What was handed over and is not there any more is a change like any other: looked at, decided, handed over."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.advance_to("accept", "deliver").advance("deliver", done=False, detail_ref="p-gone")
    assert (shift.position, shift.context.detail_ref) == (("accept", "base"), "p-gone")
    shift.advance("look_at_base", lost=True, told_ref="p-lost")
    assert (shift.position, shift.item("look_at_base").input["delivered"]) == (("accept", "base"), "")
    assert (shift.context.delivered, shift.context.detail_ref) == ("yes", "p-lost")
    shift.advance_to("accept", "deliver").advance("deliver", commit="c-again")
    assert (shift.state, shift.context.deliveries) == ("done", ["c-delivered", "c-again"])


def test_what_keeps_getting_lost_waits_for_a_person():
    """As often as anything else sends a task back, and no more."""
    shift = delivered(max_regressions=1)
    shift.tell("redo_codegen", "")
    shift.finish("code", coder_facts("t1"))
    shift.advance_to("accept", "base")
    for _ in range(2):
        shift.advance("look_at_base", lost=True)
    assert (shift.position, shift.open_jobs()) == (("accept", "broken"), ["again"])


def test_a_branch_that_has_it_all_leaves_nothing_to_accept():
    """An empty change waits for a person, who is told; looked at again, it may not be empty any more."""
    shift = SimulatedTask(deliver="merge", target="main").advance_to("accept", "base")
    shift.finish("look_at_base", BaseFacts(moved=True, absorbed=True, told_ref="p-there"))
    assert (shift.position, shift.open_jobs()) == (("accept", "broken"), ["again"])
    assert shift.item("again").input["shown"]["detail"] == "p-there"
    shift.advance("again")
    assert (shift.position, shift.context.detail_ref) == (("accept", "base"), "")


def test_another_try_at_the_tests_runs_them_again():
    """A report that is there already is not believed a second time."""
    shift = SimulatedTask(max_regressions=1) .advance_to("test", "inspect") .advance(
        "inspect_tests", overall_pass=False,
    )  # fmt: skip
    shift.advance_to("test", "inspect").advance("inspect_tests", overall_pass=False)
    assert shift.position == ("test", "stuck")
    shift.advance("again")
    assert (shift.position, shift.open_jobs()) == (("test", "work"), ["run_suites"])


# ── words, redo, overrides ──────────────────────────────────────────────────────────────────────────────────────────


def test_words_are_heard_by_whoever_works_next():
    """In planning they begin another draft; later they are kept, and nothing is interrupted."""
    shift = SimulatedTask().advance("prepare", "measure")
    shift.tell("words_given", "p-first")
    assert shift.item("draft").input["texts"]["note_1"] == "p-first"
    assert "note_1" in shift.item("draft").input["said"]
    shift.advance("draft")
    assert shift.context.notes == []
    shift.advance_to("plan_review", "work")
    before = shift.open_jobs()
    shift.tell("words_given", "p-second")
    assert (shift.open_jobs(), shift.context.notes) == (before, ["p-second"])
    shift.advance_to("codegen", "work")
    assert shift.item("code").input["texts"]["note_1"] == "p-second"
    for n in range(30):
        shift.tell("words_given", f"p-{n}")
    assert len(shift.context.notes) == 21
    assert shift.context.said.count == 32


def test_a_redo_of_planning_is_another_round():
    """It is counted, with or without words."""
    shift = SimulatedTask().advance_to("plan_review")
    shift.tell("redo_planning", "")
    assert (shift.position, shift.context.round, shift.context.notes) == (("planning", "work"), 2, [])
    shift.tell("redo_planning", "p-words")
    assert (shift.context.round, shift.context.notes) == (3, ["p-words"])


def test_an_override_takes_nobodys_opinion_along():
    """Who has judged the plan has not judged the change, also where the phases between were waived."""
    shift = SimulatedTask(pace="step").advance_to("review", "ready")
    shift.tell("redo_planning")
    shift.advance_to("plan_review", "ready").waive("codegen")
    shift.advance_to("codegen", "ready").waive("review")
    assert [i.input["role"] for i in shift.snapshot.items.values()] == ["reviewer"]
    assert shift.open_jobs() == ["review_code"]
    shift.advance_to("review", "ready").waive("test")
    assert shift.open_jobs() == ["run_suites"]
    shift.advance_to("test", "ready").waive("accept")
    shift.advance_to("done")
    assert [s.entry.kind for s in shift.stored].count("override") == 4


def test_a_failure_before_an_override_is_no_failure_after_it():
    """A planner who broke down does not make the reviewers of the plan broken."""
    shift = SimulatedTask(**THREE).advance_to("plan_review")
    shift.tell("redo_planning")
    shift.advance("draft")
    shift.finish("comment", failed_agent_facts())
    shift.advance("comment")
    assert shift.position == ("planning", "broken")
    shift.waive("plan_review")
    shift.advance("review_plan")
    assert shift.position == ("plan_review", "record")


def test_who_keeps_no_session_is_handed_none():
    """A call that brings no session leaves the one before in place, and says nothing of one that never was."""
    shift = SimulatedTask().advance_to("plan_review")
    shift.finish("review_plan", replace(reply_facts("reviewer"), session=""))
    assert shift.context.sessions == {"planner": "s-planner"}
    shift.advance_to("review")
    assert "session" not in shift.item("review_code").input
    shift.tell("redo_planning")
    assert shift.item("draft").input["session"] == "s-planner"


# ── tasks that come first ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_begins_after_others():
    """It looks at them before anything else, waits where one is missing, looks again, and begins on what they have left."""
    shift = SimulatedTask(after=["r-first", "r-other"])
    assert (shift.position, shift.open_jobs()) == (("planning", "others"), ["look_at_others"])
    assert shift.item("look_at_others").input["after"] == ["r-first", "r-other"]
    shift.finish("look_at_others", PrerequisiteFacts(missing=1, told_ref="p-who"))
    assert (shift.position, shift.open_jobs()) == (("planning", "waiting"), ["others"])
    assert shift.item("others").input["choices"] == ["retry", "begin"]
    assert shift.item("others").input["shown"] == {"others": "p-who"}
    shift.advance("others")
    assert shift.open_jobs() == ["look_at_others"]
    shift.advance("look_at_others")
    c = shift.context
    assert (c.base_commit, c.base_tree, c.others, c.detail_ref) == ("c5", "t5", "none", "")
    shift.advance("prepare", "measure")
    assert shift.item("draft").input["base"] == "c5"
    assert shift.advance_to("done").context.outcome == "accepted"


def test_nothing_but_a_reason_begins_without_them():
    """Words are kept, a redo looks again, an override is refused; a person's begin needs its reason, and leaves the base."""
    shift = SimulatedTask(after=["r-first"], base_commit="c0", base_tree="t0")
    shift.advance("look_at_others", missing=1)
    shift.tell("words_given")
    assert (shift.position, shift.context.notes) == (("planning", "waiting"), ["p-words"])
    shift.tell("redo_planning")
    assert (shift.position, shift.open_jobs()) == (("planning", "others"), ["look_at_others"])
    shift.advance("look_at_others", missing=1)
    assert isinstance(override_guard(MACHINE, shift.snapshot, "plan_review", "why"), StepRefused)
    shift.advance("others", choice="begin")
    assert shift.position == ("planning", "others")
    shift.advance("look_at_others", error="workspace", missing=0)
    shift.advance("others", choice="begin", reason="nothing in common")
    assert (shift.position, shift.open_jobs(), shift.context.others) == (
        ("planning", "work"), ["prepare"], "none",
    )  # fmt: skip
    assert shift.context.base_commit == "c0"


def test_no_task_comes_first_twice():
    """The same task is named once."""
    with pytest.raises(UserError, match="r-first, r-first names a task twice"):
        SimulatedTask(after=["r-first", "r-first"])


# ── a frozen plan ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_that_left_the_frozen_plan_is_not_built_upon():
    """The coder begins again where it began, told what was not taken; at the cap it waits, and nothing can be waived."""
    shift = SimulatedTask(bounds_ref="p-bounds", max_regressions=2).advance_to("codegen", "work")
    begun = shift.item("code").input["commit"]
    for turn in (1, 2):
        shift.finish("code", coder_facts(f"t-astray-{turn}"))
        shift.finish("record", record_facts("codegen", beyond=1, beyond_ref="p-beyond"))
        shift.advance("inspect_code")
        assert (shift.position, shift.events[-1]) == (("codegen", "work"), "bounds_left")
        asked = shift.item("code").input
        assert (asked["commit"], asked["must_fix"][0]["text"]) == (begun, "p-beyond")
    shift.finish("code", coder_facts("t-astray-3"))
    shift.finish("record", record_facts("codegen", beyond=1, beyond_ref="p-beyond"))
    shift.advance("inspect_code")
    assert shift.position == ("codegen", "stuck")
    assert isinstance(override_guard(MACHINE, shift.snapshot, "review", "why"), StepRefused)
    shift.advance("again").advance("inspect_code")
    shift.finish("code", coder_facts("t-inside"))
    shift.finish("record", record_facts("codegen", beyond=0))
    shift.advance("inspect_code")
    assert (shift.state, shift.context.tree) == ("review", "t-inside")
