"""FailurePacks (001 §12, §13): every cause has a case, its type, and a recovery that names what to change."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    make_decision,
    make_phase,
    make_plan_inputs,
    make_plan_outputs,
    make_registry,
    make_rule,
    make_workflow,
    plan_routing,
    precheck_report,
)

from steersman.contracts.planning.decisions import DocumentProblem, RedLineCheck, RegistryReference
from steersman.contracts.planning.questions import AnswerConflict, QuestionAnswer
from steersman.contracts.planning.review import FailurePack
from steersman.judges.planning.registry import Registry, RegistryItem
from steersman.kernel.canonical import canonical_bytes
from steersman.machines.coordinator.failure import (
    FAILURE_CAUSES,
    FailureSubject,
    answer_failure,
    broken_state_failure,
    context_failure,
    finalize_failure,
    freeze_failure,
    graph_failure,
    precheck_failure,
    question_failure,
    review_failure,
    rules_failure,
)
from steersman.machines.coordinator.faults import GraphFaults, find_graph_faults
from steersman.machines.coordinator.graph import draft_plan_graph, questions_for_inputs
from steersman.machines.coordinator.remaining import RemainingObjections
from steersman.machines.coordinator.review import ReviewFaults, find_review_faults
from steersman.machines.coordinator.uncertainties import ChosenQuestions

ME = FailureSubject("intent_fix_the_leak", "plan_0123456789abcdef", "medium")
GOOD = make_plan_inputs()
FINE = precheck_report(GOOD)
WRONG = (DocumentProblem(field="title", message="is too short", fix="Write five letters or more."),)
REVIEWED = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
QUESTIONS = questions_for_inputs(REVIEWED)
NOTHING = ChosenQuestions(None, (), (), (), (), (), 0)
NO_FAULTS = GraphFaults((), (), (), (), (), ())
NO_REVIEW_FAULTS = ReviewFaults((), (), ())
STOP = (QuestionAnswer(question_id=QUESTIONS[0].question_id, answer="stop", rationale="No."),)
LOST = (QuestionAnswer(question_id="q_0000000000000000", answer="stop"),)
CONFLICT = (AnswerConflict(question_id=QUESTIONS[0].question_id, command_id="edit_files", rule_id="rule_no_writes", reason="It is denied."),)  # fmt: skip


def crossed(line, *details):
    checks = tuple(RedLineCheck(red_line=line, passed=False, details=details) if c.red_line == line else c for c in FINE.red_lines)  # fmt: skip
    return replace(FINE, red_lines=checks)


def referenced(found, **more):
    return replace(FINE, references=(RegistryReference(kind="command", id="run_tests", found=found, **more),))


def ruled(**more):
    return tuple(make_decision(id_, "deny", "block", **more) for id_ in ("edit_files",))


def by_facts():
    """A verdict that a rule could not give."""
    (made,) = ruled(undecidable=True)
    unsaid = replace(make_decision("x", "warn").rules[0], outcome="undecidable", reason="cannot be decided")
    return (replace(made, rules=(unsaid,)),)


CASES = {
    "execution_payload": precheck_failure(ME, replace(FINE, execution_payload=WRONG)),
    "schema_invalid": precheck_failure(ME, replace(FINE, schema_valid=False, schema_problems=WRONG)),
    "checksum_mismatch": precheck_failure(ME, replace(FINE, checksum_matches=False)),
    "asks_in_full_auto": precheck_failure(ME, crossed("I2", *WRONG)),
    "risk_in_full_auto": precheck_failure(ME, crossed("I3")),
    "unevidenced_command": precheck_failure(ME, crossed("I4", *WRONG)),
    "not_registered": precheck_failure(ME, referenced("missing")),
    "inactive_content": precheck_failure(ME, referenced("inactive", version="1.0.0", digest="a" * 64)),
    "version_drift": precheck_failure(ME, referenced("drifted", version="1.0.0", digest="a" * 64, pinned="0.9.0#bbb")),
    "policy_invalid": precheck_failure(ME, replace(FINE, policy_problems=WRONG)),
    "mode_changed": precheck_failure(ME, FINE, mode_changed="begun in interactive, asked for is full_auto"),
    "registry_broken": precheck_failure(ME, FINE, registry=WRONG),
    "intent_unreadable": precheck_failure(ME, None),
    "memory_unavailable": context_failure(ME, memory="The store cannot be read."),
    "memory_damaged": context_failure(ME, memory="The file is damaged.", damaged="Move it aside."),
    "facts_unavailable": context_failure(ME, memories=1, facts="Nothing was found."),
    "policy_unavailable": context_failure(ME, memories=1, policy="It was not loaded."),
    "context_missing": context_failure(ME, memories=1),
    "routing_violation": rules_failure(ME, (), tuple(replace(a, violation=True) for a in plan_routing(GOOD))),
    "rule_conflict": rules_failure(ME, ruled(conflict="deny and allow")),
    "rule_denied": rules_failure(ME, ruled(hard=True, required_changes=("Ask the release manager.",))),
    "manifest_unread": rules_failure(
        ME, by_facts(), registry=make_registry(replace(make_rule("rule_no_writes"), evidence_required=("known:test_command",))),
        unread=("pyproject.toml, line 1: it is no TOML",),
    ),
    "rule_undecidable": rules_failure(ME, ruled(undecidable=True)),
    "deny_unexplained": rules_failure(ME, ruled(reason=" ")),
    "operation_forbidden": rules_failure(ME, (), forbidden=WRONG),
    "command_undecided": rules_failure(ME, GOOD.decisions[1:], commands=("read_code", "edit_files")),
    "rules_unasked": rules_failure(ME, ()),
    "cyclic_graph": graph_failure(ME, NO_FAULTS._replace(cycles=WRONG)),
    "phase_unmapped": graph_failure(ME, NO_FAULTS._replace(unmapped=WRONG)),
    "lane_missing": graph_failure(ME, NO_FAULTS._replace(unassigned=WRONG)),
    "evidence_missing": graph_failure(ME, NO_FAULTS._replace(unsupported=WRONG)),
    "node_incomplete": finalize_failure(ME, NO_FAULTS._replace(incomplete=WRONG)),
    "placeholder_left": finalize_failure(ME, NO_FAULTS._replace(placeholders=WRONG)),
    "default_blocks": finalize_failure(ME, NO_FAULTS, STOP, QUESTIONS),
    "no_graph": graph_failure(ME, NO_FAULTS),
    "question_budget_exceeded": question_failure(ME, NOTHING._replace(over=QUESTIONS)),
    "question_unevidenced": question_failure(ME, NOTHING._replace(unevidenced=QUESTIONS)),
    "question_undefaulted": question_failure(ME, NOTHING._replace(undefaulted=QUESTIONS)),
    "question_unfit": question_failure(ME, NOTHING._replace(unfit=QUESTIONS)),
    "nothing_to_ask": question_failure(ME, NOTHING),
    "answers_conflict": answer_failure(ME, conflicts=CONFLICT),
    "answer_blocks": answer_failure(ME, blocked=LOST),
    "answers_stopped": answer_failure(ME),
    "budget_exceeded": review_failure(ME, find_review_faults(GOOD, replace(make_plan_outputs().review, change_impact=replace(make_plan_outputs().review.change_impact, budgets=tuple(replace(b, within=False) for b in make_plan_outputs().review.change_impact.budgets))), make_plan_outputs().settled)),
    "review_uncovered": review_failure(ME, NO_REVIEW_FAULTS._replace(uncovered=WRONG)),
    "risk_unjustified": review_failure(ME, NO_REVIEW_FAULTS._replace(unjustified=WRONG)),
    "review_missing": review_failure(ME, NO_REVIEW_FAULTS),
    "output_malformed": freeze_failure(ME, malformed=WRONG),
    "checksum_failed": freeze_failure(ME, unmatched=WRONG),
    "lineage_incomplete": freeze_failure(ME, untraced=WRONG),
    "not_written": freeze_failure(ME),
    "rest_denied": finalize_failure(ME, NO_FAULTS, rest=RemainingObjections(WRONG, (), ())),
    "phase_emptied": finalize_failure(ME, NO_FAULTS, rest=RemainingObjections((), WRONG, ())),
    "evidence_unfound": finalize_failure(ME, NO_FAULTS, rest=RemainingObjections((), WRONG, (), (), WRONG)),
    "rest_risky": finalize_failure(ME, NO_FAULTS, rest=RemainingObjections((), (), WRONG)),
    "broken": broken_state_failure(ME, "PRECHECKED", "the disk is gone"),
}  # fmt: skip


def test_every_cause_has_a_case():
    """No cause is in the table that nothing brings about."""
    assert CASES.keys() == FAILURE_CAUSES.keys()


@for_each_case("cause", CASES)
def test_a_failure_pack_names_its_cause_and_what_to_change(cause):
    """001 §12: type, message and recovery suggestions; the first names the field that the cause's row names."""
    pack, row = CASES[cause], FAILURE_CAUSES[cause]
    assert (pack.cause, pack.failure_type) == (cause, row.type)
    assert (pack.recovery_suggestions[0].change, pack.recovery_suggestions[0].how) == (row.change, row.how)
    assert pack.retriable == (row.type != "red_line_violation")
    assert pack.message.startswith(row.message)
    assert (pack.intent_id, pack.plan_id, pack.risk) == ME[:1] + ME[1:]
    assert msgspec.json.decode(canonical_bytes(pack), type=FailurePack) == pack


