"""Task as stories: what each phase keeps, what sends it back, what a person says, what is decided and taken back."""

import pytest
from cases import for_each_case
from msgspec.structs import replace
from shift import ALL, Shift, answer, broke, clashed, coded, moved, said, wrote

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
    shift = Shift().until("done")
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
    assert sorted(c.artifacts) == sorted(name for name in ALL if name != "revert/record.json")
    assert sorted(c.documents) == sorted(name for name in c.artifacts if name != "code/files")
    assert (c.outcome, c.delivered, c.delivered_tree, c.delivered_commit) == (
        "accepted",
        "yes",
        "t1",
        "c-delivered",
    )
    assert (run_outcome(MACHINE, shift.snapshot), run_status_word(MACHINE, shift.snapshot)) == (
        "accepted",
        "done",
    )
    assert c.sessions == {"planner": "s-planner", "reviewer": "s-reviewer"}
    assert c.providers == {"planner": "scripted", "reviewer": "scripted", "coder": "scripted"}


def test_step_by_step_a_person_says_next():
    """With the pace `step` every phase waits at a gate about exactly what was seen; next looks once more and goes on."""
    shift = Shift(pace="step")
    for phase in ("planning", "plan_review", "codegen", "review", "test"):
        shift.until(phase, "ready")
        assert shift.open() == ["next"]
        assert shift.item("next").input["choices"] == ["approve", "rework"]
        assert shift.item("next").input["shown"] == {"told": "p-told"}
        shift.on("next")
        assert shift.where == (phase, "confirmed")
    shift.until("done")
    assert shift.events.count("phase_ready") == 5
    assert shift.events.count("next_requested") == 5


def test_what_has_changed_since_it_was_shown_is_shown_again():
    """Between the gate and the second look a document became another one: nothing goes on that nobody has seen."""
    shift = Shift(pace="step").until("planning", "ready")
    before = shift.item("next").input["digest"]
    shift.on("next")
    shift.on("inspect_plan", seen={**shift.context.artifacts, PLAN: "another"})
    assert shift.where == ("planning", "ready")
    assert shift.item("next").input["digest"] != before


def test_rework_does_the_phase_again():
    """A person who wants it done again is heard by whoever does it."""
    shift = Shift(pace="step").until("codegen", "ready")
    shift.on("next", choice="rework", text="p-rework")
    assert shift.where == ("codegen", "work")
    assert shift.item("code").input["texts"]["note_1"] == "p-rework"
    shift.until("codegen", "ready").on("next", choice="rework", text="")
    assert shift.context.notes == []


# ── planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_planners_settle_a_plan():
    """One drafts, the others look at it; what they have to settle is another round; then it is laid down."""
    shift = Shift(**THREE).on("prepare", "measure")
    assert shift.open() == ["draft"]
    shift.on("draft")
    assert sorted(i.input["role"] for i in shift.snapshot.items.values()) == ["second", "third"]
    assert shift.item("comment").input["texts"]["draft"] == "p-lead"
    shift.finish("comment", said("second", ready=False, concerns=1, blocking=0))
    shift.on("comment")
    assert (shift.events[-1], shift.where, shift.context.round) == ("round_needed", ("planning", "work"), 2)
    texts = shift.item("draft").input["texts"]
    assert (texts["comment_of_second"], texts["comment_of_third"]) == ("p-second", "p-third")
    shift.on("draft")
    assert shift.context.comments == {}
    shift.on("comment", "comment")
    assert shift.where == ("planning", "record")
    assert shift.item("record").input["comments"] == {"second": "p-second", "third": "p-third"}


def test_planners_who_never_agree_wait_for_a_person():
    """After the last round a person is asked; another try drafts again, and it may go on for as long again."""
    shift = Shift(**THREE, max_rounds=1).on("prepare", "measure")
    for _ in range(2):
        shift.on("draft")
        shift.finish("comment", said("second", ready=False))
        shift.on("comment")
    assert shift.where == ("planning", "broken")
    shift.on("again")
    assert shift.where == ("planning", "work")
    assert shift.snapshot.counts.get("rounds", 0) == 0


def test_a_planner_who_breaks_down_costs_no_phase():
    """One of several who does not answer is counted; when nobody is awaited any more a person is asked."""
    shift = Shift(**THREE).on("prepare", "measure", "draft")
    shift.finish("comment", broke())
    assert (shift.events[-1], shift.context.failures) == ("plan_commented", {"comments": 1})
    shift.on("comment")
    assert (shift.events[-1], shift.where) == ("agent_failed", ("planning", "broken"))
    shift.on("again")
    assert (shift.where, shift.context.failures) == (("planning", "work"), {})
    shift.on("draft").on("comment", "comment")
    assert shift.where == ("planning", "record")


