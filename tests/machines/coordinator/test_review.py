"""The review pack (001 §9): impact, budgets, gates, ways back, actions; and what keeps a plan from being reviewed."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.planning_documents import (
    REGISTRY_CONTENT,
    default_answers,
    make_command,
    make_context_bundle,
    make_decision,
    make_intent,
    make_phase,
    make_plan_inputs,
    make_plan_outputs,
    make_policy,
    make_registry,
    make_workflow,
    planned_command,
    selected_workflow,
)

from steersman.contracts.planning.content import ModelChoice
from steersman.contracts.planning.decisions import RiskFactor
from steersman.contracts.planning.intent import ScopeTargets
from steersman.contracts.planning.policy import PolicyConstraints
from steersman.contracts.planning.questions import QuestionAnswer
from steersman.contracts.planning.review import ReviewPack
from steersman.kernel.canonical import canonical_bytes
from steersman.machines.coordinator.graph import questions_for_inputs
from steersman.machines.coordinator.review import find_review_faults


def budgets(pack):
    return {b.name: (b.limit, b.estimate, b.within) for b in pack.change_impact.budgets}


def test_a_pack_has_everything_a_reviewer_needs():
    """001 §9: change impact, rollback guide, review gates, estimates, actions; its bytes fit its schema."""
    pack = make_plan_outputs().review
    assert budgets(pack) == {
        "max_files": (10, 3, True), "max_commits": (5, 1, True), "max_tokens": (100_000, 4_000, True),
        "max_cost_usd": (10, 0, True), "max_files_per_commit": (50, 3, True),
    }  # fmt: skip
    assert [(a.command_id, a.phase, a.argv) for a in pack.actions][-1] == (
        "run_tests", "validation", ("pytest", "-q"),
    )  # fmt: skip
    assert [g.category for g in pack.review_gates] == ["architecture"]
    assert pack.generated_at == make_intent().created_at
    assert msgspec.json.decode(canonical_bytes(pack), type=ReviewPack) == pack
    assert find_review_faults(make_plan_inputs(), pack, default_answers(make_plan_inputs())) == ((), (), ())


@pytest.mark.parametrize(("budget", "less"), [("max_files", 2), ("max_commits", 0), ("max_tokens", 3_999)])
def test_a_budget_that_does_not_suffice_is_over(budget, less):
    """001 §9 guard: change impact within budget constraints; one less than needed is over, exactly enough is not."""
    for limit, expected in ((less, (budget,)), (less + 1, ())):
        i = make_plan_inputs(make_intent(budgets=replace(make_intent().budgets, **{budget: limit})))
        pack = make_plan_outputs(i).review
        assert tuple(b.name for b in find_review_faults(i, pack, default_answers(i)).over) == expected


@pytest.mark.parametrize(("limit", "over"), [(1, ("max_cost_usd",)), (2, ())])
def test_money_is_counted_in_whole_dollars_upwards(limit, over):
    """A started dollar is a dollar, and one more than the budget has is over it (001 §9)."""
    model = ModelChoice(model="dear", placement="cloud", micro_usd_per_million_tokens=1_000_000_000)
    coder = next(c for c in REGISTRY_CONTENT if c.id == "agent_coder")
    of = make_intent(budgets=replace(make_intent().budgets, max_cost_usd=limit))
    i = make_plan_inputs(of, known=make_registry(replace(coder, models=(model,))))
    pack = make_plan_outputs(i).review
    assert budgets(pack)["max_cost_usd"] == (limit, 2, not over)
    assert tuple(b.name for b in find_review_faults(i, pack, default_answers(i)).over) == over


@pytest.mark.parametrize(("bulk", "within"), [(False, False), (True, True)])
def test_files_per_commit_are_bounded_by_the_policy_unless_it_allows_bulk(bulk, within):
    """max_files_per_commit of the policy holds, unless allow_bulk_changes."""
    under = make_policy(constraints=PolicyConstraints(max_files_per_commit=2, allow_bulk_changes=bulk))
    pack = make_plan_outputs(make_plan_inputs(context=make_context_bundle(under))).review
    assert budgets(pack)["max_files_per_commit"] == (2, 3, within)


def test_files_that_the_scope_names_count_where_something_writes():
    """The greater of what commands usually change and what the scope names one by one."""
    targets = ScopeTargets(files=("a.py", "b.py", "c.py", "d.py", "docs/", "src/**"))
    of = make_intent(scope=replace(make_intent().scope, targets=targets))
    assert make_plan_outputs(make_plan_inputs(of)).review.change_impact.estimated_files.value == 4
    reading = replace(of, planned_commands=of.planned_commands[:1])
    i = make_plan_inputs(reading)
    settled = default_answers(i, missing_command="by_hand")
    assert make_plan_outputs(i, settled).review.change_impact.estimated_files.value == 0


def test_what_an_answer_names_is_the_scope():
    """Files that an answer to an open scope names are in the impact; what leads out of the project never is."""
    i = make_plan_inputs(make_intent(scope=replace(make_intent().scope, targets=ScopeTargets(modules=()))))
    (question,) = questions_for_inputs(i)
    answer = QuestionAnswer(
        question_id=question.question_id, answer="text", text=" src/a.py\n../b.py\n\ndocs/\n"
    )
    settled = replace(default_answers(i), answers=(answer,))
    assert make_plan_outputs(i, settled).review.change_impact.files == ("docs/", "src/a.py")


def test_what_is_left_out_is_said_with_its_reason():
    """Excluded commands are listed, and nothing of them is in actions, rollback or risks."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "deny", "warn"),))
    pack = make_plan_outputs(i).review
    assert pack.excluded == ("edit_files: denied: because of a test",)
    assert "edit_files" not in {a.command_id for a in pack.actions}
    assert "edit_files" not in {s.command_id for s in pack.rollback_guide}
    assert pack.plan_summary.approach[-1] == "2 commands, 1 left out"


