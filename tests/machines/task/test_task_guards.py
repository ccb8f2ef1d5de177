"""Each guard of task holds, and does not hold by one field; each pair of each naming names its event."""

from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.simulated_task import (
    base_conflict_facts,
    coder_facts,
    failed_agent_facts,
    inspection_facts,
    moved_base_facts,
    prerequisite_facts,
    record_facts,
    reply_facts,
    successful_facts,
    suite_facts,
    task_at,
    task_context,
    task_gate_answer,
)

from steersman.contracts.facts import AgentFacts, BaseFacts, BaselineFacts, DeliveryFacts, SetupFacts
from steersman.kernel.definition import ChildEnded, Guard, otherwise
from steersman.kernel.machine import machine_guards
from steersman.kernel.step import name_facts
from steersman.machines.task import MACHINE, phases, table
from steersman.machines.task.facts import InspectFacts, RevertFacts

BY_NAME = {
    g.name: g
    for g in (
        *machine_guards(MACHINE),
        *(r.waivable for r in MACHINE.rows if r.waivable is not None),
        *(g for module in (phases, table) for g in vars(module).values() if isinstance(g, Guard)),
    )
}
MANY = {"planners": ["lead", "second", "third"], "panel": "several"}
REVIEWERS = ["one", "two"]
KEPT = {"second": {"role": "second", "ready": True, "blocking": 0}}
DECIDED = {"decision": "accepted"}
FINE = inspection_facts(task_context(), "planning")
C, E_ = "c", "e"  # whose field is changed


def of_step(*steps, **more):
    """What a guard needs that holds on some steps."""
    return {"step": steps[0], **more}


