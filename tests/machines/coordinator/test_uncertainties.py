"""What is uncertain (001 §6): six causes, each with a case in which it is found and a change of one line without it."""

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    make_command,
    make_context_bundle,
    make_decision,
    make_intent,
    make_phase,
    make_plan_inputs,
    make_policy,
    make_registry,
    make_workflow,
    planned_command,
    selected_workflow,
)

from steersman.contracts.planning.intent import IntentInteraction, ScopeTargets
from steersman.contracts.planning.policy import QuestionRules
from steersman.contracts.planning.questions import DefaultAnswer, QuestionPack, SettledQuestions
from steersman.judges.planning.answers import weigh_default_answers
from steersman.judges.planning.choices import default_answer_word
from steersman.kernel.canonical import canonical_bytes
from steersman.machines.coordinator.graph import draft_plan_graph, questions_for_inputs
from steersman.machines.coordinator.uncertainties import (
    askable_questions,
    choose_round_questions,
    find_draft_uncertainties,
    find_question_flaws,
)

BASE = make_intent()


def with_commands(*commands):
    """The usual intent with these commands in place of its own of the same id."""
    given = {c.command_id: c for c in commands}
    kept = tuple(given.pop(c.command_id, c) for c in BASE.planned_commands)
    return make_intent(planned_commands=(*kept, *given.values()))


def with_targets(**targets):
    return make_intent(scope=replace(BASE.scope, targets=ScopeTargets(**targets)))


def cited(*refs):
    return make_plan_inputs(with_commands(planned_command("run_tests", evidence_refs=refs)))


FACT, OWN = "fact://language/python", "intent://intent_fix_the_leak"
REVIEWED = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
GRAVELY = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "error"),))
WARNED = make_plan_inputs(ruled=(make_decision("edit_files", "warn", "warn"),))
EMPTIED = make_plan_inputs(
    make_intent(selected_workflows=(selected_workflow("bug_fix", "implementation", "validation", "review"),)),
    ruled=(make_decision("edit_files", "deny", "warn"), make_decision("read_code", "deny", "warn")),
)
EMPTY_BUT_FREE = make_plan_inputs(
    make_intent(planned_commands=(*BASE.planned_commands[1:], planned_command("look"))),
    known=make_registry(make_command("look", "analysis")),
    ruled=(make_decision("look", "deny", "warn"),),
)
MANUAL = make_workflow("bug_fix", make_phase("analysis"), make_phase("implementation"), make_phase("validation", "tester"), make_phase("review", "reviewer"))  # fmt: skip
ONLY_LOOKS = make_plan_inputs(ruled=(make_decision("edit_files", "deny", "warn"),))
LOOKING = make_intent(planned_commands=(BASE.planned_commands[0], BASE.planned_commands[2]))
LISTING = make_workflow(
    "bug_fix", make_phase("analysis"),
    make_phase("implementation", needs_command=True, commands=("read_code", "edit_files", "gone_one")),
    make_phase("validation", "tester"), make_phase("review", "reviewer"),
)  # fmt: skip
READING = with_commands(planned_command("read_code"))
NO_TESTS = make_intent(planned_commands=BASE.planned_commands[:2])

