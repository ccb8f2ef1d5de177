"""Roundtable as stories: what a follow-up forgets, what a confirmation needs, where rounds end, what an abort leaves."""

import msgspec
import pytest
from tests.support.cases import for_each_case
from tests.support.simulated_roundtable import (
    START_TIME,
    SimulatedRun,
    agent_facts,
    approval_facts,
    baseline_facts,
    building_run,
    change_facts,
    change_request_facts,
    check_facts,
    checking_run,
    command_facts,
    delivery_facts,
    failed_check_facts,
    finish_setup,
    gate_answer,
    infrastructure_change_facts,
    proposed_run,
    setup_facts,
)

from steersman.contracts.facts import AgentFacts, BaseFacts, BaselineFacts, DeliveryFacts, SetupFacts
from steersman.errors import UserError
from steersman.kernel.definition import Origin
from steersman.kernel.record import StepMeta, advance_run, run_outcome, run_status_word
from steersman.kernel.replay import convert_context, rebuild_snapshot
from steersman.kernel.step import EventOccurrence
from steersman.machines.roundtable import MACHINE
from steersman.machines.roundtable.context import RevertRequested
from steersman.machines.roundtable.work import proposal_input


def test_a_discussion_becomes_a_contract_that_waits():
    """Proposal, review and test notes are bound under one digest, and a gate asks about exactly that."""
    tape = proposed_run()
    assert tape.events == [
        "task_received", "draft_proposal", "workspace_ready", "baseline_recorded", "roundtable_reviewer", "roundtable_tester", "discussion_complete",
        "await_operator_confirm",
    ]  # fmt: skip
    gate = tape.item("confirm")
    assert gate.input["digest"] == tape.context.contract_digest
    assert gate.input["choices"] == ["approve", "rework", "reject"]
    assert tape.context.contract["core_plan"] == "p-proposal"
    assert run_outcome(MACHINE, tape.snapshot) == "await_operator_confirm"
    assert run_status_word(MACHINE, tape.snapshot) == "waiting for you"


def test_a_confirmation_leads_into_the_implementation():
    """Approving the digest that waits starts the implementation, bound to it."""
    tape = proposed_run()
    tape.finish("confirm", gate_answer("approve", tape.context.contract_digest))
    assert tape.events[-3:] == ["task_followup_received", "implementation_confirmed", "start_coder"]
    assert (tape.context.phase, tape.context.confirmation) == ("implementation", "given")
    assert (tape.context.confirmed_digest, tape.context.confirmed_by) == (tape.context.contract_digest, "ann")
    assert tape.item("implement").input["contract_digest"] == tape.context.contract_digest


@pytest.mark.parametrize("digest", ["", "another"])
def test_a_confirmation_of_something_else_confirms_nothing(digest):
    """An approval of another digest goes back to the proposal: nothing is confirmed, nobody has confirmed it."""
    tape = proposed_run()
    tape.finish("confirm", gate_answer("approve", digest))
    assert tape.events[-1] == "draft_proposal"
    assert tape.context.confirmation == "none"
    assert (tape.context.confirmed_digest, tape.context.confirmed_by) == ("", "")
    tape.finish("prepare", setup_facts())
    assert tape.open_jobs() == ["propose"]


def test_an_approval_of_nothing_that_waits_confirms_nothing():
    """After an outcome of another kind an approving follow-up is a follow-up and no confirmation."""
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1", blocked=1))
    tape.send("task_followup_received", gate_answer("approve", ""))
    assert (tape.context.confirmation, tape.context.confirmed_by) == ("none", "")


def test_rework_is_a_proposal_again():
    """Rework asks the coder for another proposal, with the operator's words."""
    tape = proposed_run()
    tape.finish("confirm", gate_answer("rework", tape.context.contract_digest, text="p-words"))
    assert tape.events[-1] == "draft_proposal"
    tape.finish("prepare", setup_facts())
    assert tape.item("propose").input["texts"]["followup"] == "p-words"
    assert tape.context.contract_digest  # the old contract stays readable; a new discussion binds a new one