# guard: what the task knows, what the event carries, and each single field that makes it say no.
# fmt: off
YES = {
    "looks_around":   (of_step("others"), None, [(C, "step", "waiting"), (C, "step", "work")]),
    "waits":          (of_step("waiting"), None, [(C, "step", "others")]),
    "works":          (of_step("work"), None, [(C, "step", "record")]),
    "comments":       (of_step("comment"), None, [(C, "step", "work")]),
    "asks":           (of_step("questions"), None, [(C, "step", "work")]),
    "records":        (of_step("record"), None, [(C, "step", "work")]),
    "inspects":       (of_step("inspect"), None, [(C, "step", "record")]),
    "ready":          (of_step("ready"), None, [(C, "step", "confirmed")]),
    "damaged_step":   (of_step("damaged"), None, [(C, "step", "restore")]),
    "restores":       (of_step("restore"), None, [(C, "step", "adopt")]),
    "adopts":         (of_step("adopt"), None, [(C, "step", "restore")]),
    "stuck":          (of_step("stuck"), None, [(C, "step", "work")]),
    "evidence_asked": (of_step("evidence"), None, [(C, "step", "work")]),
    "base_asked":     (of_step("base"), None, [(C, "step", "decide")]),
    "rewritten_asked": (of_step("rewritten"), None, [(C, "step", "decide")]),
    "decides":        (of_step("decide"), None, [(C, "step", "deliver")]),
    "delivers":       (of_step("deliver"), None, [(C, "step", "decide")]),
    "at_work":        (of_step("broken"), None, [(C, "step", "stuck")]),
    "at_record":      (of_step("unwritten"), None, [(C, "step", "broken")]),
    "prepares":       (of_step("work", workspace="unprepared"), None, [(C, "step", "record"), (C, "workspace", "ready")]),
    "measures":       (of_step("work", workspace="ready"), None, [(C, "step", "record"), (C, "workspace", "measured")]),
    "measures_again": (of_step("work", workspace="moved"), None, [(C, "step", "record"), (C, "workspace", "ready")]),
    "drafts":         (of_step("work"), None, [(C, "step", "record"), (C, "workspace", "moved")]),
    "unchecked":      ({"workspace": "ready"}, None, [(C, "workspace", "measured"), (C, "workspace", "moved")]),
    "unstarted":      ({}, BaselineFacts(unstarted=1), [(E_, "unstarted", 0)]),
    "red":            ({}, BaselineFacts(red=1), [(E_, "red", 0), (C, "red_base", "fix")]),
    "codes":          (of_step("work"), None, [(C, "step", "record"), (C, "workspace", "ready"), (C, "codegen", "roundtable")]),
    "goes_round":     (of_step("work", codegen="roundtable"), None, [(C, "step", "record"), (C, "workspace", "ready"), (C, "codegen", "coder")]),
    "runs":           (of_step("work"), None, [(C, "step", "record"), (C, "workspace", "ready")]),
    "takes_back":     (of_step("work", delivered="yes"), None, [(C, "step", "record"), (C, "delivered", "reverted")]),

    "comes_after":    ({"after": ["r-first"]}, None, [(C, "after", [])]),
    "awaits":         ({"others": "awaited"}, None, [(C, "others", "none")]),
    "all_there":      ({}, prerequisite_facts(), [(E_, "missing", 1), (E_, "error", "workspace"), (E_, "base", ""), (E_, "base_tree", "")]),
    "says_begin":     ({}, task_gate_answer("begin", reason="why"), [(E_, "choice", "retry"), (E_, "reason", "")]),
    "broke":          ({}, failed_agent_facts(), [(E_, "error", "")]),
    "fits":           ({}, reply_facts("coder"), [(E_, "error", "provider_crashed"), (E_, "reply", None)]),
    "shared_work":    (MANY, reply_facts("lead"), [(C, "panel", "alone"), (E_, "error", "x"), (E_, "reply", None)]),
    "drafted_alone":  ({}, reply_facts("planner"), [(C, "panel", "several"), (E_, "error", "x"), (E_, "reply", None)]),
    "comment_broke":  ({**MANY, "comments": KEPT}, replace(reply_facts("third"), error="provider_crashed"), [(C, "comments", {}), (E_, "error", "")]),
    "last_asks":      ({**MANY, "comments": KEPT, "draft": {"blocking": 1}}, reply_facts("third"), [(C, "comments", {}), (C, "draft", {"blocking": 0})]),
    "last_concerned": ({**MANY, "comments": KEPT}, reply_facts("third", ready=False), [(C, "comments", {}), (E_, "reply", {"ready": True})]),
    "last_comment":   ({**MANY, "comments": KEPT}, reply_facts("third"), [(C, "comments", {}), (C, "planners", ["a", "b", "c", "d"])]),
    "plan_opinion_broke": ({"plan_reviewers": REVIEWERS, "plan_opinions": {"one": {}}}, replace(reply_facts("two"), error="provider_crashed"), [(C, "plan_opinions", {}), (E_, "error", "")]),
    "last_plan_opinion":  ({"plan_reviewers": REVIEWERS, "plan_opinions": {"one": {}}}, reply_facts("two"), [(C, "plan_opinions", {})]),
    "code_opinion_broke": ({"code_reviewers": REVIEWERS, "code_opinions": {"one": {}}}, replace(reply_facts("two"), error="provider_crashed"), [(C, "code_opinions", {}), (E_, "error", "")]),
    "last_code_opinion":  ({"code_reviewers": REVIEWERS, "code_opinions": {"one": {}}}, reply_facts("two"), [(C, "code_opinions", {})]),

    "laid_down":      ({}, record_facts("planning"), [(E_, "written", {}), (E_, "error_ref", "p-x")]),
    "damage_found":   ({}, replace(FINE, damaged=1), [(E_, "damaged", 0)]),
    "unseen":         (of_step("inspect", pace="step"), FINE, [(C, "pace", "through")]),
    "questions_left": ({}, replace(FINE, blocking=1), [(E_, "blocking", 0)]),
    "no_scope":       ({}, replace(FINE, files=0), [(E_, "files", 1)]),
    "planned":        ({}, FINE, [(E_, "blocking", 1), (E_, "files", 0)]),
    "plan_blocked":   ({}, replace(FINE, blocked=True), [(E_, "blocked", False)]),
    "plan_ok":        ({}, replace(FINE, ok=True), [(E_, "ok", False), (E_, "blocked", True)]),
    "tree_ready":     ({}, SetupFacts(ready=True), [(E_, "ready", False)]),
    "untouched":      ({"codegen": "roundtable"}, replace(record_facts("codegen"), infrastructure=0), [(C, "codegen", "coder"), (E_, "infrastructure", 1), (E_, "infrastructure", None)]),
    "touches":        ({}, coder_facts(infrastructure=1), [(E_, "infrastructure", 0)]),
    "crew_approved":  ({}, ChildEnded("r", "approved", True, "t1"), [(E_, "success", False), (E_, "tree", "")]),
    "says_unclear":   ({"coder_status": "plan_unclear"}, FINE, [(C, "coder_status", "done")]),
    "says_mismatch":  ({"coder_status": "scope_mismatch"}, FINE, [(C, "coder_status", "done")]),
    "leaves_bounds":  ({"beyond": 1}, FINE, [(C, "beyond", 0)]),
    "leaves_plan":    ({}, replace(FINE, outside=1), [(E_, "outside", 0)]),
    "empty":          ({}, replace(inspection_facts(task_context(), "codegen"), copies=0), [(E_, "copies", 1)]),
    "built":          ({}, inspection_facts(task_context(), "codegen"), [(E_, "copies", 0), (E_, "patch", 0), (E_, "outside", 1), (E_, "tree", "t0"), (C, "tree", "t0")]),
    "flawed":         ({}, replace(FINE, decision="plan_flawed"), [(E_, "decision", "needs_changes")]),
    "passes":         ({}, inspection_facts(task_context(), "review"), [(E_, "ok", False), (E_, "decision", "needs_changes"), (E_, "tree", "t0"), (C, "tree", "t0")]),
    "unproven":       ({}, replace(inspection_facts(task_context(), "test"), overall_pass=False), [(E_, "overall_pass", True)]),
    "proven":         ({}, inspection_facts(task_context(), "test"), [(E_, "overall_pass", False), (E_, "tree", "t0"), (C, "tree", "t0"), (C, "checks", {"tree": "t0"}), (C, "checks", {})]),
    "touched":        ({"evidence": "touched"}, FINE, [(C, "evidence", "accepted"), (C, "evidence", "plain")]),
    "doubted":        ({"checks": {"missing": 1}}, FINE, [(C, "checks", {"missing": 0}), (C, "evidence", "accepted")]),
    "accepts":        ({}, task_gate_answer("approve", "t1"), [(E_, "choice", "rework"), (E_, "digest", "t0"), (C, "tree", "t2")]),
    "conflicts":      ({}, base_conflict_facts(), [(E_, "conflicts", 0), (E_, "base_tree", "")]),
    "lost_commits":   ({}, BaseFacts(moved=True, rewritten=1), [(E_, "rewritten", 0)]),
    "lost":           ({}, BaseFacts(lost=True), [(E_, "lost", False)]),
    "absorbed":       ({}, BaseFacts(moved=True, absorbed=True), [(E_, "absorbed", False)]),
    "moved":          ({}, moved_base_facts(), [(E_, "moved", False), (E_, "tree", "")]),
    "stands":         ({}, BaseFacts(), [(E_, "moved", True), (E_, "conflicts", 1), (E_, "error", "workspace")]),
    "says_next":      ({}, task_gate_answer("approve"), [(E_, "choice", "rework")]),
    "says_adopt":     ({}, task_gate_answer("adopt"), [(E_, "choice", "restore")]),
    "done_well":      ({}, DeliveryFacts(done=True), [(E_, "done", False)]),
    "taken_back":     ({}, RevertFacts(status="reverted"), [(E_, "status", s) for s in ("conflicted", "not_merged", "blocked")]),
    "revert_done":    ({}, InspectFacts(status="reverted"), [(E_, "status", "conflicted"), (E_, "status", "")]),
    "was_delivered":  ({"delivered": "yes"}, None, [(C, "delivered", "no"), (C, "delivered", "reverted")]),
    "seen_by_person": ({"evidence": "accepted"}, None, [(C, "evidence", "touched")]),
    "unseen_results": (of_step("record", evidence="accepted"), None, [(C, "step", "confirmed"), (C, "evidence", "touched")]),
    "accepted_outcome": ({"outcome": "accepted"}, None, [(C, "outcome", "reverted")]),
    "reverted_outcome": ({"outcome": "reverted"}, None, [(C, "outcome", "accepted")]),
    "has_plan":       (of_step("ready"), None, [(C, "artifacts", {}), (C, "step", "work")]),
    "has_scope":      (of_step("stuck"), None, [(C, "artifacts", {}), (C, "step", "damaged")]),
    "has_change":     (of_step("broken"), None, [(C, "artifacts", {}), (C, "step", "record"), (C, "tree", "t0"), (C, "tree", ""), (C, "beyond", 1)]),
    "has_seen":       (of_step("stuck"), None, [(C, "artifacts", {}), (C, "step", "record"), (C, "tree", "t0"), (C, "evidence", "touched"), (C, "beyond", 1)]),
    **{f"chose_{choice}": ({}, task_gate_answer(choice), [(E_, "choice", "")]) for choice in table.DECISIONS},
    **{f"decided_{said_}": ({"decision": said_}, InspectFacts(decision=said_), [(C, "decision", "none"), (E_, "decision", "")]) for said_ in table.DECISIONS.values()},
}
# The other ways to say yes.
ALSO = [
    ("inspects",       of_step("confirmed"), None),
    ("stuck",          of_step("broken"), None),
    ("stuck",          of_step("unwritten"), None),
    ("comment_broke",  {**MANY, "comments": KEPT}, AgentFacts(text_ref="p-x")),
    ("comment_broke",  {**MANY, "failures": {"comments": 1}}, reply_facts("third")),
    ("last_comment",   {**MANY, "failures": {"comments": 1}}, reply_facts("third")),
    ("last_asks",      {**MANY, "comments": {"second": {"blocking": 2}}}, reply_facts("third")),
    ("last_asks",      {**MANY, "comments": KEPT}, reply_facts("third", blocking=1)),
    ("last_concerned", {**MANY, "comments": {"second": {"ready": False}}}, reply_facts("third")),
    ("plan_opinion_broke", {"plan_reviewers": REVIEWERS, "failures": {"plan_opinions": 1}}, reply_facts("two")),
    ("last_plan_opinion",  {"plan_reviewers": REVIEWERS, "failures": {"plan_opinions": 1}}, reply_facts("two")),
    ("code_opinion_broke", {"code_reviewers": REVIEWERS, "failures": {"code_opinions": 1}}, reply_facts("two")),
    ("last_code_opinion",  {"code_reviewers": REVIEWERS, "failures": {"code_opinions": 1}}, reply_facts("two")),
    ("damage_found",   {}, replace(FINE, seen={})),
    ("unseen",         of_step("confirmed", pace="step", seen={"a": "1"}), replace(FINE, seen={"a": "2"})),
    ("empty",          {}, replace(inspection_facts(task_context(), "codegen"), patch=0)),
    ("empty",          {"tree": "t0"}, inspection_facts(task_context(), "codegen")),
    ("doubted",        {"checks": {"flaky": 1}}, FINE),
    ("doubted",        {"checks": {"doubts": 1}}, FINE),
    ("revert_done",    {}, InspectFacts(status="nothing_delivered")),
]
NEITHER = [
    ("unseen",         of_step("confirmed", pace="step", seen=FINE.seen), FINE),
    ("last_comment",   {**MANY, "failures": {"plan_opinions": 2}}, reply_facts("third")),
    ("last_plan_opinion", {"plan_reviewers": REVIEWERS, "code_opinions": {"one": {}}, "failures": {"code_opinions": 3}}, reply_facts("two")),
    ("last_code_opinion", {"code_reviewers": REVIEWERS, "plan_opinions": {"one": {}}, "failures": {"plan_opinions": 3}}, reply_facts("two")),
    ("proven",         {"tree": "", "checks": {"tree": ""}}, replace(inspection_facts(task_context(), "test"), tree="")),
]
# fmt: on


