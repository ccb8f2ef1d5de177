"""What is left of a plan is held against rules, phases and mode once more (001 §8: recalculate, validate)."""

import pytest
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    make_context_bundle,
    make_decision,
    make_intent,
    make_plan_inputs,
    make_policy,
)

from steersman.contracts.planning.intent import IntentInteraction
from steersman.contracts.planning.questions import QuestionAnswer, SettledQuestions
from steersman.judges.planning.choices import default_answer_word
from steersman.judges.planning.intent import resolve_effective_asking
from steersman.machines.coordinator.graph import questions_for_inputs
from steersman.machines.coordinator.remaining import (
    NO_OBJECTIONS,
    find_answer_objections,
    find_remaining_objections,
)


def settled(i, answers=()):
    said = tuple(QuestionAnswer(question_id=q, answer=word, text=text) for q, word, text in answers)
    return SettledQuestions(plan_id=i.plan_id, rounds=1, asked=(), answers=said)


def held(i, answers=(), ruled=None):
    """What stands against the rest; rules say what they said before unless `ruled` is given."""
    made = settled(i, answers)
    seen = []

    def adjudicate(left):
        seen.append(left)
        before = i.decided()
        return tuple((ruled or {}).get(c.command_id, before[c.command_id]) for c in left.planned_commands)

    return find_remaining_objections(i, made, adjudicate), seen[0]


def test_a_plan_that_nobody_has_changed_stands():
    """Without answers the rest is the whole, and nothing stands against it."""
    found, left = held(make_plan_inputs())
    assert not found.any()
    assert not NO_OBJECTIONS.any()
    assert found.decisions == make_plan_inputs().decisions
    assert left.planned_commands == make_intent().planned_commands


@for_each_case(
    "now",
    [
        make_decision("edit_files", "deny", "warn"),
        make_decision("edit_files", "require_review", "warn"),
        make_decision("edit_files", undecidable=True),
        make_decision("edit_files", conflict="two rules"),
    ],
)
def test_a_rule_that_is_stricter_about_the_rest_stops_it(now):
    """A deny, a review that nobody was asked about, a question without an answer; said of the whole, it stands."""
    found, _ = held(make_plan_inputs(), ruled={"edit_files": now})
    assert [p.field for p in found.ruled_out] == ["planned_commands.edit_files"]
    before = make_plan_inputs(ruled=(now,))
    if now.decision == "require_review":
        assert held(before)[0].ruled_out == ()


def test_a_review_by_another_rule_is_not_the_one_that_was_answered():
    """A command that one rule wants reviewed is not free of a second one that speaks only about the rest."""
    first = make_decision("edit_files", "require_review", "warn")
    fired = replace(first.rules[0], rule_id="rule_second")
    second = replace(first, severity="block", review=("security",), rules=(*first.rules, fired))
    i = make_plan_inputs(ruled=(first,))
    found, _ = held(
        i, [(q.question_id, "approve", "") for q in questions_for_inputs(i)], ruled={"edit_files": second}
    )
    assert [p.field for p in found.ruled_out] == ["planned_commands.edit_files"]
    assert "rule_second" in found.ruled_out[0].message


def test_a_warning_about_the_rest_is_shown_with_the_plan():
    """What only warns stops nothing; it takes the place of silence in the decisions that are frozen."""
    now = make_decision("edit_files", "warn", "warn")
    found, _ = held(make_plan_inputs(), ruled={"edit_files": now})
    assert not found.any()
    assert now in found.decisions
    before = make_plan_inputs(ruled=(make_decision("edit_files", "require_review", "warn"),))
    assert now not in held(before, ruled={"edit_files": now})[0].decisions


def test_rules_object_to_what_answers_have_left():
    """001 §7: a deny or a rule without a verdict is an objection; a review is none, and a command that is out is not asked."""
    i = make_plan_inputs(ruled=(make_decision("read_code", "deny", "warn"),))
    says = {
        "edit_files": make_decision("edit_files", "require_review", "block"),
        "run_tests": make_decision("run_tests", "deny", "warn"),
    }
    found = find_answer_objections(
        i, settled(i), lambda left: tuple(says[c.command_id] for c in left.planned_commands)
    )
    assert found == {"run_tests": says["run_tests"]}


@pytest.mark.parametrize("said", ["warn", "require_review"])
def test_a_warning_about_the_rest_stands_beside_what_was_said_before(said):
    """A second rule that warns only of the rest is in the frozen decision too, and takes nothing of it back."""
    first = make_decision("edit_files", said, "warn")
    silent = replace(first.rules[0], rule_id="rule_second", decision="warn", outcome="silent")
    fired = replace(
        silent, outcome="fired", reason="nothing checks it", evidence_used=("memory://mem_0123456789ab",)
    )
    before = make_plan_inputs(ruled=(replace(first, rules=(*first.rules, silent)),))
    found, _ = held(before, ruled={"edit_files": replace(first, rules=(*first.rules, fired))})
    (now,) = [d for d in found.decisions if d.command_id == "edit_files"]
    assert not found.any()
    assert now.rules == (*first.rules, fired)
    assert (now.decision, now.severity, now.review) == (first.decision, first.severity, first.review)
    assert now.reason == f"{first.reason}; of what is left rule_second (warn, warn): nothing checks it"
    assert now.evidence_used == ("fact://language/python", "memory://mem_0123456789ab")