@pytest.mark.parametrize("facts", [broke(), AgentFacts(text_ref="p-odd", problems_ref="p-detail")])
def test_a_draft_that_never_came_is_told(facts):
    """What broke is shown at the gate, and the work is done again."""
    shift = Shift().on("prepare", "measure")
    shift.finish("draft", facts)
    assert shift.where == ("planning", "broken")
    assert shift.item("again").input["shown"] == {"detail": "p-detail"}


def test_a_person_answers_what_the_plan_asks():
    """Open questions go to a person; the answer belongs to the plan that asked, and the planner drafts with it."""
    shift = Shift().until("planning", "inspect").on("inspect_plan", blocking=2)
    gate = shift.item("questions").input
    assert (gate["choices"], gate["shown"]) == (["answer"], {"questions": "p-told"})
    shift.on("questions", text="p-answer")
    asked = {"text": "p-answer", "plan": shift.context.artifacts[PLAN]}
    assert (shift.context.answers, shift.context.round) == ([asked], 2)
    assert shift.item("draft").input["texts"]["note_1"] == "p-answer"
    assert shift.item("draft").input["texts"]["plan"] == shift.context.documents[PLAN]
    shift.until("planning", "record")
    assert shift.item("record").input["answers"] == [asked]


def test_a_plan_without_files_is_drafted_again():
    """The planner is told to name them; after the last round a person is asked, and everything is looked at again."""
    shift = Shift(max_rounds=1).until("planning", "inspect").on("inspect_plan", files=0)
    assert fixes(shift) == [("scope", "")]
    shift.until("planning", "inspect").on("inspect_plan", files=0)
    assert shift.where == ("planning", "stuck")
    shift.on("again")
    assert shift.where == ("planning", "confirmed")


def test_a_scope_that_is_taken_away_is_not_looked_for():
    """A plan that no longer names a file takes its scope with it: neither its digest nor its text is kept."""
    shift = Shift().until("plan_review")
    assert SCOPE in shift.context.artifacts
    shift.tell("redo_planning")
    shift.until("planning", "record")
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
    shift = Shift(**TWO).until(phase)
    assert sorted(i.input["role"] for i in shift.snapshot.items.values()) == ["one", "two"]
    shift.on(job)
    assert list(getattr(shift.context, kept)) == ["one"]
    shift.finish(job, broke())
    assert shift.where == (phase, "broken")
    shift.on("again")
    assert [i.input["role"] for i in shift.snapshot.items.values()] == ["two"]
    shift.on(job)
    assert shift.where == (phase, "record")
    assert shift.item("record").input["opinions"] == {"one": "p-one", "two": "p-two"}


@pytest.mark.parametrize(("phase", "job"), [("plan_review", "review_plan"), ("review", "review_code")])
def test_the_first_reviewer_may_break_down(phase, job):
    """The others are waited for and kept; then a person is asked, what broke is named, and it alone is asked again."""
    shift = Shift(**TWO).until(phase)
    shift.finish(job, broke(detail_ref="", problems_ref="p-problems"))
    assert (shift.state, shift.context.detail_ref) == (phase, "p-problems")
    shift.on(job)
    assert (shift.where, shift.context.failures) == ((phase, "broken"), {})
    assert shift.item("again").input["shown"]["detail"] == "p-problems"
    shift.on("again")
    assert [i.input["role"] for i in shift.snapshot.items.values()] == ["one"]
    shift.on(job)
    assert shift.where == (phase, "record")
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
    shift = Shift().until(phase, "inspect").on(look, **changed)
    assert shift.where == (to, "work")
    assert fixes(shift) == [(points, shift.context.documents[points])]
    assert (shift.context.plan_opinions, shift.context.code_opinions) == ({}, {})
    job = {"planning": "draft", "codegen": "code"}[to]
    assert shift.item(job).input["must_fix"] == shift.context.must_fix


# ── code and tests ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tree_that_cannot_be_set_up_is_told():
    """The work is done again when a person says so, setup first."""
    shift = Shift()
    shift.finish("prepare", SetupFacts(detail_ref="p-setup"))
    shown = shift.item("again").input["shown"]
    assert (shift.where, shown) == (("planning", "broken"), {"detail": "p-setup"})
    shift.on("again")
    assert shift.open() == ["prepare"]