def test_a_rejected_proposal_is_canceled():
    """Rejecting the proposal ends the run as canceled, and the gate is gone."""
    tape = proposed_run()
    tape.finish("confirm", gate_answer("reject", tape.context.contract_digest))
    assert run_outcome(MACHINE, tape.snapshot) == "canceled"
    assert tape.open_jobs() == []
    assert run_status_word(MACHINE, tape.snapshot) == "stopped"


def test_a_follow_up_by_word_closes_the_gate():
    """A follow-up that does not go through the gate leaves no gate behind."""
    tape = proposed_run()
    tape.send("task_followup_received", gate_answer("approve", tape.context.contract_digest))
    assert tape.context.phase == "implementation"
    assert "confirm" not in tape.open_jobs()


def test_rounds_end_with_the_cap():
    """After the last iteration the machine itself says so, with what the last round came to."""
    tape = building_run(max_iterations=2)
    for n in (1, 2):
        tape.finish("implement", change_facts(f"t{n}"))
        tape.finish("review", change_request_facts("f-1"))
    assert tape.events[-1] == "max_iterations_reached"
    assert tape.context.outcome == "max_iterations_reached"
    assert tape.context.last_round_outcome == "review_changes_requested"
    assert tape.context.must_fix == [{"id": "f-1", "text": "p-f-1"}]


def test_a_follow_up_forgets_rounds_and_failures_but_no_budget():
    """Iterations and failure memory start afresh, spent budget stays, and the same check may fail once more."""
    tape = checking_run(max_iterations=1)
    spend(tape, "run_checks", failed_check_facts("t1", "unit"))
    assert tape.context.outcome == "max_iterations_reached"
    assert tape.context.failed_commands == ["unit"]
    spent = tape.snapshot.budget
    tape.send("task_followup_received", gate_answer("more", text="p-more"))
    assert (
        tape.context.round,
        tape.context.must_fix,
        tape.context.failed_commands,
        tape.context.failure_keys,
    ) == (0, [], [], [])
    assert tape.snapshot.counts == {}
    assert tape.snapshot.budget == spent == {"tokens": 7}
    tape.finish("prepare", setup_facts("t1"))
    checking_run("t2", tape)
    tape.finish("run_checks", failed_check_facts("t2", "unit"))
    assert tape.events[-2] == "tests_failed"  # not repeated: the follow-up has forgotten


def spend(tape, job, facts):
    item = tape.item(job)
    happened = EventOccurrence(MACHINE.events["tests_failed"], facts, Origin.EFFECT)
    done = advance_run(
        MACHINE, tape.snapshot, happened, StepMeta(START_TIME, closes=(item.id,), spent={"tokens": 7})
    )
    tape.stored += done.entries
    tape.snapshot = done.snapshot


def test_the_same_failure_twice_stops_the_run():
    """The same command failing in consecutive rounds ends the run at once, with its must-fix, without an iteration."""
    tape = checking_run()
    tape.finish("run_checks", failed_check_facts("t1", "unit"))
    checking_run("t2", tape)
    tape.finish("run_checks", failed_check_facts("t2", "unit", "lint"))
    assert tape.events[-1] == "repeated_test_failure"
    assert tape.context.must_fix[0]["text"] == "p-first"
    assert tape.snapshot.state == "finalize"


def test_blocked_commands_stop_the_run():
    """Some passed and the rest blocked is not a pass: the run ends as tester_command_blocked."""
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1", blocked=1))
    assert (tape.context.outcome, tape.snapshot.state) == ("tester_command_blocked", "finalize")