def test_risk_is_worked_out_again_for_what_is_left():
    """001 §8: recalculate risk if answers changed decisions."""
    i = make_plan_inputs(
        make_intent(
            planned_commands=(
                *make_intent().planned_commands[:2],
                planned_command("run_tests", risk_level="critical"),
            )
        )
    )
    kept = make_plan_outputs(i, default_answers(i, risk_above_profile="accept_risk")).review.risk_assessment
    less = make_plan_outputs(i).review.risk_assessment
    assert (kept.overall_risk, less.overall_risk) == ("critical", "medium")


def test_the_way_back_is_the_registrys_or_said_to_be_unknown():
    """001 §9: a rollback guide for each action."""
    known = make_registry(make_command("run_tests", "validation", effects=("network",)))
    steps = {
        s.command_id: s.how for s in make_plan_outputs(make_plan_inputs(known=known)).review.rollback_guide
    }
    assert steps == {
        "edit_files": "Revert the commit.",
        "read_code": "Nothing to undo: it only reads.",
        "run_tests": "No way back is known; look before it is carried out.",
    }


def test_a_command_is_carried_out_as_the_facts_have_it_else_as_the_registry():
    """argv from the project's own facts, else from the registry."""
    known = make_registry(
        make_command("run_tests", "validation", argv=("make", "test"), fact="build_command")
    )
    argvs = {
        a.argv
        for a in make_plan_outputs(make_plan_inputs(known=known)).review.actions
        if a.command_id == "run_tests"
    }
    assert argvs == {("make", "test")}


def test_reviews_of_phases_rules_and_intent_have_gates():
    """001 §9 guard: the pack satisfies all requires_review categories, whoever asks for them."""
    flow = make_workflow(
        "bug_fix", make_phase("analysis"), make_phase("implementation", review=("security",)),
        make_phase("validation", "tester"), make_phase("review", "reviewer"),
    )  # fmt: skip
    i = make_plan_inputs(
        known=make_registry(flow),
        ruled=(make_decision("edit_files", "require_review", "warn", review=("data",)),),
    )
    pack = make_plan_outputs(i).review
    assert {g.category for g in pack.review_gates} == {"architecture", "security", "data"}
    bare = replace(pack, review_gates=())
    found = find_review_faults(i, bare, default_answers(i)).uncovered
    assert [p.message.split()[1] for p in found] == ["architecture", "data", "security"]
    assert {p.field for p in found} == {"risk.requires_review"}


def test_an_approved_review_is_no_longer_asked_for():
    """An answer that takes the place of a review takes its gate out of the plan and out of what is required."""
    i = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn", review=("data",)),))
    settled = default_answers(i, requires_review="approve")
    pack = make_plan_outputs(i, settled).review
    assert "data" not in {g.category for g in pack.review_gates}
    assert pack.risk_assessment.requires_review == ("architecture",)
    assert find_review_faults(i, pack, settled).uncovered == ()


def test_a_review_without_a_phase_to_hold_it_is_uncovered():
    """Where no phase is there, no gate is, and the field to change is named."""
    of = make_intent(selected_workflows=(selected_workflow("gone", "review"),))
    i = make_plan_inputs(of)
    pack = make_plan_outputs(i).review
    (problem,) = find_review_faults(i, pack, default_answers(i)).uncovered
    assert problem.field == "risk.requires_review"


@pytest.mark.parametrize("word", ["factor", "overall"])
def test_a_risk_that_nothing_shows_is_unjustified(word):
    """001 §9 guard: risk level justified by evidence."""
    i = make_plan_inputs()
    pack = make_plan_outputs(i).review
    risk = pack.risk_assessment
    worse = (
        replace(risk, factors=(RiskFactor(risk="medium", what="a feeling", evidence_refs=()),))
        if word == "factor"
        else replace(risk, overall_risk="critical")
    )
    (problem,) = find_review_faults(i, replace(pack, risk_assessment=worse), default_answers(i)).unjustified
    assert problem.field == ("risk.drivers" if word == "factor" else "risk.overall")