@pytest.mark.parametrize("changed", [{"red": 1}, {"unstarted": 1}])
def test_no_planner_is_asked_on_a_base_that_is_not_green(changed):
    """The task waits with the reason; another try checks the base tree again, and a green one is planned on."""
    shift = Shift().on("prepare", "measure", **changed, first_ref="p-first")
    assert (shift.where, shift.item("again").input["shown"]) == (
        ("planning", "broken"),
        {"detail": "p-first"},
    )
    assert not {i.job for s in shift.stored for i in s.entry.planned} - {"prepare", "measure", "again"}
    shift.on("again", "measure")
    assert (shift.open(), shift.context.detail_ref) == (["draft"], "")


def test_a_base_that_became_red_while_the_task_was_at_work_stops_nothing():
    """Work that was paid for goes on: the suites of the change are held against the new base."""
    shift = Shift().until("accept", "base")
    shift.finish("look_at_base", moved())
    shift.until("test").on("measure_again", red=1)
    assert shift.open() == ["run_suites"]


def test_the_coder_is_given_what_a_failing_suite_printed():
    """Beside the report on disk there is the first suite that failed, with what it printed."""
    shift = Shift().until("test", "work").on("run_suites", failed=1, first_ref="p-first")
    shift.until("test", "inspect").on("inspect_tests", overall_pass=False)
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
    shift = Shift().until("codegen", "work")
    shift.finish("code", coded("t0", "plan_unclear"))
    shift.on("record", "inspect_code")
    assert (shift.where, fixes(shift)) == (("plan_review", "work"), [("unclear", "p-coder")])
    shift.until("codegen", "work")
    shift.finish("code", coded("t0", "scope_mismatch"))
    shift.on("record", "inspect_code")
    assert shift.where == ("planning", "work")
    assert fixes(shift) == [("code/files.json", "p-d-code/files.json"), ("scope", "p-coder")]


def test_nothing_was_changed():
    """An empty change is made again, with the reason."""
    shift = Shift().until("codegen", "inspect").on("inspect_code", copies=0)
    assert (shift.where, fixes(shift), shift.context.turn) == (("codegen", "work"), [("no-change", "")], 2)


def test_a_crew_builds_in_place_of_a_coder():
    """A child run goes round; what it approved is laid down, reviewed and tested here, and somebody looks at the evidence."""
    shift = Shift(codegen="roundtable").until("codegen")
    asked = shift.item("crew").input
    assert (asked["machine"], asked["task_ref"]) == ("roundtable", shift.context.documents[PLAN])
    shift.finish("crew", ChildEnded("r.1", "canceled"))
    assert shift.where == ("codegen", "broken")
    shift.on("again", "crew")
    assert (shift.where, shift.context.tree, shift.context.evidence) == (
        ("codegen", "record"),
        "t1",
        "touched",
    )
    shift.until("test", "evidence")
    assert shift.open() == ["evidence"]


def test_changed_tests_are_accepted_by_a_person():
    """What decides about tests was changed: a pass of them is a question, bound to this very tree."""
    shift = Shift().until("codegen").on("code", infrastructure=1, infrastructure_ref="p-infra")
    shift.until("test", "evidence")
    gate = shift.item("evidence").input
    assert (gate["digest"], gate["choices"]) == ("t1", ["approve", "rework"])
    assert gate["shown"] == {"changed": "p-infra", "patch": shift.context.documents["code/diff.patch"]}
    shift.on("evidence")
    assert (shift.context.evidence, shift.context.accepted_tree, shift.context.accepted_by) == (
        "accepted",
        "t1",
        "ann",
    )
    shift.until("accept", "deliver")
    assert shift.item("deliver").input["accepted_by"] == "ann"


def test_a_person_may_send_changed_tests_back():
    """The coder is told so, with what the person says."""
    shift = Shift().until("codegen").on("code", infrastructure=1).until("test", "evidence")
    shift.on("evidence", choice="rework", text="p-no")
    assert (shift.where, fixes(shift)) == (("codegen", "work"), [("evidence", "p-no")])