def test_only_what_aborts_is_a_red_line():
    """001 §13: red_line_violation is the type of every cause that aborts, and of no other."""
    assert {cause for cause, row in FAILURE_CAUSES.items() if row.type == "red_line_violation"} == {
        "execution_payload", "routing_violation", "rule_conflict", "rule_denied", "output_malformed",
    }  # fmt: skip


def test_the_states_are_the_specifications():
    """Each pack says in which state it failed."""
    assert {pack.failed_at_state for pack in CASES.values()} == {
        "PRECHECKED", "CONTEXT_BUILT", "RULES_EVALUATED", "GRAPH_DRAFTED", "QUESTIONS_EMITTED", "AWAITING_ANSWERS",
        "GRAPH_FINALIZED", "REVIEW_PACK_BUILT", "FROZEN_OUTPUTS",
    }  # fmt: skip


def test_what_aborts_is_told_before_what_blocks_and_all_of_it_is_there():
    """DESIGN 001: precheck evaluates all its guards; ABORTED beats BLOCKED."""
    pack = precheck_failure(
        ME, replace(FINE, execution_payload=WRONG, checksum_matches=False, policy_problems=WRONG)
    )
    assert pack.cause == "execution_payload"
    assert [p.field for p in pack.problems] == ["title", "audit.checksum", "policy.title"]
    assert {r.change for r in pack.recovery_suggestions} >= {"intent", "audit.checksum", "policy", "title"}