def test_an_allow_whose_reason_is_gone_outweighs_nothing():
    """A rule allowed a command because of another one, and that is left out: the review that it outweighed stops the plan;
    a warning that it outweighed is shown, and an allow that nothing speaks for any more cites nothing."""
    wants = make_decision("edit_files", "require_review", "warn")
    said = replace(
        wants.rules[0], rule_id="rule_allows", decision="allow", severity="error", reason="it is linted"
    )
    gone = replace(said, outcome="silent")
    was = make_decision("edit_files", "allow", "error", reason="it is linted", rules=(*wants.rules, said))
    now = replace(wants, rules=(*wants.rules, gone))
    (told,) = held(make_plan_inputs(ruled=(was,)), ruled={"edit_files": now})[0].ruled_out
    assert (told.field, "rule_no_writes" in told.message) == ("planned_commands.edit_files", True)
    warns = make_decision("edit_files", "warn", "warn")
    was = replace(was, rules=(*warns.rules, said))
    for now in (replace(warns, rules=(*warns.rules, gone)), make_decision("edit_files", rules=(gone,))):
        found, _ = held(make_plan_inputs(ruled=(was,)), ruled={"edit_files": now})
        assert not found.any()
        assert now in found.decisions
        assert was not in found.decisions


def test_commands_that_are_missing_because_their_evidence_is_are_named():
    """By field and reference; a command that was left out for another reason is not among them."""
    stale = ("fact://language/python", "scan://ev000000000000", "fact://language/cobol")
    planned_ = tuple(
        replace(c, evidence_refs=stale) if c.command_id == "run_tests" else c
        for c in make_intent().planned_commands
    )
    i = make_plan_inputs(
        make_intent(planned_commands=planned_), ruled=(make_decision("edit_files", "deny", "warn"),)
    )
    found, _ = held(i, [(q.question_id, default_answer_word(q), "") for q in questions_for_inputs(i)])
    (problem,) = found.groundless
    assert problem.field == "planned_commands[2].evidence_refs"
    assert (
        problem.message
        == "run_tests is left out: fact://language/cobol, scan://ev000000000000 cannot be found"
    )
    assert "the project has changed since" in problem.fix
    assert found.emptied


def test_a_plan_without_any_command_is_none():
    """Nothing planned is nothing to propose, unless a person does it by hand."""
    bare = make_plan_inputs(replace(make_intent(), planned_commands=()), ruled=())
    assert "planned_commands" in [p.field for p in held(bare)[0].emptied]
    by_hand = [
        (q.question_id, "by_hand", "") for q in questions_for_inputs(bare) if q.cause == "missing_command"
    ]
    assert by_hand
    assert held(bare, by_hand)[0].emptied == ()


def test_rules_see_the_scope_that_was_answered():
    """Files that an answer names are the files of the plan."""
    bare = make_intent()
    open_ = replace(bare, scope=replace(bare.scope, targets=replace(bare.scope.targets, files=())))
    i = make_plan_inputs(open_)
    (asked,) = questions_for_inputs(i)
    _, left = held(i, [(asked.question_id, "text", "payments/a.py")])
    assert left.scope.targets.files == ("payments/a.py",)
    rest, left = held(i, [(asked.question_id, "whole_project", "")])
    assert left.scope.targets.files == asked.within
    (told,) = [f for f in rest.risk.factors if f.what == "anything in the project may be changed"]
    assert (rest.risk.overall_risk, told.evidence_refs) == (told.risk, (f"answer://{asked.question_id}",))


def uncited(*ids):
    """An intent whose evidence for some commands leads nowhere."""
    made = make_intent()
    return replace(made, planned_commands=tuple(
        replace(c, evidence_refs=("fact://language/cobol",)) if c.command_id in ids else c for c in made.planned_commands
    ))  # fmt: skip


@for_each_case(
    ("ids", "fields"),
    [
        ((), []),
        (("run_tests",), ["selected_workflows.bug_fix/validation"]),
        (("edit_files",), ["selected_workflows.bug_fix/implementation"]),
        (("read_code",), []),
        (
            ("read_code", "edit_files", "run_tests"),
            ["planned_commands", "selected_workflows.bug_fix/implementation", "selected_workflows.bug_fix/validation"],
        ),
    ],
)  # fmt: skip
def test_a_phase_that_has_to_show_something_is_not_left_empty(ids, fields):
    """Whatever has left its commands out; and a plan without any command is none."""
    i = make_plan_inputs(uncited(*ids))
    found, _ = held(i, [(q.question_id, "leave_out", "") for q in questions_for_inputs(i)])
    assert [p.field for p in found.emptied] == fields


def test_high_risk_is_not_planned_alone():
    """I3 holds for the risk of what is left, not only for what the author has stated."""
    mode = IntentInteraction(mode="full_auto", question_budget=0, question_policy="never")
    under = make_policy("full_auto")
    for risk, fields in (("medium", []), ("high", ["interaction.mode"])):
        made = make_intent(interaction=mode)
        made = replace(made, risk=replace(made.risk, overall=risk))
        i = make_plan_inputs(made, context=make_context_bundle(under))
        assert i.effective == resolve_effective_asking(made, under)
        assert [p.field for p in held(i)[0].alone] == fields