def test_no_commands_are_a_round_that_failed():
    """A tester who names no command costs a round, and the coder is told."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", approval_facts())
    tape.finish("ask_tester", command_facts(0))
    assert tape.context.last_round_outcome == "tester_schema_invalid"
    assert tape.item("implement").input["must_fix"][0]["id"] == "tester-reply"


def test_a_reply_that_breaks_its_contract_comes_before_a_failure_that_repeats():
    """A tester who cannot be understood has no command that could have failed again: the round is schema_invalid."""
    tape = checking_run()
    tape.finish("run_checks", failed_check_facts("t1", "unit"))
    tape.finish("implement", change_facts("t2"))
    tape.finish("review", approval_facts())
    tape.finish("ask_tester", agent_facts(problems_ref="p-problems"))
    assert tape.context.last_round_outcome == "tester_schema_invalid"
    assert tape.context.must_fix == [
        {"id": "tester-reply", "text": "p-problems", "why": "the tester's reply did not fit its contract"}
    ]


def test_a_coder_that_changes_nothing_costs_a_round():
    """No change is a failed round with that as must-fix, beside what was open."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", change_request_facts("f-1"))
    tape.finish("implement", change_facts("t1"))
    assert [i["id"] for i in tape.context.must_fix] == ["f-1", "no-change"]
    assert tape.context.last_round_outcome == "coder_changed_nothing"
    assert tape.context.round == 3


def test_a_tree_that_cannot_be_recorded_costs_a_round():
    """The must-fix says what is in the way, no session that tells of lost edits is kept, and a later tree ends the trouble."""
    tape = building_run()
    tape.finish("implement", AgentFacts(tree="t0", problems_ref="p-inside", session="s-1"))
    (item,) = tape.context.must_fix
    assert (item["id"], item["text"]) == ("not-recorded", "p-inside")
    assert (tape.context.round, tape.context.detail_ref, tape.context.sessions) == (2, "p-inside", {})
    tape.finish("implement", change_facts("t1"))
    assert tape.context.detail_ref == ""


def test_findings_are_followed_over_the_rounds():
    """A finding keeps its id: opened, still open, fixed, and the reviewer is reminded of the open ones."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", change_request_facts("f-1", "f-2"))
    tape.finish("implement", change_facts("t2"))
    assert [i["id"] for i in tape.item("review").input["must_fix"]] == ["f-1", "f-2"]
    tape.finish("review", change_request_facts("f-2", "f-3", fixed=("f-1",)))
    tape.finish("implement", change_facts("t3"))
    tape.finish("review", approval_facts())
    found = tape.context.findings
    assert {k: (f["state"], f["since"]) for k, f in found.items()} == {
        "f-1": ("fixed", 1), "f-2": ("fixed", 1), "f-3": ("fixed", 2),
    }  # fmt: skip
    assert (found["f-1"]["fixed"], found["f-2"]["fixed"]) == (2, 3)


def test_a_finding_that_nobody_calls_fixed_stays_open():
    """Silence fixes nothing: what the reviewer neither repeats nor calls fixed goes back to the coder with the rest."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", change_request_facts("f-1", "f-2"))
    tape.finish("implement", change_facts("t2"))
    tape.finish("review", change_request_facts("f-3"))
    assert [i["id"] for i in tape.item("implement").input["must_fix"]] == ["f-3", "f-1", "f-2"]
    assert {k: f["rounds"] for k, f in tape.context.findings.items()} == {"f-1": 2, "f-2": 2, "f-3": 1}


def test_a_finding_that_comes_back_is_open_again():
    """A finding that was fixed and is found once more counts from there."""
    tape = building_run(max_iterations=5)
    for tree, said_ in (
        ("t1", change_request_facts("f-1")),
        ("t2", change_request_facts("f-2", fixed=("f-1",))),
        ("t3", change_request_facts("f-1")),
    ):
        tape.finish("implement", change_facts(tree))
        tape.finish("review", said_)
    found = tape.context.findings["f-1"]
    assert (found["state"], found["since"], found["rounds"]) == ("open", 3, 1)