def test_a_hard_deny_cites_its_evidence_and_what_the_rule_asks_for():
    """001 §4: deny decisions have documented reasons and evidence."""
    pack = CASES["rule_denied"]
    assert pack.evidence_refs == ("fact://language/python",)
    assert pack.recovery_suggestions[-1].how == "Ask the release manager."


def test_too_few_memories_are_counted():
    """001 §3: the MemoryPack's threshold is told."""
    pack = context_failure(ME, memories=1, threshold=2)
    assert pack.problems[0].message == "There are 1 memories; 2 are needed."


def test_a_cyclic_workflow_ends_in_a_pack_with_the_path():
    """001 §5 failure branch, from the graph to the pack."""
    flow = make_workflow(
        "bug_fix",
        make_phase("analysis", after=("review",)),
        make_phase("review", "reviewer", after=("analysis",)),
    )
    i = make_plan_inputs(known=make_registry(flow))
    pack = graph_failure(ME, find_graph_faults(draft_plan_graph(i), i))
    assert pack.cause == "cyclic_graph"
    assert "bug_fix/analysis" in pack.problems[0].message
    assert pack.problems[0].field == "selected_workflows"


def test_a_budget_is_named_with_the_figure_that_would_do():
    """001 §9 failure branch: the field, and how far it has to go."""
    pack = CASES["budget_exceeded"]
    changes = {r.change: r.how for r in pack.recovery_suggestions}
    assert changes["budgets.max_files"] == "Set budgets.max_files to 3 or more, or plan less."
    assert "policy.constraints.max_files_per_commit" in changes