# cause, (type, level, default), a case with it, the same but for one line without it
CASES = [
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("scan://ev000000000000"), cited("scan://ev0123456789ab")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("fact://ci/github"), cited("fact://test_command/pytest")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("memory://mem_000000000000"), cited("memory://mem_0123456789ab")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("registry://command/gone_one", FACT), cited("registry://command/run_tests", FACT)),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("registry://command/run_tests@2.0.0", FACT), cited("registry://command/run_tests@1.0.0", FACT)),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("registry://command/run_tests@1.0.0#ffffffffffff", FACT), cited(f"registry://command/run_tests@1.0.0#{make_registry().entries['command', 'run_tests'].digest[:12]}", FACT)),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("doc://README.md"), cited("doc://pyproject.toml#L1")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("rule://rule_gone", FACT), cited("rule://rule_no_writes@1.0.0", FACT)),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("intent://intent_before_this"), cited("intent://intent_fix_the_leak/objective")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("answer://q_nobody_said_this"), cited("doc://pyproject.toml")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("registry://command/run_tests"), cited("registry://command/run_tests", FACT)),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("rule://rule_no_writes@1.0.0"), cited("rule://rule_no_writes@1.0.0", FACT)),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("registry://agent/agent_coder"), cited("registry://agent/agent_coder", FACT)),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited(f"{OWN}/planned_commands/run_tests"), cited(f"{OWN}/objective/goal")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited(f"{OWN}/objective/nothing"), cited(f"{OWN}/objective/success_criteria/0")),
    ("unmet_evidence", ("blocker", "high", "exclude"), cited("doc://pyproject.toml#L4-L5"), cited("doc://pyproject.toml#L2-L4")),
    ("requires_review", ("risk_mitigation", "medium", "use"), REVIEWED, WARNED),
    ("requires_review", ("blocker", "critical", "use"), GRAVELY, WARNED),
    ("ambiguous_scope", ("blocker", "high", "block"), make_plan_inputs(with_targets()), make_plan_inputs(with_targets(files=("a.py",)))),
    ("ambiguous_scope", ("blocker", "high", "block"), make_plan_inputs(with_targets()), make_plan_inputs(with_targets(modules=("a",)))),
    ("ambiguous_scope", ("blocker", "high", "block"), make_plan_inputs(with_targets()), make_plan_inputs(with_targets(areas=("docs",)))),
    (
        "ambiguous_scope",
        ("clarification", "medium", "use"),
        make_plan_inputs(replace(with_targets(), planned_commands=READING.planned_commands), ruled=(make_decision("edit_files", "deny", "warn"),)),
        make_plan_inputs(READING, ruled=(make_decision("edit_files", "deny", "warn"),)),
    ),
    ("missing_command", ("blocker", "high", "block"), make_plan_inputs(NO_TESTS), make_plan_inputs()),
    ("missing_command", ("blocker", "high", "block"), make_plan_inputs(NO_TESTS), make_plan_inputs(NO_TESTS, known=make_registry(MANUAL))),
    ("excluded_command", ("clarification", "low", "use"), make_plan_inputs(ruled=(make_decision("read_code", "deny", "warn"),), known=make_registry(make_command("read_code", "implementation"))), make_plan_inputs()),
    ("excluded_command", ("blocker", "high", "use"), EMPTY_BUT_FREE, EMPTY_BUT_FREE._replace(decisions=make_plan_inputs().decisions)),
    ("missing_command", ("blocker", "high", "block"), EMPTIED, EMPTIED._replace(decisions=make_plan_inputs().decisions)),
    ("missing_command", ("blocker", "high", "block"), ONLY_LOOKS, ONLY_LOOKS._replace(decisions=make_plan_inputs().decisions)),
    ("missing_command", ("blocker", "high", "block"), make_plan_inputs(LOOKING, known=make_registry(LISTING)), make_plan_inputs(LOOKING, known=make_registry(MANUAL))),
    ("ambiguous_scope", ("blocker", "high", "block"), make_plan_inputs(with_targets(files=(".",))), make_plan_inputs(with_targets(files=("src/",)))),
    ("ambiguous_scope", ("blocker", "high", "block"), make_plan_inputs(with_targets(files=("a.py", "./"), modules=("a",))), make_plan_inputs(with_targets(files=("a.py",)))),
    (
        "excluded_command",
        ("clarification", "low", "use"),
        make_plan_inputs(with_commands(planned_command("deploy_it")), known=make_registry(make_command("deploy_it", "release"))),
        make_plan_inputs(with_commands(planned_command("deploy_it")), known=make_registry(make_command("deploy_it", "review"))),
    ),
    ("excluded_command", ("clarification", "low", "use"), make_plan_inputs(with_commands(planned_command("unknown_one"))), make_plan_inputs()),
    (
        "risk_above_profile",
        ("risk_mitigation", "critical", "exclude"),
        make_plan_inputs(with_commands(planned_command("run_tests", risk_level="high"))),
        make_plan_inputs(with_commands(planned_command("run_tests", risk_level="medium"))),
    ),
    (
        "risk_above_profile",
        ("risk_mitigation", "critical", "exclude"),
        make_plan_inputs(known=make_registry(make_command("run_tests", "validation", risk_level="critical")), context=make_context_bundle(make_policy(risk_profile="aggressive_safe"))),
        make_plan_inputs(known=make_registry(make_command("run_tests", "validation", risk_level="critical")), context=make_context_bundle(make_policy(risk_profile="aggressive"))),
    ),
]  # fmt: skip