def test_the_same_finding_stops_the_run_while_iterations_remain():
    """A finding that stays open over the allowed reviews ends the run, with what, since when and what was tried."""
    tape = building_run(max_iterations=10, same_finding=2)
    for tree in ("t1", "t2"):
        tape.finish("implement", change_facts(tree))
        tape.finish("review", change_request_facts("f-1"))
    assert (tape.events[-1], tape.context.outcome) == ("finding_unresolved", "finding_unresolved")
    assert tape.context.last_round_outcome == "review_changes_requested"
    pack = tape.context.escalation
    assert pack["findings"] == [{"id": "f-1", "text": "p-f-1", "since": 1, "rounds": 2}]
    assert [t["tree"] for t in pack["tried"]] == ["t1", "t2"]
    assert pack["must_fix"] == tape.context.must_fix


def test_the_last_iteration_ends_by_the_iterations():
    """Where no iteration is left that is the reason, as the specification says; the pack is there all the same."""
    tape = building_run(max_iterations=2, same_finding=2)
    for tree in ("t1", "t2"):
        tape.finish("implement", change_facts(tree))
        tape.finish("review", change_request_facts("f-1"))
    assert tape.context.outcome == "max_iterations_reached"
    assert tape.context.escalation["findings"][0]["id"] == "f-1"


def test_a_follow_up_gives_an_open_finding_its_reviews_back():
    """After a person's word the same finding may stay open as often again; the reviewer is still told of it."""
    tape = building_run(max_iterations=9, same_finding=2)
    for tree in ("t1", "t2"):
        tape.finish("implement", change_facts(tree))
        tape.finish("review", change_request_facts("f-1"))
    tape.send("task_followup_received", gate_answer("more", text="p-more"))
    assert (tape.context.escalation, tape.context.tries) == ({}, [])
    tape.finish("prepare", setup_facts("t2"))
    tape.finish("implement", change_facts("t3"))
    assert [i["id"] for i in tape.item("review").input["must_fix"]] == ["f-1"]
    tape.finish("review", change_request_facts("f-1"))
    assert tape.context.outcome is None


def test_the_base_tree_is_checked_before_anything_is_built():
    """The project's checks run on the tree as it is, once for a run, and later checks are held against that."""
    tape = SimulatedRun(mode="implementation")
    tape.finish("prepare", setup_facts())
    assert tape.open_jobs() == ["measure"]
    assert tape.item("measure").input == {"commit": "c0", "tree": "t0"}
    tape.finish("measure", baseline_facts())
    assert tape.open_jobs() == ["implement"]
    checking_run("t1", tape)
    assert tape.item("run_checks").input["baseline"] == "p-base"
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("deliver", delivery_facts())
    tape.send("task_followup_received", gate_answer("more", text="p-more"))
    tape.finish("prepare", setup_facts("t1"))
    assert tape.open_jobs() == ["implement"]


@for_each_case("mode", ["proposal", "implementation"])
@for_each_case(
    ("facts", "reached"),
    [
        (baseline_facts(failed=1, red=1, first_ref="p-first"), "base_not_green"),
        (baseline_facts(failed=1, unstarted=1, first_ref="p-first"), "check_cannot_start"),
        (BaselineFacts(error="workspace", first_ref="p-first"), "check_cannot_start"),
    ],
)
def test_a_base_that_is_not_green_ends_the_run_before_any_agent(mode, facts, reached):
    """No agent is planned; the reason is kept, and a follow-up prepares and checks the base tree again."""
    tape = SimulatedRun(mode=mode)
    tape.finish("prepare", setup_facts())
    tape.finish("measure", facts)
    assert run_outcome(MACHINE, tape.snapshot) == reached
    assert (tape.context.detail_ref, tape.context.baseline) == ("p-first", "unmeasured")
    assert not {i.job for s in tape.stored for i in s.entry.planned} - {"prepare", "measure"}
    tape.send("task_followup_received", gate_answer("more", text="p-more"))
    tape.finish("prepare", setup_facts())
    assert tape.open_jobs() == ["measure"]