def ask(name, known, told):
    answered = BY_NAME[name].test(task_context(**known), told)
    assert isinstance(answered, bool)
    return answered


@for_each_case("name", YES)
def test_a_guard_holds_and_one_field_makes_it_say_no(name):
    """Each guard says yes where everything it asks is so, and no when any single part of it is not."""
    known, told, changes = YES[name]
    assert ask(name, known, told)
    for whose, field, value in changes:
        if whose == C:
            assert not ask(name, {**known, field: value}, told), (field, value)
        else:
            assert not ask(name, known, replace(told, **{field: value})), (field, value)
    assert changes


def test_every_guard_is_tried():
    """No guard of the machine, of its overrides or its laws is left out above."""
    assert set(YES) == set(BY_NAME) - {otherwise.name}
    assert len(machine_guards(MACHINE)) > 60


@for_each_case(("name", "known", "told"), ALSO)
def test_a_guard_holds_in_its_other_ways(name, known, told):
    """Where a guard asks for one of several things, each of them is enough."""
    assert ask(name, known, told)


@for_each_case(("name", "known", "told"), NEITHER)
def test_a_guard_is_not_fooled(name, known, told):
    """Other phases' answers, another pair of eyes and two trees that are no trees count for nothing."""
    assert not ask(name, known, told)