def test_new_results_are_accepted_anew():
    """What somebody accepted were results: when the suites run again on the same tree, they are asked again."""
    shift = Shift().until("codegen").on("code", infrastructure=1).until("test", "evidence").on("evidence")
    shift.until("accept", "decide").on("decide", choice="review").until("test", "work")
    assert (shift.context.tree, shift.context.evidence) == ("t1", "accepted")
    shift.on("run_suites", flaky=1)
    assert shift.context.evidence == "touched"
    shift.until("test", "evidence").on("evidence").until("done")


def test_what_the_suites_counted_is_kept():
    """Counts, the tree they are about, and which commands failed; nothing that is nought."""
    shift = Shift().until("test").on("run_suites", failed=1, failed_commands=("abc",), questions_ref="p-q")
    assert shift.context.checks == {
        "passed": 1,
        "failed": 1,
        "tests": 3,
        "tree": "t1",
        "failed_commands": ["abc"],
    }
    assert (shift.context.results_ref, shift.context.evidence_ref) == ("p-results", "p-q")


def test_another_tree_voids_what_was_accepted():
    """The coder worked again: nobody has accepted anything about that."""
    shift = Shift().until("codegen").on("code", infrastructure=1).until("test", "evidence").on("evidence")
    shift.tell("redo_codegen")
    shift.on("code")
    assert (shift.context.tree, shift.context.accepted_tree, shift.context.evidence) == ("t1", "", "plain")


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PHASES = ("planning", "plan_review", "codegen", "review", "test", "accept")


@for_each_case("phase", PHASES)
def test_a_damaged_file_stops_the_phase_until_it_is_put_back(phase):
    """Nothing is trusted; a person has it put back, everything is looked at again, and what was told is still shown."""
    shift = Shift().until(phase, "inspect")
    look = shift.open()[0]
    shift.on(look, damaged=1, told_ref="p-damage")
    gate = shift.open()[0]
    assert shift.where == (phase, "damaged")
    assert shift.item(gate).input["choices"] == ["restore"]
    assert shift.item(gate).input["shown"] == {"damage": "p-damage"}
    shift.on(gate)
    assert shift.item("restore").input["told"] == "p-told"
    shift.on("restore")
    assert shift.where == (phase, "inspect")
    assert (shift.context.told_ref, shift.context.detail_ref) == ("p-told", "")
    shift.on(look)
    assert shift.state != phase or phase == "accept"


@for_each_case("phase", PHASES)
def test_what_cannot_be_put_back_is_told_and_looked_at_again(phase):
    """The files are looked at once more: still damaged, the person is told why it failed, and nothing can be waived."""
    shift = Shift().until(phase, "inspect")
    look = shift.open()[0]
    shift.on(look, damaged=1).on()
    shift.finish("restore", RecordFacts(error_ref="p-folder"))
    assert (shift.where, shift.open()) == ((phase, "inspect"), [look])
    shift.on(look, damaged=1)
    assert shift.where == (phase, "damaged")
    assert shift.item(shift.open()[0]).input["shown"] == {"damage": "p-told", "failed": "p-folder"}
    assert all(
        isinstance(override_guard(MACHINE, shift.snapshot, to, "why"), StepRefused) for to in MACHINE.states
    )
    shift.on().on("restore")
    assert (shift.context.step, shift.context.repair_ref) == ("inspect", "")


def test_a_plan_that_was_changed_by_hand_may_be_taken_over():
    """Offered only where everything that is wrong is such a plan; what is taken over is what was seen."""
    shift = Shift().until("planning", "inspect")
    seen = {**shift.context.artifacts, PLAN: "by-hand"}
    shift.on("inspect_plan", seen=seen, damaged=1, adoptable=1)
    assert shift.item("damaged_plan").input["choices"] == ["restore", "adopt"]
    shift.on("damaged_plan", choice="adopt")
    assert shift.item("adopt").input["seen"] == seen
    shift.finish("adopt", RecordFacts(written={PLAN: "by-hand"}, refs={PLAN: "p-hand"}, told_ref="p-new"))
    assert (shift.where, shift.context.artifacts[PLAN]) == (("planning", "inspect"), "by-hand")
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
    shift = Shift().until("planning", "inspect").on("inspect_plan", **facts)
    assert shift.item("damaged_plan").input["choices"] == ["restore"]