def test_a_run_that_is_to_fix_the_base_begins_on_a_red_one():
    """With red_base=fix failures stop nothing, a check that cannot start still does."""
    tape = SimulatedRun(red_base="fix")
    tape.finish("prepare", setup_facts())
    tape.finish("measure", baseline_facts(failed=1, red=1))
    assert tape.open_jobs() == ["propose"]
    unstarted = SimulatedRun(red_base="fix")
    unstarted.finish("prepare", setup_facts())
    unstarted.finish("measure", baseline_facts(failed=1, unstarted=1))
    assert run_outcome(MACHINE, unstarted.snapshot) == "check_cannot_start"


def test_a_run_of_before_begins_on_any_base():
    """A context of the time when a red base stopped nothing goes on as it would have."""
    tape = building_run()
    plain = rebuild_snapshot(tape.rows, tape.snapshot.run)
    old = {name: value for name, value in plain.context.items() if name != "red_base"}
    now = convert_context(MACHINE, msgspec.structs.replace(plain, context=old, context_version=3))
    assert (now.context.red_base, now.context_version) == ("fix", 4)


def test_changed_infrastructure_asks_a_person_before_anything_is_approved():
    """Everything passes, and nothing is approved: a gate shows what changed, bound to the tree."""
    tape = checking_run(left=infrastructure_change_facts("t1"))
    tape.finish("run_checks", check_facts("t1", questions_ref="p-questions"))
    gate = tape.item("evidence")
    assert (tape.context.outcome, tape.snapshot.state, tape.open_jobs()) == (None, "test", ["evidence"])
    assert (gate.input["digest"], gate.input["choices"]) == ("t1", ["approve", "rework", "reject"])
    assert gate.input["shown"] == {"changed": "p-conftest", "questions": "p-questions", "patch": "p-t1"}
    assert "default" not in gate.input
    assert run_status_word(MACHINE, tape.snapshot) == "waiting for you"


def test_an_accepted_change_is_approved_by_what_was_recorded():
    """Acceptance runs nothing again: the recorded results of this tree are recalled, and they pass."""
    tape = checking_run(left=infrastructure_change_facts("t1"))
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("evidence", gate_answer("approve", "t1"))
    assert tape.open_jobs() == ["recall"]
    assert tape.item("recall").input["results"] == "p-results"
    tape.finish("recall", check_facts("t1"))
    assert (tape.events[-1], tape.context.outcome) == ("tests_passed", "approved")
    assert tape.item("deliver").input["accepted_by"] == "ann"


def test_an_acceptance_is_void_when_the_tree_changes():
    """What a person accepted counts for that tree: after another round they are asked again, about the other tree."""
    tape = checking_run(left=infrastructure_change_facts("t1"))
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("evidence", gate_answer("approve", "t1"))
    tape.finish("recall", check_facts("t9"))  # the tree is not what was accepted
    assert tape.events[-2] == "tests_failed"
    checking_run("t2", tape, left=infrastructure_change_facts("t2"))
    assert (tape.context.evidence, tape.context.accepted_tree, tape.context.accepted_by) == ("none", "", "")
    tape.finish("run_checks", check_facts("t2"))
    assert tape.item("evidence").input["digest"] == "t2"
    tape.finish("evidence", gate_answer("approve", "t1"))
    assert (tape.events[-2], tape.context.outcome) == ("evidence_declined", None)


def test_rework_at_the_evidence_gate_is_a_round_with_the_persons_words():
    """The coder is told what is not accepted, and the infrastructure it puts back needs no gate."""
    tape = checking_run(left=infrastructure_change_facts("t1"))
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("evidence", gate_answer("rework", "t1", text="p-words"))
    assert tape.item("implement").input["must_fix"][0]["text"] == "p-words"
    assert tape.context.last_round_outcome == "evidence_declined"
    checking_run("t2", tape)
    assert tape.context.infrastructure == "untouched"
    tape.finish("run_checks", check_facts("t2"))
    assert tape.context.outcome == "approved"