# ── namings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

STEP = {"pace": "step", "step": "inspect"}
ONE_LEFT = {**MANY, "comments": KEPT}
HALF = {"plan_reviewers": REVIEWERS, "code_reviewers": REVIEWERS}
FULL = {**HALF, "plan_opinions": {"one": {}}, "code_opinions": {"one": {}}}

# fmt: off
CASES = [  # job, phase, what the task knows, what is changed in facts that are well, the guard, the event
    ("look_at_others", "planning", {}, {}, "all_there", "others_there"),
    ("look_at_others", "planning", {}, {"missing": 1}, "otherwise", "others_missing"),
    ("others", "planning", {}, {}, "otherwise", "another_look_requested"),
    ("others", "planning", {}, {"choice": "begin", "reason": "why"}, "says_begin", "begin_requested"),
    ("others", "planning", {}, {"choice": "begin"}, "otherwise", "another_look_requested"),
    ("draft", "planning", {}, {}, "drafted_alone", "planning_converged"),
    ("draft", "planning", MANY, {}, "shared_work", "plan_drafted"),
    ("draft", "planning", {}, {"error": "provider_timeout"}, "broke", "agent_failed"),
    ("draft", "planning", {}, {"reply": None}, "otherwise", "agent_failed"),
    ("comment", "planning", MANY, {}, "otherwise", "plan_commented"),
    ("comment", "planning", ONE_LEFT, {}, "last_comment", "planning_converged"),
    ("comment", "planning", ONE_LEFT, {"reply": {"ready": False}}, "last_concerned", "round_needed"),
    ("comment", "planning", ONE_LEFT, {"reply": {"ready": False, "blocking": 1}}, "last_asks", "planning_converged"),
    ("comment", "planning", ONE_LEFT, {"reply": None}, "comment_broke", "agent_failed"),
    ("questions", "planning", {}, {}, "otherwise", "questions_answered"),
    ("inspect_plan", "planning", {}, {}, "planned", "planning_succeeded"),
    ("inspect_plan", "planning", {}, {"damaged": 1}, "damage_found", "documents_damaged"),
    ("inspect_plan", "planning", {}, {"seen": {}}, "damage_found", "documents_damaged"),
    ("inspect_plan", "planning", {}, {"blocking": 1}, "questions_left", "questions_open"),
    ("inspect_plan", "planning", {}, {"files": 0}, "no_scope", "scope_missing"),
    ("inspect_plan", "planning", {}, {"files": -1}, "otherwise", "documents_damaged"),
    ("inspect_plan", "planning", STEP, {}, "unseen", "phase_ready"),
    ("review_plan", "plan_review", {}, {}, "last_plan_opinion", "plan_reviews_complete"),
    ("review_plan", "plan_review", HALF, {}, "otherwise", "plan_reviewed"),
    ("review_plan", "plan_review", HALF, {"error": "provider_timeout"}, "otherwise", "plan_reviewed"),
    ("review_plan", "plan_review", FULL, {"error": "provider_timeout"}, "plan_opinion_broke", "agent_failed"),
    ("inspect_plan_review", "plan_review", {}, {}, "plan_ok", "review_ok"),
    ("inspect_plan_review", "plan_review", {}, {"damaged": 1}, "damage_found", "documents_damaged"),
    ("inspect_plan_review", "plan_review", {}, {"blocked": True}, "plan_blocked", "review_blocked"),
    ("inspect_plan_review", "plan_review", {}, {"ok": False}, "otherwise", "review_needs_changes"),
    ("inspect_plan_review", "plan_review", STEP, {}, "unseen", "phase_ready"),
    ("prepare", "planning", {}, {}, "tree_ready", "workspace_ready"),
    ("prepare", "planning", {}, {"ready": False}, "otherwise", "setup_failed"),
    ("measure", "planning", {}, {}, "otherwise", "baseline_recorded"),
    ("measure", "planning", {}, {"red": 1}, "red", "base_not_green"),
    ("measure", "planning", {"red_base": "fix"}, {"red": 1}, "otherwise", "baseline_recorded"),
    ("measure", "planning", {}, {"red": 1, "unstarted": 1}, "unstarted", "check_cannot_start"),
    ("measure", "planning", {}, {"error": "workspace"}, "unstarted", "check_cannot_start"),
    ("measure_again", "test", {}, {"error": "workspace"}, "otherwise", "baseline_recorded"),
    ("code", "codegen", {}, {}, "fits", "code_written"),
    ("code", "codegen", {}, {"error": "provider_timeout"}, "broke", "agent_failed"),
    ("code", "codegen", {}, {"reply": None}, "otherwise", "agent_failed"),
    ("crew", "codegen", {}, {}, "crew_approved", "crew_done"),
    ("crew", "codegen", {}, {"success": False}, "otherwise", "crew_failed"),
    ("inspect_code", "codegen", {}, {}, "built", "codegen_completed"),
    ("inspect_code", "codegen", {}, {"damaged": 1}, "damage_found", "documents_damaged"),
    ("inspect_code", "codegen", {"coder_status": "plan_unclear"}, {}, "says_unclear", "plan_unclear"),
    ("inspect_code", "codegen", {"beyond": 1, "coder_status": "plan_unclear"}, {}, "leaves_bounds", "bounds_left"),
    ("inspect_code", "codegen", {"coder_status": "scope_mismatch"}, {}, "says_mismatch", "scope_mismatch"),
    ("inspect_code", "codegen", {}, {"outside": 1}, "leaves_plan", "scope_mismatch"),
    ("inspect_code", "codegen", {}, {"copies": 0}, "empty", "codegen_empty"),
    ("inspect_code", "codegen", {}, {"patch": 0}, "empty", "codegen_empty"),
    ("inspect_code", "codegen", {"tree": "t0"}, {}, "empty", "codegen_empty"),
    ("inspect_code", "codegen", {}, {"tree": "t0"}, "otherwise", "documents_damaged"),
    ("inspect_code", "codegen", STEP, {}, "unseen", "phase_ready"),
    ("review_code", "review", {}, {}, "last_code_opinion", "code_reviews_complete"),
    ("review_code", "review", HALF, {}, "otherwise", "code_reviewed"),
    ("review_code", "review", FULL, {"reply": None}, "code_opinion_broke", "agent_failed"),
    ("inspect_review", "review", {}, {}, "passes", "review_passes"),
    ("inspect_review", "review", {}, {"damaged": 1}, "damage_found", "documents_damaged"),
    ("inspect_review", "review", {}, {"decision": "plan_flawed", "ok": False}, "flawed", "plan_flawed"),
    ("inspect_review", "review", {}, {"decision": "needs_changes", "ok": False}, "otherwise", "needs_code_changes"),
    ("inspect_review", "review", {}, {"tree": "t0"}, "otherwise", "needs_code_changes"),
    ("inspect_review", "review", STEP, {}, "unseen", "phase_ready"),
    ("run_suites", "test", {}, {}, "otherwise", "suites_run"),
    ("run_suites", "test", {}, {"error": "workspace"}, "otherwise", "suites_run"),
    ("inspect_tests", "test", {}, {}, "proven", "tests_complete"),
    ("inspect_tests", "test", {}, {"damaged": 1}, "damage_found", "documents_damaged"),
    ("inspect_tests", "test", {}, {"overall_pass": False}, "unproven", "test_failures"),
    ("inspect_tests", "test", {}, {"tree": "t0"}, "unproven", "test_failures"),
    ("inspect_tests", "test", {"evidence": "touched"}, {}, "touched", "evidence_questioned"),
    ("inspect_tests", "test", {"evidence": "touched"}, {"overall_pass": False}, "unproven", "test_failures"),
    ("inspect_tests", "test", {"checks": {"tree": "t1", "missing": 1}}, {}, "doubted", "evidence_questioned"),
    ("inspect_tests", "test", {"checks": {"tree": "t1", "flaky": 1}, "evidence": "accepted"}, {}, "proven", "tests_complete"),
    ("inspect_tests", "test", STEP, {}, "unseen", "phase_ready"),
    ("evidence", "test", {}, {"digest": "t1"}, "accepts", "evidence_accepted"),
    ("evidence", "test", {}, {"digest": "t0"}, "otherwise", "evidence_declined"),
    ("evidence", "test", {}, {"choice": "rework", "digest": "t1"}, "otherwise", "evidence_declined"),
    ("look_at_base", "accept", {}, {}, "stands", "base_unmoved"),
    ("look_at_base", "accept", {}, {"lost": True}, "lost", "delivery_lost"),
    ("look_at_base", "accept", {}, {"moved": True, "rewritten": 2}, "lost_commits", "base_rewritten"),
    ("rewrite", "accept", {}, {"choice": "approve"}, "says_next", "rewrite_accepted"),
    ("rewrite", "accept", {}, {"choice": "reject"}, "otherwise", "rewrite_declined"),
    ("look_at_base", "accept", {}, {"moved": True, "absorbed": True}, "absorbed", "base_absorbed"),
    ("look_at_base", "accept", {}, {"moved": True, "tree": "t8", "base_tree": "t9"}, "moved", "base_moved"),
    ("look_at_base", "accept", {}, {"moved": True, "conflicts": 2, "base_tree": "t9"}, "conflicts", "base_conflicts"),
    ("look_at_base", "accept", {}, {"error": "workspace"}, "otherwise", "base_unseen"),
    ("look_at_base", "accept", {}, {"moved": True}, "otherwise", "base_unseen"),
    ("look_at_base", "accept", {}, {"conflicts": 1}, "otherwise", "base_unseen"),
    ("decide", "accept", {}, {}, "otherwise", "decision_given"),
    ("inspect_decision", "accept", DECIDED, {}, "decided_accepted", "decision_recorded"),
    ("inspect_decision", "accept", {**DECIDED, "delivered": "yes", "delivered_tree": "t0"}, {}, "decided_accepted", "decision_recorded"),
    ("inspect_decision", "accept", DECIDED, {"damaged": 1}, "damage_found", "documents_damaged"),
    ("inspect_decision", "accept", DECIDED, {"decision": "changes_requested"}, "otherwise", "documents_damaged"),
    ("inspect_decision", "accept", {"decision": "changes_requested"}, {}, "decided_changes_requested", "requires_further_changes"),
    ("inspect_decision", "accept", {"decision": "review_requested"}, {}, "decided_review_requested", "needs_review"),
    ("inspect_decision", "accept", {"decision": "replan_requested"}, {}, "decided_replan_requested", "upstream_problem"),
    ("inspect_decision", "accept", {"decision": "revert_requested"}, {}, "decided_revert_requested", "revert_requested"),
    ("deliver", "accept", {}, {}, "done_well", "accepted"),
    ("deliver", "accept", {}, {"done": False}, "otherwise", "delivery_failed"),
    ("take_back", "revert", {}, {}, "taken_back", "change_reverted"),
    ("take_back", "revert", {}, {"status": "not_merged"}, "otherwise", "revert_conflicted"),
    ("inspect_revert", "revert", {}, {}, "revert_done", "revert_recorded"),
    ("inspect_revert", "revert", {}, {"damaged": 1}, "damage_found", "documents_damaged"),
    ("inspect_revert", "revert", {}, {"status": "conflicted"}, "otherwise", "revert_refused"),
    *((job, "planning", {}, {}, "laid_down", "documents_recorded") for job in ("record", "restore", "adopt")),
    ("record", "planning", {}, {"error_ref": "p-x"}, "otherwise", "recording_failed"),
    ("restore", "planning", {}, {"error_ref": "p-x"}, "otherwise", "repair_failed"),
    ("adopt", "planning", {}, {"error_ref": "p-x"}, "otherwise", "repair_failed"),
    ("next", "planning", {}, {}, "says_next", "next_requested"),
    ("next", "planning", {}, {"choice": "rework"}, "otherwise", "rework_requested"),
    ("damaged_plan", "planning", {}, {}, "otherwise", "restore_requested"),
    ("damaged_plan", "planning", {}, {"choice": "adopt"}, "says_adopt", "adoption_requested"),
    ("damage", "review", {}, {}, "otherwise", "restore_requested"),
    ("again", "review", {}, {}, "otherwise", "retry_requested"),
]
# fmt: on