@for_each_case("phase", PHASES)
def test_documents_that_cannot_be_laid_down_are_told(phase):
    """A full disk stops the phase, with the reason; another try lays down the same, and nobody has to work again."""
    shift = Shift(**TWO).until(phase, "record")
    asked = shift.item("record").input
    shift.finish("record", RecordFacts(error_ref="p-full"))
    assert (shift.where, shift.context.detail_ref) == ((phase, "unwritten"), "p-full")
    assert shift.open() == ["again"]
    shift.on("again")
    assert (shift.where, shift.open(), shift.item("record").input) == ((phase, "record"), ["record"], asked)
    shift.until("done")


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
    shift = Shift().until("accept", "decide")
    gate = shift.item("decide").input
    assert gate["choices"] == ["approve", "rework", "review", "replan", "revert"]
    assert set(gate["shown"]) == {"diff.patch", "plan-review.json", "code-review.json", "report.json"}
    shift.on("decide", choice=choice, reason="why not", text="p-why")
    told = shift.item("record").input
    assert (told["decision"], told["person"], told["reason"], told["tree"]) == (
        decision,
        "ann",
        "why not",
        "t1",
    )
    shift.on("record")
    assert shift.where == ("accept", "inspect")
    shift.on("inspect_decision")
    assert shift.where == to
    assert shift.context.notes == ["p-why"]
    assert shift.context.decisions.count == 1


def test_the_decision_is_bound_to_everything_that_is_accepted():
    """Another tree, another base or another byte of a document is another question."""
    shift = Shift().until("accept", "decide")
    digest = shift.item("decide").input["digest"]
    again = Shift().until("accept", "decide")
    assert again.item("decide").input["digest"] == digest
    again.on("decide", choice="review").until("test", "record")
    again.finish("record", wrote("test", "other"))
    again.until("accept", "decide")
    assert again.item("decide").input["digest"] != digest


def test_no_answer_is_no_approval():
    """A gate that ran out of time decides nothing: the task waits, and asks again."""
    shift = Shift().until("accept", "decide")
    shift.finish("decide", answer("", timed_out=True))
    assert shift.where == ("accept", "broken")
    shift.on("again").on("look_at_base")
    assert shift.open() == ["decide"]


def test_a_delivery_that_fails_is_told_and_decided_again():
    """Why the change is not there is shown with the next decision, after another look at the branch."""
    shift = Shift().until("accept", "deliver")
    shift.finish("deliver", DeliveryFacts(detail_ref="p-moved"))
    assert (shift.where, shift.context.decision) == (("accept", "base"), "none")
    shift.on("look_at_base")
    assert shift.item("decide").input["shown"]["detail"] == "p-moved"
    shift.until("done")


def test_a_branch_that_moves_while_somebody_decides():
    """The delivery is refused, and the change goes through review and tests on the new base by itself."""
    shift = Shift(deliver="merge", target="main").until("accept", "deliver")
    shift.finish("deliver", DeliveryFacts(detail_ref="p-moved"))
    shift.finish("look_at_base", moved())
    assert (shift.where, shift.context.followed, shift.context.detail_ref) == (("review", "work"), 1, "")
    shift.until("accept", "decide").until("done")


def test_a_branch_that_has_moved_is_reviewed_and_tested_again():
    """The change on top of it is another tree, with documents of its own; nobody has accepted anything about it."""
    shift = Shift(deliver="merge", target="main").until("accept", "base")
    asked = shift.item("look_at_base").input
    assert (asked["form"], asked["target"], asked["base"], asked["delivered"]) == (
        "merge",
        "main",
        "c0",
        "",
    )
    shift.finish("look_at_base", moved())
    c = shift.context
    assert (shift.where, c.base_commit, c.base_tree, c.commit, c.tree) == (
        ("review", "work"),
        "c9",
        "t9",
        "c-t8",
        "t8",
    )
    assert c.artifacts["code/diff.patch"] == "r-code/diff.patch"
    assert shift.item("review_code").input["texts"]["patch"] == "p-r-code/diff.patch"
    shift.until("test")
    assert shift.open() == ["measure_again"]
    shift.until("done")
    assert shift.context.delivered_tree == "t8"


def test_a_change_that_conflicts_is_made_again():
    """The coder begins on the branch as it is now, and is told where both have changed the same."""
    shift = Shift().until("accept", "base")
    shift.finish("look_at_base", clashed())
    c = shift.context
    assert (shift.where, c.base_commit, c.commit, c.tree) == (("codegen", "work"), "c9", "c9", "t9")
    assert fixes(shift) == [("base", "p-clash")]
    assert shift.open() == ["measure_again"]
    shift.on("measure_again")
    assert shift.item("code").input["commit"] == "c9"