def test_a_rejected_change_is_canceled():
    """Rejecting at the evidence gate ends the run as canceled."""
    tape = checking_run(left=infrastructure_change_facts("t1"))
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("evidence", gate_answer("reject", "t1"))
    assert (tape.context.outcome, tape.open_jobs()) == ("canceled", [])


@pytest.mark.parametrize("doubt", [{"missing": 1}, {"flaky": 1}, {"doubts": 1}])
def test_results_in_question_ask_a_person_too(doubt):
    """Vanished tests, a flaky check or words against its exit code open the same gate."""
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1", **doubt))
    assert (tape.context.outcome, tape.open_jobs()) == (None, ["evidence"])
    tape.finish("evidence", gate_answer("approve", "t1"))
    tape.finish("recall", check_facts("t1", **doubt))
    assert tape.context.outcome == "approved"


def test_a_reviewer_without_a_reply_stops_the_run():
    """A reviewer's reply that breaks its contract is the outcome, with the problems kept."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", agent_facts(problems_ref="p-problems"))
    assert (tape.context.outcome, tape.context.detail_ref) == ("review_schema_invalid", "p-problems")


@for_each_case("job", ["propose", "discuss_review", "discuss_test", "implement", "review", "ask_tester"])
def test_a_provider_error_stops_the_run_wherever_it_happens(job):
    """A provider that fails ends the run with its own outcome, from plan, build, review and test."""
    tape = (
        finish_setup(SimulatedRun())
        if job in ("propose", "discuss_review", "discuss_test")
        else building_run()
    )
    steps = {
        "propose": agent_facts(), "discuss_review": agent_facts(), "implement": change_facts("t1"),
        "review": approval_facts(),
    }  # fmt: skip
    while job not in tape.open_jobs():
        (now,) = tape.open_jobs()
        tape.finish(now, steps[now])
    tape.finish(job, agent_facts(error="provider_auth_error", detail_ref="p-detail"))
    assert (tape.context.outcome, tape.context.detail_ref) == ("provider_auth_error", "p-detail")
    assert tape.snapshot.state == "finalize"


def test_a_tree_that_cannot_be_made_ready_is_not_a_round():
    """A failing setup is an outcome of its own; no iteration is counted."""
    tape = SimulatedRun(mode="implementation")
    tape.finish("prepare", SetupFacts(detail_ref="p-why"))
    assert (tape.context.outcome, tape.context.detail_ref, tape.snapshot.counts) == (
        "setup_failed", "p-why", {},
    )  # fmt: skip


def test_an_approved_change_is_handed_over():
    """Checks that pass on the current tree approve it, and a branch needs no further gate."""
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1"))
    assert run_outcome(MACHINE, tape.snapshot) == "approved"
    assert run_status_word(MACHINE, tape.snapshot) == "working"
    tape.finish("deliver", delivery_facts())
    assert (tape.context.handover, tape.context.delivered_ref) == ("done", "refs/heads/steersman/x")
    assert run_status_word(MACHINE, tape.snapshot) == "done"


def test_a_merge_goes_through_a_gate_bound_to_the_tree():
    """With deliver=merge a person approves exactly this tree; otherwise the target stays as it is."""
    granted, declined = (checking_run(deliver="merge") for _ in range(2))
    for tape in (granted, declined):
        assert tape.open_jobs() == ["look_at_base"]
        tape.finish("look_at_base", BaseFacts())
        tape.finish("run_checks", check_facts("t1"))
        assert tape.open_jobs() == ["merge"]
        assert tape.item("merge").input["digest"] == "t1"
    granted.finish("merge", gate_answer("approve", "t1"))
    assert granted.open_jobs() == ["deliver"]
    granted.finish("deliver", DeliveryFacts(detail_ref="p-conflict"))
    assert (granted.context.handover, granted.context.detail_ref) == ("failed", "p-conflict")
    declined.finish("merge", gate_answer("reject", "t1"))
    assert (declined.open_jobs(), declined.context.handover) == ([], "declined")


def moved(n):
    """The branch has moved for the nth time."""
    where = {"base": f"b{n}", "base_tree": f"bt{n}", "commit": f"c{n}", "tree": f"m{n}", "patch_ref": f"p{n}"}
    return BaseFacts(moved=True, told_ref=f"p-moved{n}", **where)


def test_a_change_is_checked_on_the_branch_as_it_is():
    """A branch that has moved is followed, measured and checked; one that moves after the approval voids it."""
    tape = checking_run(deliver="merge", target="main")
    tape.finish("look_at_base", moved(1))
    assert (tape.open_jobs(), tape.item("measure_again").input) == (
        ["measure_again"],
        {"commit": "b1", "tree": "bt1"},
    )
    tape.finish("measure_again", BaselineFacts(results_ref="p-b1"))
    assert tape.item("run_checks").input["tree"] == "m1"
    tape.finish("run_checks", check_facts("m1"))
    assert tape.item("merge").input["digest"] == "m1"
    tape.finish("merge", gate_answer("approve", "m1"))
    assert tape.item("deliver").input["confirmed_by"] == "ann"
    tape.finish("deliver", DeliveryFacts(moved=True, detail_ref="p-overtaken"))
    assert (tape.open_jobs(), tape.item("recheck").input["shown"]) == (["recheck"], {"detail": "p-overtaken"})
    tape.finish("recheck", gate_answer("approve", "m1"))
    assert (tape.context.outcome, tape.context.merged_by, tape.open_jobs()) == (None, "", ["look_at_base"])


def test_a_branch_that_keeps_moving_waits_for_a_person():
    """After three moves in a row the run stands still and says why; then the branch is looked at again."""
    tape = checking_run(deliver="merge", target="main")
    for n in (1, 2, 3):
        tape.finish("look_at_base", moved(n))
        tape.finish("measure_again", BaselineFacts(results_ref="p-b"))
        tape.finish("run_checks", check_facts(f"m{n}"))
        tape.finish("merge", gate_answer("approve", f"m{n}"))
        tape.finish("deliver", DeliveryFacts(moved=True))
        tape.finish("recheck", gate_answer("approve", f"m{n}"))
    tape.finish("look_at_base", moved(4))
    assert (tape.open_jobs(), tape.item("moving").input["shown"]["branch"]) == (["moving"], "p-moved4")
    tape.finish("moving", gate_answer("approve", "m4"))
    tape.finish("look_at_base", BaseFacts())
    assert tape.open_jobs() == ["measure_again"]


def test_a_red_base_that_is_measured_again_stops_nothing():
    """The work is paid for: failures of the branch as it is now are what the checks are held against."""
    tape = checking_run(deliver="merge", target="main")
    tape.finish("look_at_base", moved(1))
    tape.finish("measure_again", BaselineFacts(tree="bt1", red=1, unstarted=1, results_ref="p-red"))
    assert (tape.context.outcome, tape.open_jobs(), tape.item("run_checks").input["baseline"]) == (
        None, ["run_checks"], "p-red",
    )  # fmt: skip


def test_a_rewritten_branch_waits_for_a_person():
    """What the branch has lost is shown, bound to where it is; only a person lets the change go there."""
    tape = checking_run(deliver="merge", target="main")
    tape.finish("look_at_base", BaseFacts(moved=True, rewritten=2, base="tip", told_ref="p-lost"))
    asked = tape.item("rewrite").input
    assert (tape.open_jobs(), asked["digest"], asked["shown"]["branch"]) == (["rewrite"], "tip", "p-lost")
    tape.finish("rewrite", gate_answer("approve", "tip"))
    assert tape.item("look_at_base").input["seen_tip"] == "tip"
    tape.finish("look_at_base", BaseFacts(moved=True, conflicts=1, told_ref="p-conflict"))
    assert (tape.open_jobs(), tape.context.base_told_ref) == (["run_checks"], "p-conflict")
    tape.finish("run_checks", check_facts("t1"))
    assert tape.item("merge").input["shown"]["branch"] == "p-conflict"


def test_a_draft_needs_no_further_gate():
    """A pull request is a question to people already: it is opened at once, and its address is kept."""
    tape = checking_run(deliver="draft-pr")
    tape.finish("run_checks", check_facts("t1"))
    assert tape.open_jobs() == ["deliver"]
    tape.finish("deliver", DeliveryFacts(done=True, form="draft-pr", ref="r", commit="c", url_ref="p-url"))
    assert (tape.context.handover, tape.context.url_ref) == ("done", "p-url")


def test_a_delivered_change_is_taken_back():
    """A failed attempt leaves it delivered and says why; one that works is the last; the branch may be named."""
    tape = checking_run(deliver="merge", target="main")
    tape.finish("look_at_base", BaseFacts())
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("merge", gate_answer("approve", "t1"))
    tape.finish("deliver", delivery_facts())
    tape.send("revert_requested", RevertRequested("release", "ann"))
    asked = tape.item("revert").input
    assert (asked["commit"], asked["target"], asked["person"]) == ("c-x", "release", "ann")
    tape.finish("revert", DeliveryFacts(detail_ref="p-conflict"))
    assert (tape.context.handover, tape.context.detail_ref) == ("done", "p-conflict")
    tape.send("revert_requested", RevertRequested("", "bob"))
    assert (tape.item("revert").input["target"], tape.context.detail_ref) == ("main", "")
    tape.finish("revert", DeliveryFacts(done=True, form="revert", ref="r", commit="c-undone"))
    assert (tape.context.handover, tape.context.reverted_commit) == ("reverted", "c-undone")
    assert (run_outcome(MACHINE, tape.snapshot), run_status_word(MACHINE, tape.snapshot)) == (
        "approved",
        "done",
    )


def _everywhere():
    yield "plan-proposal", SimulatedRun()
    yield "plan-implementation", SimulatedRun(mode="implementation")
    yield "build", building_run()
    review = building_run()
    review.finish("implement", change_facts("t1"))
    yield "review", review
    yield "test", checking_run()


@for_each_case("tape", [t for _, t in _everywhere()])
def test_an_abort_is_legal_wherever_a_run_works(tape):
    """An abort ends the run as canceled, and nothing that it had asked for is left open."""
    tape.send("aborted_by_operator", gate_answer("abort"))
    assert (tape.snapshot.state, tape.context.outcome, tape.open_jobs()) == ("finalize", "canceled", [])


@for_each_case(
    ("given", "word"),
    [
        ({"mode": "propsal"}, "mode"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_iterations": "3"}, "max_iterations"),
        ({"repeated": "sometimes"}, "repeated"),
        ({"deliver": "carrier-pigeon"}, "deliver"),
    ],
)
def test_a_run_does_not_begin_with_what_the_check_has_not_seen(given, word):
    """A mistyped mode or limit is refused at the start and named: it never falls through to another mode."""
    with pytest.raises(UserError, match=word):
        SimulatedRun(**given)


def test_a_follow_up_after_approval_goes_on_from_the_change():
    """A follow-up of an approved run starts from the approved tree and leaves the delivered one as it is."""
    tape = checking_run()
    tape.finish("run_checks", check_facts("t1"))
    tape.finish("deliver", delivery_facts())
    tape.send("task_followup_received", gate_answer("more", text="p-more"))
    assert tape.item("prepare").input["commit"] == "c-t1"
    tape.finish("prepare", setup_facts("t1"))
    assert (tape.context.commit, tape.context.tree) == ("c-t1", "t1")
    assert tape.item("implement").input["texts"]["followup"] == "p-more"


def test_nothing_is_asked_about_texts_that_are_not_there():
    """A prompt names only the texts there are."""
    assert proposal_input(SimulatedRun().context)["texts"] == {"task": "p-task"}