@for_each_case(("cause", "kind", "there", "gone"), CASES)
def test_each_cause_is_found_and_not_found(cause, kind, there, gone):
    """001 §6: a question for each real uncertainty, with type, level and a tagged default; none without it."""
    found = [q for q in questions_for_inputs(there) if q.cause == cause]
    assert kind in [(q.type, q.blocking_level, q.default_strategy.strategy) for q in found]
    assert [q for q in questions_for_inputs(gone) if q.cause == cause] == []


@for_each_case("there", [case[2] for case in CASES])
def test_every_question_has_what_a_question_needs(there):
    """001 §6 guards: evidence, a default that may hold, affected nodes that are in the graph, answers to choose from."""
    graph = draft_plan_graph(there)
    nodes = {node.node_id for node in graph.nodes}
    questions = find_draft_uncertainties(there, graph)
    assert questions == questions_for_inputs(there)  # placeholders that are there already change nothing
    assert [q.question_id for q in questions] == sorted({q.question_id for q in questions})
    assert find_question_flaws(questions, there.effective, there.bundle.policy) == ((), (), ())
    for question in questions:
        assert question.impact.affected_nodes
        assert set(question.impact.affected_nodes) <= nodes
        assert default_answer_word(question) in {s.answer for s in question.suggested_answers}
        assert msgspec.json.decode(canonical_bytes(question), type=type(question)) == question


def words(i, cause):
    return [[s.answer for s in q.suggested_answers] for q in questions_for_inputs(i) if q.cause == cause]


def test_a_phase_that_only_looks_now_is_told_where_it_can_do_without():
    """Where a phase does not have to show anything, the denied command says that nothing is left to do in it."""
    i = make_plan_inputs(known=make_registry(MANUAL), ruled=(make_decision("edit_files", "deny", "warn"),))
    (question,) = questions_for_inputs(i)
    assert (question.cause, question.type) == ("excluded_command", "blocker")
    assert "Nothing is left to do in bug_fix/implementation." in question.question_text


def test_no_answer_takes_the_place_of_a_review_at_severity_block():
    """An answer that could only be refused is not offered."""
    assert words(GRAVELY, "requires_review") == [["keep_with_review", "leave_out", "approve", "stop"]]
    grave = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "block"),))
    assert words(grave, "requires_review") == [["keep_with_review", "leave_out", "stop"]]


def test_writes_can_be_left_out_only_where_a_plan_is_left():
    """Nobody is offered an answer after which a phase that has to change something could not."""
    assert words(make_plan_inputs(with_targets()), "ambiguous_scope") == [["text", "whole_project", "stop"]]
    assert words(make_plan_inputs(with_targets(), known=make_registry(MANUAL)), "ambiguous_scope") == [
        ["text", "whole_project", "leave_out", "stop"]
    ]


def test_a_phase_that_has_to_change_something_is_done_by_hand_or_not_at_all():
    """Commands that only look are no change; the question names the phase and what rules deny."""
    (question,) = [q for q in questions_for_inputs(ONLY_LOOKS) if q.cause == "missing_command"]
    assert question.about == "bug_fix/implementation"
    assert (
        "has to be changed in bug_fix/implementation, and rules deny what was planned for it (edit_files)"
        in question.question_text
    )
    assert [s.answer for s in question.suggested_answers] == ["by_hand", "stop"]


def test_only_what_leads_nowhere_is_asked_about():
    """A command for which something speaks is asked about with the one reference that is gone, and no other words."""
    (question,) = questions_for_inputs(cited("fact://test_command/pytest", "scan://ev000000000000"))
    assert question.question_text == (
        "scan://ev000000000000, cited for run_tests, leads nowhere; "
        "fact://test_command/pytest can be found and speaks for it. Leave the command out?"
    )
    (mute,) = questions_for_inputs(cited("registry://command/run_tests", "scan://ev000000000000"))
    assert mute.question_text.startswith(
        "Nothing known says that run_tests is right: scan://ev000000000000 cannot"
    )


def test_an_answer_holds_where_a_warning_comes_to_what_was_said():
    """A warning of the rest adds to reason, evidence and nodes; the question stays the same, and so does its answer."""
    more = {
        "reason": "because of a test; of what is left: more",
        "evidence_used": ("fact://language/python", "rule://x"),
    }
    grave = with_commands(planned_command("run_tests", risk_level="high"))
    one = make_plan_inputs(grave, ruled=(make_decision("edit_files", "require_review", "warn"),))
    other = make_plan_inputs(
        grave,
        ruled=(
            make_decision("edit_files", "require_review", "warn", **more),
            make_decision("run_tests", "warn", "warn"),
        ),
    )
    assert [q.question_id for q in questions_for_inputs(one)] == [
        q.question_id for q in questions_for_inputs(other)
    ]
    assert questions_for_inputs(one) != questions_for_inputs(other)