def test_a_branch_that_cannot_be_looked_at_is_told():
    """It is not taken for one that stands still, and the change stays what it is."""
    shift = Shift().until("accept", "base")
    shift.finish("look_at_base", BaseFacts(error="workspace", told_ref="p-gone"))
    assert (shift.where, shift.context.tree, shift.context.base_commit) == (("accept", "broken"), "t1", "c0")
    assert shift.item("again").input["shown"]["detail"] == "p-gone"


def test_another_tree_is_never_decided_about():
    """However often the branch moves, what is decided about was reviewed and tested as it is."""
    shift = Shift(max_regressions=1)
    for n in range(4):
        shift.until("accept", "base")
        shift.finish("look_at_base", moved(tree=f"m{n}", commit=f"c-m{n}", base=f"b{n}"))
        assert shift.state == "review"
    shift.until("accept", "decide")
    assert shift.context.checks["tree"] == shift.context.tree == "m3"


# ── revert and redo ─────────────────────────────────────────────────────────────────────────────────────────────────


def delivered(**request):
    return Shift(target="main", **request).until("done")


def test_what_was_delivered_is_taken_back():
    """Reopened, decided, taken back by a commit of its own, recorded: the task has another outcome."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.on("decide", choice="revert", reason="it broke").until("revert", "work")
    asked = shift.item("take_back").input
    assert (asked["commit"], asked["target"], asked["person"]) == ("c-delivered", "main", "ann")
    shift.on("take_back", commit="c-undone")
    told = shift.item("record").input
    assert (told["revert"], told["reverted"]) == ({"status": "reverted", "detail": ""}, "c-undone")
    shift.until("done")
    assert (shift.context.outcome, shift.context.delivered) == ("reverted", "reverted")
    assert isinstance(shift.tell("redo_accept").refused, StepRefused)


@pytest.mark.parametrize("status", ["conflicted", "not_merged", "blocked"])
def test_what_cannot_be_taken_back_is_decided_again(status):
    """The record says why; nothing was changed, and the person decides otherwise."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.on("decide", choice="revert").until("revert", "work")
    shift.finish("take_back", RevertFacts(status=status, detail_ref="p-why"))
    assert shift.item("record").input["revert"] == {"status": status, "detail": "p-why"}
    shift.on("record").on("inspect_revert", status=status)
    assert (shift.where, shift.context.delivered) == (("accept", "decide"), "yes")
    shift.until("done")
    assert (shift.events[-1], shift.context.outcome) == ("accepted", "accepted")


def test_there_may_be_nothing_to_take_back():
    """Nothing was delivered: the record says so, and the task is over."""
    shift = Shift().until("accept", "decide").on("decide", choice="revert").until("revert", "record")
    assert shift.item("record").input["revert"] == {"status": "nothing_delivered", "detail": ""}
    shift.on("record").on("inspect_revert", status="nothing_delivered")
    assert (shift.state, shift.context.outcome, shift.context.delivered) == ("done", "reverted", "no")


def test_a_reopened_task_delivers_what_it_made_next():
    """What was delivered before is no reason to skip the look at the branch: this is another tree."""
    shift = delivered()
    shift.tell("redo_codegen", "")
    assert shift.context.outcome is None
    shift.finish("code", coded("t7"))
    shift.until("accept", "base")
    assert shift.item("look_at_base").input["delivered"] == ""
    shift.until("accept", "deliver").on("deliver", commit="c-second")
    assert (shift.events[-1], shift.context.delivered_tree) == ("accepted", "t7")
    assert shift.context.deliveries == ["c-delivered", "c-second"]
    shift.tell("redo_accept")
    shift.on("decide", choice="revert").until("revert", "work")
    asked = shift.item("take_back").input
    assert (asked["commit"], asked["also"]) == ("c-second", ["c-delivered"])
    assert shift.until("done").context.deliveries == []