@for_each_case(("job", "phase", "known", "changed", "guard", "event"), CASES)
def test_facts_become_an_event(job, phase, known, changed, guard, event):
    """A job's facts name one event by the first guard that fits, and every guard of the naming is evaluated."""
    here = task_at(phase, **known)
    told = replace(successful_facts(here.context, phase, job, {"role": "two", "digest": "d"}), **changed)
    happened = name_facts(MACHINE, here, job, told)
    assert happened.event.name == event
    assert happened.event.origin is MACHINE.events[event].origin
    assert list(happened.guards) == [g.name for g, _ in MACHINE.namings[job].pairs]
    assert next(name for name, yes in happened.guards.items() if yes) == guard


def test_every_pair_of_every_naming_is_reached():
    """Every pair is the one that fits in some case above, except what was asked in the same words before it."""
    pairs = {(n.subject.name, g.name, e.name) for n in MACHINE.namings.values() for g, e in n.pairs}
    tried = {(job, guard, event) for job, _, _, _, guard, event in CASES}
    assert tried <= pairs
    # Unproven is the very opposite of proven, and was asked first.
    assert pairs - tried == {("inspect_tests", "otherwise", "test_failures")}


@for_each_case("job", [j.name for j in MACHINE.jobs.values() if j.kind in ("effect", "child")])
def test_what_broke_is_never_a_pass(job):
    """Facts that say nothing, as those of an effect that broke, name nothing that goes on, however they broke."""
    empty = ChildEnded("r.1", "broken") if job == "crew" else _broken(MACHINE.jobs[job].returns)
    event = name_facts(MACHINE, task_at("planning", tree="t0"), job, empty).event.name
    assert event in {
        "agent_failed", "base_unseen", "baseline_recorded", "check_cannot_start", "crew_failed",
        "delivery_failed", "documents_damaged", "others_missing", "recording_failed", "repair_failed",
        "revert_conflicted", "setup_failed", "suites_run",
    }  # fmt: skip


def _broken(returns):
    """As the runtime says it."""
    said_ = {"error": "provider_crashed", "detail_ref": "p-x", "told_ref": "p-x", "error_ref": "p-x"}
    return returns(**{k: v for k, v in said_.items() if k in returns.__struct_fields__})


def test_suites_that_broke_prove_nothing():
    """What could not be run is recorded, and the report about it is no pass."""
    assert (
        name_facts(MACHINE, task_at("test"), "run_suites", suite_facts("t1", error="workspace")).event.name
        == "suites_run"
    )
    here = task_at("test", checks={"tree": "", "error": "workspace"})
    assert (
        name_facts(MACHINE, here, "inspect_tests", inspection_facts(here.context, "test")).event.name
        == "test_failures"
    )