def test_a_denied_command_is_not_asked_about_twice():
    """What rules leave out is not also asked for its risk, its evidence or its review."""
    of = with_commands(planned_command("read_code", risk_level="critical", evidence_refs=("scan://gone",)))
    (question,) = questions_for_inputs(
        make_plan_inputs(of, ruled=(make_decision("read_code", "deny", "warn"),))
    )
    assert question.cause == "excluded_command"


def test_a_plan_without_uncertainties_asks_nothing():
    """001 Guard Conditions: no uncertainties, no questions."""
    assert questions_for_inputs(make_plan_inputs()) == ()


MANY = make_plan_inputs(
    replace(with_targets(), planned_commands=(*BASE.planned_commands[:2], planned_command("run_tests", risk_level="high"))),
    ruled=(make_decision("read_code", "require_review", "error"), make_decision("edit_files", "require_review", "warn")),
)  # fmt: skip
# By cause: two reviews (one blocker/critical, one risk_mitigation/medium), scope blocker/high, risk risk_mitigation/critical


def asked(
    i, *, mode="interactive", budget=10, asking="conceptual_only", under=None, consumed=0, settled=None
):
    """What is chosen for these inputs when they are planned like this."""
    policy_ = under or i.bundle.policy
    effective = i.effective._replace(mode=mode, budget=budget, asking=asking)
    return choose_round_questions(
        questions_for_inputs(i), effective, policy_, consumed=consumed, round_=1, plan_id=i.plan_id,
        intent=i.intent, settled=settled,
    )  # fmt: skip


def kinds(questions):
    return [(q.cause, q.blocking_level) for q in questions]


def test_interactive_asks_anything_blockers_first():
    """001 §6: interactive allows any type; blockers come first, then by level."""
    chosen = asked(MANY)
    assert kinds(chosen.pack.questions) == [
        ("requires_review", "critical"),
        ("ambiguous_scope", "high"),
        ("risk_above_profile", "critical"),
        ("requires_review", "medium"),
    ]
    assert chosen.defaulted == chosen.over == ()
    assert chosen.consumed == 4
    assert chosen.pack.policy_constraints.budget_remaining == 6
    assert msgspec.json.decode(canonical_bytes(chosen.pack), type=QuestionPack) == chosen.pack


@pytest.mark.parametrize(
    ("mode", "asking"), [("semi_auto", "blockers_only"), ("interactive", "blockers_only")]
)
def test_semi_auto_asks_blockers_only(mode, asking):
    """001 §6: semi_auto asks only blockers; the rest takes its default."""
    chosen = asked(MANY, mode=mode, asking=asking)
    assert {q.type for q in chosen.pack.questions} == {"blocker"}
    rest = {q.question_id for q in questions_for_inputs(MANY)} - {
        q.question_id for q in chosen.pack.questions
    }
    assert {q.question_id for q in chosen.defaulted} == rest != set()


@for_each_case(
    ("mode", "asking", "budget"),
    [("full_auto", "never", 0), ("full_auto", "conceptual_only", 9), ("interactive", "never", 9), ("interactive", "conceptual_only", 0)],
)  # fmt: skip
def test_full_auto_and_an_empty_budget_ask_nothing(mode, asking, budget):
    """Red line 2: full_auto never asks; nor does a budget of zero. Everything takes its default."""
    chosen = asked(MANY, mode=mode, asking=asking, budget=budget)
    assert chosen.pack is None
    assert len(chosen.defaulted) == 4
    assert chosen.consumed == 0
    assert (
        askable_questions(
            questions_for_inputs(MANY),
            MANY.effective._replace(mode=mode, asking=asking, budget=budget),
            make_policy(),
        )
        == ()
    )


def test_blockers_over_the_budget_are_counted_and_lesser_ones_default():
    """001 §6 failure branch: a blocker that the budget does not cover stops the run; lesser questions take their default."""
    assert kinds(asked(MANY, budget=1).over) == [("ambiguous_scope", "high")]
    chosen = asked(MANY, budget=2)
    assert chosen.over == ()
    assert len(chosen.pack.questions) == len(chosen.defaulted) == 2