def test_a_delivered_change_stays_accepted():
    """Reopened and approved once more: whoever hands it over is told that it was, and finds it there."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.finish("decide", answer("", timed_out=True))
    shift.on("again")
    assert shift.item("look_at_base").input["delivered"] == "c-delivered"
    shift.until("accept", "deliver")
    asked = shift.item("deliver").input
    assert (asked["delivered"], asked["ref"]) == ("c-delivered", "refs/heads/main")
    shift.until("done")
    assert (shift.events.count("accepted"), shift.context.deliveries) == (2, ["c-delivered"])


def test_a_delivery_that_was_lost_is_made_again():
    """What was handed over and is not there any more is a change like any other: looked at, decided, handed over."""
    shift = delivered()
    shift.tell("redo_accept")
    shift.until("accept", "deliver").on("deliver", done=False, detail_ref="p-gone")
    assert (shift.where, shift.context.detail_ref) == (("accept", "base"), "p-gone")
    shift.on("look_at_base", lost=True, told_ref="p-lost")
    assert (shift.where, shift.item("look_at_base").input["delivered"]) == (("accept", "base"), "")
    assert (shift.context.delivered, shift.context.detail_ref) == ("yes", "p-lost")
    shift.until("accept", "deliver").on("deliver", commit="c-again")
    assert (shift.state, shift.context.deliveries) == ("done", ["c-delivered", "c-again"])


def test_what_keeps_getting_lost_waits_for_a_person():
    """As often as anything else sends a task back, and no more."""
    shift = delivered(max_regressions=1)
    shift.tell("redo_codegen", "")
    shift.finish("code", coded("t1"))
    shift.until("accept", "base")
    for _ in range(2):
        shift.on("look_at_base", lost=True)
    assert (shift.where, shift.open()) == (("accept", "broken"), ["again"])


def test_a_branch_that_has_it_all_leaves_nothing_to_accept():
    """An empty change waits for a person, who is told; looked at again, it may not be empty any more."""
    shift = Shift(deliver="merge", target="main").until("accept", "base")
    shift.finish("look_at_base", BaseFacts(moved=True, absorbed=True, told_ref="p-there"))
    assert (shift.where, shift.open()) == (("accept", "broken"), ["again"])
    assert shift.item("again").input["shown"]["detail"] == "p-there"
    shift.on("again")
    assert (shift.where, shift.context.detail_ref) == (("accept", "base"), "")


def test_another_try_at_the_tests_runs_them_again():
    """A report that is there already is not believed a second time."""
    shift = Shift(max_regressions=1).until("test", "inspect").on("inspect_tests", overall_pass=False)
    shift.until("test", "inspect").on("inspect_tests", overall_pass=False)
    assert shift.where == ("test", "stuck")
    shift.on("again")
    assert (shift.where, shift.open()) == (("test", "work"), ["run_suites"])


# ── words, redo, overrides ──────────────────────────────────────────────────────────────────────────────────────────


def test_words_are_heard_by_whoever_works_next():
    """In planning they begin another draft; later they are kept, and nothing is interrupted."""
    shift = Shift().on("prepare", "measure")
    shift.tell("words_given", "p-first")
    assert shift.item("draft").input["texts"]["note_1"] == "p-first"
    assert "note_1" in shift.item("draft").input["said"]
    shift.on("draft")
    assert shift.context.notes == []
    shift.until("plan_review", "work")
    before = shift.open()
    shift.tell("words_given", "p-second")
    assert (shift.open(), shift.context.notes) == (before, ["p-second"])
    shift.until("codegen", "work")
    assert shift.item("code").input["texts"]["note_1"] == "p-second"
    for n in range(30):
        shift.tell("words_given", f"p-{n}")
    assert len(shift.context.notes) == 21
    assert shift.context.said.count == 32


def test_a_redo_of_planning_is_another_round():
    """It is counted, with or without words."""
    shift = Shift().until("plan_review")
    shift.tell("redo_planning", "")
    assert (shift.where, shift.context.round, shift.context.notes) == (("planning", "work"), 2, [])
    shift.tell("redo_planning", "p-words")
    assert (shift.context.round, shift.context.notes) == (3, ["p-words"])


def test_an_override_takes_nobodys_opinion_along():
    """Who has judged the plan has not judged the change, also where the phases between were waived."""
    shift = Shift(pace="step").until("review", "ready")
    shift.tell("redo_planning")
    shift.until("plan_review", "ready").waive("codegen")
    shift.until("codegen", "ready").waive("review")
    assert [i.input["role"] for i in shift.snapshot.items.values()] == ["reviewer"]
    assert shift.open() == ["review_code"]
    shift.until("review", "ready").waive("test")
    assert shift.open() == ["run_suites"]
    shift.until("test", "ready").waive("accept")
    shift.until("done")
    assert [s.entry.kind for s in shift.stored].count("override") == 4


def test_a_failure_before_an_override_is_no_failure_after_it():
    """A planner who broke down does not make the reviewers of the plan broken."""
    shift = Shift(**THREE).until("plan_review")
    shift.tell("redo_planning")
    shift.on("draft")
    shift.finish("comment", broke())
    shift.on("comment")
    assert shift.where == ("planning", "broken")
    shift.waive("plan_review")
    shift.on("review_plan")
    assert shift.where == ("plan_review", "record")


def test_who_keeps_no_session_is_handed_none():
    """A call that brings no session leaves the one before in place, and says nothing of one that never was."""
    shift = Shift().until("plan_review")
    shift.finish("review_plan", replace(said("reviewer"), session=""))
    assert shift.context.sessions == {"planner": "s-planner"}
    shift.until("review")
    assert "session" not in shift.item("review_code").input
    shift.tell("redo_planning")
    assert shift.item("draft").input["session"] == "s-planner"


# ── tasks that come first ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_begins_after_others():
    """It looks at them before anything else, waits where one is missing, looks again, and begins on what they have left."""
    shift = Shift(after=["r-first", "r-other"])
    assert (shift.where, shift.open()) == (("planning", "others"), ["look_at_others"])
    assert shift.item("look_at_others").input["after"] == ["r-first", "r-other"]
    shift.finish("look_at_others", PrerequisiteFacts(missing=1, told_ref="p-who"))
    assert (shift.where, shift.open()) == (("planning", "waiting"), ["others"])
    assert shift.item("others").input["choices"] == ["retry", "begin"]
    assert shift.item("others").input["shown"] == {"others": "p-who"}
    shift.on("others")
    assert shift.open() == ["look_at_others"]
    shift.on("look_at_others")
    c = shift.context
    assert (c.base_commit, c.base_tree, c.others, c.detail_ref) == ("c5", "t5", "none", "")
    shift.on("prepare", "measure")
    assert shift.item("draft").input["base"] == "c5"
    assert shift.until("done").context.outcome == "accepted"


def test_nothing_but_a_reason_begins_without_them():
    """Words are kept, a redo looks again, an override is refused; a person's begin needs its reason, and leaves the base."""
    shift = Shift(after=["r-first"], base_commit="c0", base_tree="t0")
    shift.on("look_at_others", missing=1)
    shift.tell("words_given")
    assert (shift.where, shift.context.notes) == (("planning", "waiting"), ["p-words"])
    shift.tell("redo_planning")
    assert (shift.where, shift.open()) == (("planning", "others"), ["look_at_others"])
    shift.on("look_at_others", missing=1)
    assert isinstance(override_guard(MACHINE, shift.snapshot, "plan_review", "why"), StepRefused)
    shift.on("others", choice="begin")
    assert shift.where == ("planning", "others")
    shift.on("look_at_others", error="workspace", missing=0)
    shift.on("others", choice="begin", reason="nothing in common")
    assert (shift.where, shift.open(), shift.context.others) == (("planning", "work"), ["prepare"], "none")
    assert shift.context.base_commit == "c0"


