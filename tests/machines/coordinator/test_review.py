"""The review pack (001 §9): impact, budgets, gates, ways back, actions; and what keeps a plan from being reviewed."""

import msgspec
import pytest
from msgspec.structs import replace
from specimens import (
    CONTENT,
    bundle,
    command,
    decision,
    inputs,
    intent,
    outputs,
    phase,
    planned,
    policy,
    question_answers,
    registry,
    selected,
    workflow,
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
    pack = outputs().review
    assert budgets(pack) == {
        "max_files": (10, 3, True),
        "max_commits": (5, 1, True),
        "max_tokens": (100_000, 4_000, True),
        "max_cost_usd": (10, 0, True),
        "max_files_per_commit": (50, 3, True),
    }
    assert [(a.command_id, a.phase, a.argv) for a in pack.actions][-1] == (
        "run_tests",
        "validation",
        ("pytest", "-q"),
    )
    assert [g.category for g in pack.review_gates] == ["architecture"]
    assert pack.generated_at == intent().created_at
    assert msgspec.json.decode(canonical_bytes(pack), type=ReviewPack) == pack
    assert find_review_faults(inputs(), pack, question_answers(inputs())) == ((), (), ())


@pytest.mark.parametrize(("budget", "less"), [("max_files", 2), ("max_commits", 0), ("max_tokens", 3_999)])
def test_a_budget_that_does_not_suffice_is_over(budget, less):
    """001 §9 guard: change impact within budget constraints; one less than needed is over, exactly enough is not."""
    for limit, expected in ((less, (budget,)), (less + 1, ())):
        i = inputs(intent(budgets=replace(intent().budgets, **{budget: limit})))
        pack = outputs(i).review
        assert tuple(b.name for b in find_review_faults(i, pack, question_answers(i)).over) == expected


@pytest.mark.parametrize(("limit", "over"), [(1, ("max_cost_usd",)), (2, ())])
def test_money_is_counted_in_whole_dollars_upwards(limit, over):
    """A started dollar is a dollar, and one more than the budget has is over it (001 §9)."""
    model = ModelChoice(model="dear", placement="cloud", micro_usd_per_million_tokens=1_000_000_000)
    coder = next(c for c in CONTENT if c.id == "agent_coder")
    of = intent(budgets=replace(intent().budgets, max_cost_usd=limit))
    i = inputs(of, known=registry(replace(coder, models=(model,))))
    pack = outputs(i).review
    assert budgets(pack)["max_cost_usd"] == (limit, 2, not over)
    assert tuple(b.name for b in find_review_faults(i, pack, question_answers(i)).over) == over


@pytest.mark.parametrize(("bulk", "within"), [(False, False), (True, True)])
def test_files_per_commit_are_bounded_by_the_policy_unless_it_allows_bulk(bulk, within):
    """max_files_per_commit of the policy holds, unless allow_bulk_changes."""
    under = policy(constraints=PolicyConstraints(max_files_per_commit=2, allow_bulk_changes=bulk))
    pack = outputs(inputs(context=bundle(under))).review
    assert budgets(pack)["max_files_per_commit"] == (2, 3, within)


def test_files_that_the_scope_names_count_where_something_writes():
    """The greater of what commands usually change and what the scope names one by one."""
    targets = ScopeTargets(files=("a.py", "b.py", "c.py", "d.py", "docs/", "src/**"))
    of = intent(scope=replace(intent().scope, targets=targets))
    assert outputs(inputs(of)).review.change_impact.estimated_files.value == 4
    reading = replace(of, planned_commands=of.planned_commands[:1])
    i = inputs(reading)
    settled = question_answers(i, missing_command="by_hand")
    assert outputs(i, settled).review.change_impact.estimated_files.value == 0


def test_what_an_answer_names_is_the_scope():
    """Files that an answer to an open scope names are in the impact; what leads out of the project never is."""
    i = inputs(intent(scope=replace(intent().scope, targets=ScopeTargets(modules=()))))
    (question,) = questions_for_inputs(i)
    answer = QuestionAnswer(
        question_id=question.question_id, answer="text", text=" src/a.py\n../b.py\n\ndocs/\n"
    )
    settled = replace(question_answers(i), answers=(answer,))
    assert outputs(i, settled).review.change_impact.files == ("docs/", "src/a.py")


def test_what_is_left_out_is_said_with_its_reason():
    """Excluded commands are listed, and nothing of them is in actions, rollback or risks."""
    i = inputs(ruled=(decision("edit_files", "deny", "warn"),))
    pack = outputs(i).review
    assert pack.excluded == ("edit_files: denied: because of a test",)
    assert "edit_files" not in {a.command_id for a in pack.actions}
    assert "edit_files" not in {s.command_id for s in pack.rollback_guide}
    assert pack.plan_summary.approach[-1] == "2 commands, 1 left out"


def test_risk_is_worked_out_again_for_what_is_left():
    """001 §8: recalculate risk if answers changed decisions."""
    i = inputs(
        intent(planned_commands=(*intent().planned_commands[:2], planned("run_tests", risk_level="critical")))
    )
    kept = outputs(i, question_answers(i, risk_above_profile="accept_risk")).review.risk_assessment
    less = outputs(i).review.risk_assessment
    assert (kept.overall_risk, less.overall_risk) == ("critical", "medium")


def test_the_way_back_is_the_registrys_or_said_to_be_unknown():
    """001 §9: a rollback guide for each action."""
    known = registry(command("run_tests", "validation", effects=("network",)))
    steps = {s.command_id: s.how for s in outputs(inputs(known=known)).review.rollback_guide}
    assert steps == {
        "edit_files": "Revert the commit.",
        "read_code": "Nothing to undo: it only reads.",
        "run_tests": "No way back is known; look before it is carried out.",
    }


def test_a_command_is_carried_out_as_the_facts_have_it_else_as_the_registry():
    """argv from the project's own facts, else from the registry."""
    known = registry(command("run_tests", "validation", argv=("make", "test"), fact="build_command"))
    argvs = {a.argv for a in outputs(inputs(known=known)).review.actions if a.command_id == "run_tests"}
    assert argvs == {("make", "test")}


def test_reviews_of_phases_rules_and_intent_have_gates():
    """001 §9 guard: the pack satisfies all requires_review categories, whoever asks for them."""
    flow = workflow(
        "bug_fix",
        phase("analysis"),
        phase("implementation", review=("security",)),
        phase("validation", "tester"),
        phase("review", "reviewer"),
    )
    i = inputs(
        known=registry(flow), ruled=(decision("edit_files", "require_review", "warn", review=("data",)),)
    )
    pack = outputs(i).review
    assert {g.category for g in pack.review_gates} == {"architecture", "security", "data"}
    bare = replace(pack, review_gates=())
    found = find_review_faults(i, bare, question_answers(i)).uncovered
    assert [p.message.split()[1] for p in found] == ["architecture", "data", "security"]
    assert {p.field for p in found} == {"risk.requires_review"}


def test_an_approved_review_is_no_longer_asked_for():
    """An answer that takes the place of a review takes its gate out of the plan and out of what is required."""
    i = inputs(ruled=(decision("edit_files", "require_review", "warn", review=("data",)),))
    settled = question_answers(i, requires_review="approve")
    pack = outputs(i, settled).review
    assert "data" not in {g.category for g in pack.review_gates}
    assert pack.risk_assessment.requires_review == ("architecture",)
    assert find_review_faults(i, pack, settled).uncovered == ()


def test_a_review_without_a_phase_to_hold_it_is_uncovered():
    """Where no phase is there, no gate is, and the field to change is named."""
    of = intent(selected_workflows=(selected("gone", "review"),))
    i = inputs(of)
    pack = outputs(i).review
    (problem,) = find_review_faults(i, pack, question_answers(i)).uncovered
    assert problem.field == "risk.requires_review"


@pytest.mark.parametrize("word", ["factor", "overall"])
def test_a_risk_that_nothing_shows_is_unjustified(word):
    """001 §9 guard: risk level justified by evidence."""
    i = inputs()
    pack = outputs(i).review
    risk = pack.risk_assessment
    worse = (
        replace(risk, factors=(RiskFactor(risk="medium", what="a feeling", evidence_refs=()),))
        if word == "factor"
        else replace(risk, overall_risk="critical")
    )
    (problem,) = find_review_faults(i, replace(pack, risk_assessment=worse), question_answers(i)).unjustified
    assert problem.field == ("risk.drivers" if word == "factor" else "risk.overall")