def test_the_budget_is_that_of_all_rounds():
    """What earlier rounds have asked counts."""
    assert kinds(asked(MANY, budget=3, consumed=2).over) == [("ambiguous_scope", "high")]
    spent = asked(MANY, budget=3, consumed=5)
    assert spent.pack is None
    assert len(spent.over) == 2


def test_a_question_that_comes_up_again_costs_nothing_again():
    """001 §6: after a conflict the same question goes out once more, also where the budget is used up; a new one does not."""
    first = asked(MANY, budget=4)
    ids = tuple(sorted(q.question_id for q in first.pack.questions))
    none = SettledQuestions(plan_id=MANY.plan_id, rounds=1, asked=ids, answers=())
    again = asked(MANY, budget=4, consumed=4, settled=none)
    assert again.pack.questions == first.pack.questions
    assert (again.consumed, again.over, again.pack.policy_constraints.budget_remaining) == (4, (), 0)
    blockers = [q for q in first.pack.questions if q.type == "blocker"]
    partly = SettledQuestions(plan_id=MANY.plan_id, rounds=1, asked=(blockers[1].question_id,), answers=())
    chosen = asked(MANY, budget=4, consumed=4, settled=partly)
    assert (chosen.pack.questions, chosen.over) == ((blockers[1],), (blockers[0],))


def test_what_is_settled_is_not_asked_again():
    """A later round asks only what is still open."""
    found = questions_for_inputs(MANY)
    known = weigh_default_answers(found[1:], MANY.plan_id, make_policy()).settled
    assert [q.question_id for q in asked(MANY, settled=known).pack.questions] == [found[0].question_id]


def test_a_type_that_the_policy_does_not_allow_is_not_asked():
    """001 §6: blocking_level and type have to be appropriate for the policy."""
    under = make_policy(question_rules=QuestionRules(allowed_types=("clarification", "risk_mitigation")))
    chosen = asked(MANY, under=under)
    assert {q.type for q in chosen.pack.questions} == {"risk_mitigation"}
    assert len(chosen.defaulted) == 2
    assert len(find_question_flaws(questions_for_inputs(MANY), MANY.effective, under).unfit) == 2


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (QuestionRules(min_evidence_count=3), 2),  # scope and risk have one and two
        (QuestionRules(min_evidence_count=3, require_evidence=False), 0),
    ],
)
def test_a_question_with_too_little_evidence_may_not_go_out(rules, found):
    """001 §6 guard: all questions have evidence_refs, as many as the policy asks for."""
    assert len(asked(MANY, under=make_policy(question_rules=rules)).unevidenced) == found


@for_each_case(
    ("default", "flaws"),
    [
        (DefaultAnswer(strategy="use", value="accept_risk", reason="why not"), 1),
        (DefaultAnswer(strategy="use", value="nonsense", reason="why not"), 1),
        (DefaultAnswer(strategy="use", value="leave_out", reason="safe"), 0),
        (DefaultAnswer(strategy="block", reason="safe"), 0),
    ],
)
def test_the_default_of_a_critical_question_never_approves(default, flaws):
    """DESIGN 001: a critical default may not approve, and a default is one of the answers."""
    i = make_plan_inputs(with_commands(planned_command("run_tests", risk_level="high")))
    (question,) = questions_for_inputs(i)
    changed = replace(question, default_strategy=default)
    assert len(find_question_flaws((changed,), i.effective, make_policy()).undefaulted) == flaws


def test_a_lesser_question_may_approve_by_default():
    """Only critical questions are held to it."""
    i = make_plan_inputs(
        replace(with_targets(), planned_commands=BASE.planned_commands[:1]), known=make_registry(MANUAL)
    )
    (question,) = questions_for_inputs(i)
    assert default_answer_word(question) == "whole_project"
    assert find_question_flaws((question,), i.effective, make_policy()).undefaulted == ()


def test_the_effective_mode_is_used_end_to_end():
    """An intent in semi_auto with a policy for interaction asks blockers only."""
    of = make_intent(
        interaction=IntentInteraction(mode="semi_auto", question_budget=5, question_policy="blockers_only")
    )
    i = make_plan_inputs(of, ruled=(make_decision("edit_files", "require_review", "warn"),))
    chosen = choose_round_questions(
        questions_for_inputs(i), i.effective, i.bundle.policy, consumed=0, round_=1, plan_id=i.plan_id,
        intent=of,
    )  # fmt: skip
    assert chosen.pack is None
    assert kinds(chosen.defaulted) == [("requires_review", "medium")]