@pytest.mark.parametrize(
    ("known", "where", "condition"),
    [
        (make_registry(make_rule("rule_no_writes")), "rule rule_no_writes: when", " Its condition: true"),
        (Registry((RegistryItem(make_rule("rule_no_writes"), "project", "rules/a.yaml", {("when",): 7}),)), "rules/a.yaml: when", " Its condition: true"),
        (Registry(()), "rule rule_no_writes: when", ""),
    ],
    ids=["without a file", "from a file", "gone"],
)  # fmt: skip
def test_a_rule_that_cannot_say_is_named_with_its_place(known, where, condition):
    """001 §4: the rule, its file and `when`, and why nobody could say; not the evidence of the intent."""
    (made,) = ruled(undecidable=True)
    unsaid = replace(
        make_decision("x", "warn").rules[0], outcome="undecidable", reason="cannot be decided: divide by zero"
    )
    pack = rules_failure(ME, (replace(made, rules=(unsaid, *made.rules)),), registry=known)
    (told,) = pack.problems
    assert (told.field, told.line) == (where, 7 if "yaml" in where else 0)
    assert (
        told.message == f"rule_no_writes on {made.command_id} cannot be decided: divide by zero.{condition}"
    )
    assert "evidence_refs" not in {r.change for r in pack.recovery_suggestions}


def test_a_manifest_that_cannot_be_read_is_named_before_the_rule():
    """001 §3, §4: what a rule has to know is in a file that is broken: the file and its line come first, then the rule."""
    known = make_registry(replace(make_rule("rule_no_writes"), evidence_required=("known:test_command",)))
    said = ("pyproject.toml, line 3: it is no TOML", "go.mod: it names no module", "cut")
    pack = rules_failure(ME, by_facts(), registry=known, unread=said)
    assert pack.cause == "manifest_unread"
    places = [(p.field, p.line) for p in pack.problems]
    assert places == [("pyproject.toml", 3), ("go.mod", 0), ("facts", 0), ("rule rule_no_writes: when", 0)]
    changes = [r.change for r in pack.recovery_suggestions]
    assert changes[:2] == ["facts", "pyproject.toml"]
    assert changes.index("go.mod") < changes.index("rule.when")
    assert "pyproject.toml, line 3" in pack.recovery_suggestions[1].how
    other = make_registry(replace(make_rule("rule_no_writes"), evidence_required=("intent",)))
    for elsewhere in (other, Registry(())):
        assert rules_failure(ME, by_facts(), registry=elsewhere, unread=said).cause == "rule_undecidable"


def test_questions_that_nobody_answered_are_named():
    """001 §7: a run that stops for want of answers says which questions were open; beside conflicts they are not open."""
    pack = answer_failure(ME, questions=QUESTIONS)
    assert pack.cause == "answers_stopped"
    assert [p.field for p in pack.problems] == [q.about for q in QUESTIONS]
    for question, told in zip(QUESTIONS, pack.problems, strict=True):
        assert question.question_text in told.message
        assert question.question_id in told.message
    assert answer_failure(ME, conflicts=CONFLICT, questions=QUESTIONS).cause == "answers_conflict"
    assert len(answer_failure(ME, blocked=STOP, questions=QUESTIONS).problems) == 1