def test_no_task_comes_first_twice():
    """The same task is named once."""
    with pytest.raises(UserError, match="r-first, r-first names a task twice"):
        Shift(after=["r-first", "r-first"])


# ── a frozen plan ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_that_left_the_frozen_plan_is_not_built_upon():
    """The coder begins again where it began, told what was not taken; at the cap it waits, and nothing can be waived."""
    shift = Shift(bounds_ref="p-bounds", max_regressions=2).until("codegen", "work")
    begun = shift.item("code").input["commit"]
    for turn in (1, 2):
        shift.finish("code", coded(f"t-astray-{turn}"))
        shift.finish("record", wrote("codegen", beyond=1, beyond_ref="p-beyond"))
        shift.on("inspect_code")
        assert (shift.where, shift.events[-1]) == (("codegen", "work"), "bounds_left")
        asked = shift.item("code").input
        assert (asked["commit"], asked["must_fix"][0]["text"]) == (begun, "p-beyond")
    shift.finish("code", coded("t-astray-3"))
    shift.finish("record", wrote("codegen", beyond=1, beyond_ref="p-beyond"))
    shift.on("inspect_code")
    assert shift.where == ("codegen", "stuck")
    assert isinstance(override_guard(MACHINE, shift.snapshot, "review", "why"), StepRefused)
    shift.on("again").on("inspect_code")
    shift.finish("code", coded("t-inside"))
    shift.finish("record", wrote("codegen", beyond=0))
    shift.on("inspect_code")
    assert (shift.state, shift.context.tree) == ("review", "t-inside")
