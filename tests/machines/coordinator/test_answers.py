"""Answers (001 §7): what is wrong with their form, what contradicts a rule, and what holds where nobody answers."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.cases import for_each_case
from tests.support.planning_documents import (
    make_decision,
    make_intent,
    make_plan_inputs,
    make_policy,
    planned_command,
)

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.intent import LockScope, ScopeTargets
from steersman.contracts.planning.questions import AnswerPack, QuestionAnswer, SettledQuestions
from steersman.judges.planning.answers import (
    default_answers,
    find_answer_pack_problems,
    find_answer_problems,
    unanswered_critical_questions,
    weigh_default_answers,
    weigh_round_answers,
)
from steersman.judges.planning.choices import explain_settled_answer
from steersman.kernel.canonical import canonical_bytes, plain_value
from steersman.machines.coordinator.context import (
    CoordinatorContext,
    upcast_add_answered_by,
    upcast_add_time_left,
)
from steersman.machines.coordinator.graph import questions_for_inputs
from steersman.machines.coordinator.uncertainties import choose_round_questions
from steersman.machines.coordinator.work import answers_gate_input

OPEN = make_intent(scope=replace(make_intent().scope, targets=ScopeTargets()))


def packed(i, *, budget=10, round_=1, settled=None):
    effective = i.effective._replace(budget=budget)
    chosen = choose_round_questions(
        questions_for_inputs(i), effective, i.bundle.policy, consumed=0, round_=round_, plan_id=i.plan_id,
        intent=i.intent, settled=settled,
    )  # fmt: skip
    return chosen.pack


GRAVE = make_plan_inputs(OPEN, ruled=(make_decision("edit_files", "require_review", "error"),))
PACK = packed(GRAVE)
REVIEW, SCOPE = PACK.questions


def said(*pairs, pack=PACK, **more):
    answers = [{"question_id": q.question_id, "answer": word, **more} for q, word in pairs]
    return {"schema_version": "0.9.2", "question_pack_id": pack.pack_id, "answers": answers}


def fields(raw, pack=PACK):
    return [problem.field for problem in find_answer_pack_problems(pack, raw)]


def given_answers(*pairs, pack=PACK, **more):
    raw = said(*pairs, pack=pack, **more)
    assert find_answer_pack_problems(pack, raw) == ()
    return msgspec.convert(raw, AnswerPack)


def against(*pairs, says=None):
    """Rules that object where one of these answers holds."""
    told = {(q.question_id, word) for q, word in pairs}

    def object_to(settled):
        broken = told & {(a.question_id, a.answer) for a in settled.answers}
        return {"edit_files": says or DENY} if broken else {}

    return object_to


def weighed_(pack, given_=None, object_to=None, person="ann", before=None):
    answers = given_.answers if given_ else ()
    return weigh_round_answers(
        pack, answers, make_policy(), object_to or against(), person=person, before=before
    )


def test_the_questions_of_these_tests():
    """One critical blocker about a review, one high blocker about the scope."""
    assert [(q.cause, q.blocking_level) for q in PACK.questions] == [
        ("requires_review", "critical"),
        ("ambiguous_scope", "high"),
    ]


def test_answers_with_suggested_words_are_taken():
    """001 §7 guard: the AnswerPack conforms to its schema and answers what is asked."""
    assert find_answer_pack_problems(PACK, said((REVIEW, "keep_with_review"), (SCOPE, "whole_project"))) == ()
    assert find_answer_pack_problems(PACK, said((REVIEW, "leave_out"))) == ()


@for_each_case(
    ("root", "file", "why"),
    [
        (".", ".git/hooks/pre-commit", "git's"),
        (".", "src/\nsub/.GIT/x", "git's"),
        (".", ".steersman/registry/rules/x.yaml", "steersman's"),
        (".", "steersman.toml", "steersman's"),
        (".", "../x", "leaves the repository"),
        (".", "src//chandler", "another way to write src/chandler"),
        ("src", "docs/a.md", "lies outside of src"),
        ("src", ".", "lies outside of src"),
    ],
)
def test_an_answer_names_nothing_that_a_plan_may_not_reach(root, file, why):
    """001 §7: what is git's, steersman's or outside scope.repo_root is a problem of the pack, with the reason."""
    pack = packed(make_plan_inputs(replace(OPEN, scope=replace(OPEN.scope, repo_root=root))))
    (told,) = find_answer_pack_problems(pack, said((pack.questions[0], "text"), pack=pack, text=file))
    assert told.field == "answers[0].text"
    assert why in told.message


def test_an_answer_stays_within_the_lock():
    """A lock on files bounds what an answer can name."""
    locked = replace(OPEN.constraints, lock_scope=LockScope(mode="files", paths=("docs/",)))
    pack = packed(make_plan_inputs(replace(OPEN, constraints=locked)))
    assert (
        find_answer_pack_problems(pack, said((pack.questions[0], "text"), pack=pack, text="docs/a.md")) == ()
    )
    (told,) = find_answer_pack_problems(pack, said((pack.questions[0], "text"), pack=pack, text="src/a.py"))
    assert told.message == "src/a.py lies outside of docs/."


def test_an_answer_names_what_lies_in_the_root():
    """The same answer inside the root is taken, and the question says where that is."""
    pack = packed(make_plan_inputs(replace(OPEN, scope=replace(OPEN.scope, repo_root="src"))))
    assert (
        find_answer_pack_problems(
            pack, said((pack.questions[0], "text"), pack=pack, text="src/a.py\nsrc/b/\nsrc/**")
        )
        == ()
    )
    assert {s.meaning for s in pack.questions[0].suggested_answers} >= {"Anything in src."}


@for_each_case(
    ("raw", "field"),
    [
        ({**said((REVIEW, "leave_out")), "extra": 1}, "extra"),
        ({"question_pack_id": PACK.pack_id}, "answers"),
        ({**said((REVIEW, "leave_out")), "question_pack_id": "questions_0000000000000000"}, "question_pack_id"),
        (said((REVIEW, "leave_out"), (REVIEW, "stop")), "answers[1].question_id"),
        (said((REVIEW, "leave_out"), (replace(SCOPE, question_id="q_0000000000000000"), "stop")), "answers[1].question_id"),
        (said((REVIEW, "yes")), "answers[0].answer"),
        (said((REVIEW, "include")), "answers[0].answer"),
        (said((REVIEW, "leave_out"), provided_by="fallback"), "answers[0].provided_by"),
        (said((REVIEW, "leave_out"), answered_by="bob"), "answers[0].answered_by"),
        (said((REVIEW, "leave_out"), (SCOPE, "text")), "answers[1].text"),
        (said((SCOPE, "text"), (REVIEW, "leave_out"), text="../etc/passwd"), "answers[0].text"),
        (said((SCOPE, "text"), (REVIEW, "leave_out"), text="/etc/passwd"), "answers[0].text"),
        (said((SCOPE, "whole_project")), "answers"),
        ([], "document"),
        ("stop", "document"),
        (None, "document"),
        (float("nan"), "document"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_answer_pack_names_its_field(raw, field):
    """001 §7: an AnswerPack that cannot be taken is refused with all its problems, each with its field."""
    found = find_answer_pack_problems(PACK, raw)
    assert field in [problem.field for problem in found]
    assert all(isinstance(p, DocumentProblem) and p.message for p in found)


def test_all_problems_are_told_at_once():
    """Nobody mends one thing to hear of the next."""
    raw = {
        **said((REVIEW, "yes"), (SCOPE, "no"), provided_by="policy_default"),
        "question_pack_id": "questions_0000000000000000",
    }
    assert len(fields(raw)) == 5


def test_text_that_is_none_is_refused_too():
    """What no tape can hold is a problem like any other."""
    assert fields(
        {**said((REVIEW, "leave_out")), "answers": [{"question_id": REVIEW.question_id, "answer": "\ud800"}]}
    )


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda s: st.lists(s, max_size=3) | st.dictionaries(st.sampled_from(["answers", "question_pack_id", "schema_version", "question_id", "answer", "text"]), s, max_size=4)))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_no_value_makes_it_fall_over(raw):
    """Whatever is given is answered with problems; nothing but a whole pack is taken."""
    assert find_answer_pack_problems(PACK, raw)


def test_critical_questions_have_to_be_answered():
    """001 §7 guard: all critical questions answered; a high one may be left to its default."""
    given_ = msgspec.convert(said((SCOPE, "whole_project")), AnswerPack)
    assert unanswered_critical_questions(PACK, given_.answers) == (REVIEW,)
    assert unanswered_critical_questions(PACK, given_answers((REVIEW, "stop")).answers) == ()


def test_answers_hold_and_silence_takes_the_default():
    """001 §7: what was answered is settled as answered, what was not as its default, and who said so is there."""
    weighed = weighed_(PACK, given_answers((REVIEW, "leave_out")))
    assert {a.question_id: (a.answer, a.provided_by, a.answered_by) for a in weighed.settled.answers} == {
        REVIEW.question_id: ("leave_out", "human", "ann"),
        SCOPE.question_id: ("stop", "fallback", "ann"),
    }
    assert [a.question_id for a in weighed.blocked] == [SCOPE.question_id]
    assert weighed.conflicts == ()
    assert weighed.settled.rounds == 1
    assert weighed.settled.asked == tuple(sorted((REVIEW.question_id, SCOPE.question_id)))
    assert msgspec.json.decode(canonical_bytes(weighed.settled), type=SettledQuestions) == weighed.settled


DENY = make_decision("edit_files", "deny", "warn")


def test_an_answer_without_which_no_rule_objects_is_a_conflict():
    """001 §7: the rule and the command are named; what others have said holds, and one that pleases the rule is none."""
    given_ = given_answers((REVIEW, "approve"), (SCOPE, "whole_project"))
    weighed = weighed_(PACK, given_, against((SCOPE, "whole_project")))
    assert [(c.question_id, c.command_id, c.rule_id) for c in weighed.settled.conflicts] == [
        (SCOPE.question_id, "edit_files", "rule_no_writes")
    ]
    assert [a.question_id for a in weighed.settled.answers] == [REVIEW.question_id]
    assert weighed_(PACK, given_, against((SCOPE, "text"))).conflicts == ()


def test_answers_that_break_a_rule_only_each_by_itself_are_all_conflicts():
    """001 §7: where one of two would be enough, both are asked again; what defaults bring about is nobody's answer."""
    given_ = given_answers((REVIEW, "approve"), (SCOPE, "whole_project"))
    either = against((SCOPE, "whole_project"), (REVIEW, "approve"))
    assert {c.question_id for c in weighed_(PACK, given_, either).conflicts} == {
        REVIEW.question_id,
        SCOPE.question_id,
    }
    assert weighed_(PACK, given_answers((REVIEW, "approve")), against((SCOPE, "stop"))).conflicts == ()


def test_a_default_is_a_conflict_where_a_rule_ends_the_run():
    """001 §4, §7: a hard deny that only a default brings about aborts as an answer would; a soft one is no conflict."""
    late = against((REVIEW, "keep_with_review"), says=replace(DENY, hard=True))
    assert [c.question_id for c in weighed_(PACK, (), late, person="").conflicts] == [REVIEW.question_id]
    left = against((SCOPE, "stop"), says=replace(DENY, hard=True))
    weighed = weighed_(PACK, given_answers((REVIEW, "approve")), left)
    assert [c.question_id for c in weighed.conflicts] == [SCOPE.question_id]
    assert weighed_(PACK, (), against((REVIEW, "keep_with_review")), person="").conflicts == ()


def test_a_rule_that_an_answer_leaves_without_a_verdict_is_a_conflict():
    """001 §7: the rule that cannot say is the one that is named."""
    fired = replace(DENY.rules[0], decision="warn")
    unsaid = replace(fired, rule_id="rule_mute", outcome="undecidable")
    mute = replace(DENY, decision="warn", undecidable=True, rules=(fired, unsaid))
    weighed = weighed_(PACK, given_answers((REVIEW, "stop")), against((REVIEW, "stop"), says=mute))
    assert [c.rule_id for c in weighed.conflicts] == ["rule_mute"]


def test_a_conflict_comes_up_again_and_what_was_settled_stays():
    """001 Loop Detection: the next round asks only about the conflict, and remembers it."""
    given_ = given_answers((REVIEW, "approve"), (SCOPE, "whole_project"))
    first = weighed_(PACK, given_, against((REVIEW, "approve")))
    again = packed(GRAVE, round_=2, settled=first.settled)
    assert again.questions == (REVIEW,)
    second = weighed_(again, given_answers((REVIEW, "keep_with_review"), pack=again), before=first.settled)
    assert {a.answer for a in second.settled.answers} == {"whole_project", "keep_with_review"}
    assert second.settled.rounds == 2
    assert len(second.settled.conflicts) == 1
    assert second.blocked == second.conflicts == ()


def test_the_end_of_time_takes_every_default():
    """001 §7: timeout uses default_strategy from questions; those that say block stop the run."""
    weighed = weighed_(PACK, person="")
    assert {a.answer for a in weighed.settled.answers} == {"keep_with_review", "stop"}
    assert {(a.provided_by, a.answered_by) for a in weighed.settled.answers} == {("fallback", "")}
    assert len(weighed.blocked) == 1


def test_who_takes_every_default_has_answered():
    """001 §7: nobody was late; the answers are that person's."""
    weighed = weigh_round_answers(
        PACK, default_answers(PACK, make_policy()), make_policy(), against(), person="ann"
    )
    assert {(a.provided_by, a.answered_by) for a in weighed.settled.answers} == {("human", "ann")}


@pytest.mark.parametrize(
    ("by", "person", "told"),
    [
        ("human", "ann", "answered by ann"),
        ("fallback", "ann", "left to its default by ann"),
        ("fallback", "", "nobody answered in time"),
        ("policy_default", "", "not asked"),
    ],
)
def test_only_a_timeout_means_that_nobody_answered(by, person, told):
    """001 §7: a plan says in one line where each answer comes from."""
    answer = QuestionAnswer(question_id=SCOPE.question_id, answer="stop", provided_by=by, answered_by=person)
    assert explain_settled_answer(SCOPE, answer) == f"ambiguous_scope, {told}: stop ({SCOPE.question_id})"


def test_a_policy_without_fallback_stops_instead_of_taking_defaults():
    """auto_fallback off: a question without an answer may not take its default."""
    weighed = weigh_round_answers(PACK, (), make_policy(auto_fallback=False), against())
    assert {a.answer for a in weighed.settled.answers} == {"stop"}
    assert len(weighed.blocked) == 2


def test_full_auto_settles_everything_by_default():
    """Red line 2: where nobody is asked, defaults hold, each marked as the policy's."""
    i = make_plan_inputs(
        make_intent(
            planned_commands=(
                *make_intent().planned_commands[:2],
                planned_command("run_tests", risk_level="high"),
            )
        )
    )
    weighed = weigh_default_answers(questions_for_inputs(i), i.plan_id, make_policy("full_auto"))
    assert [(a.answer, a.provided_by) for a in weighed.settled.answers] == [("leave_out", "policy_default")]
    assert weighed.settled.rounds == 0
    assert weighed.blocked == ()


def test_what_is_settled_before_stays_when_the_rest_is_defaulted():
    """Defaults are only for what nothing settles yet."""
    before = weighed_(PACK, given_answers((REVIEW, "leave_out"), (SCOPE, "whole_project"))).settled
    after = weigh_default_answers(questions_for_inputs(GRAVE), GRAVE.plan_id, make_policy(), before).settled
    assert plain_value(after) == plain_value(before)


def test_a_pack_asks_lesser_questions_not_at_all_over_the_budget_and_settles_them():
    """What a pack lists as defaulted is settled with it."""
    i = make_plan_inputs(OPEN, ruled=(make_decision("edit_files", "require_review", "warn"),))
    pack = packed(i, budget=1)
    weighed = weighed_(pack, given_answers((pack.questions[0], "whole_project"), pack=pack))
    assert {a.provided_by for a in weighed.settled.answers} == {"human", "policy_default"}


# ── templates, words and what nobody sees ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("blank", ["", None])
def test_a_template_that_is_not_filled_in_is_incomplete(blank):
    """001 §7: an answer that is still empty is told by its question, with what may be said; nothing else is wrong."""
    (told,) = find_answer_pack_problems(
        PACK, said((REVIEW, "leave_out"), (SCOPE, blank)), {("answers", 1, "answer"): 9}
    )
    assert (told.field, told.line) == ("answers[1].answer", 9)
    assert SCOPE.question_id in told.message
    assert "whole_project" in told.fix


@pytest.mark.parametrize("word", ["stop", "whole_project"])
def test_words_beside_an_answer_that_takes_none_are_refused(word):
    """001 §7: `text` filled in and `answer` left as it was contradict each other; nobody guesses which is meant."""
    raw = said((REVIEW, "leave_out"), (SCOPE, word))
    raw["answers"][1]["text"] = "src/"
    (told,) = find_answer_pack_problems(PACK, raw)
    assert told.field == "answers[1].text"
    assert word in told.message


@for_each_case(
    ("name", "words", "why"),
    [
        ("text", "src/\u202eyp.a", "invisible"),
        ("text", "src/a\u200b.py", "invisible"),
        ("text", "src/a\u200d.py", "U+200D"),
        ("text", "src/a\u3164.py", "U+3164"),
        ("text", "src/\u00a0a.py", "U+00A0"),
        ("text", "src/*.py", "`*`"),
        ("text", "*", "`*`"),
        ("text", "src/**/a.py", "`*`"),
        ("rationale", "because \u202e", "invisible"),
        ("rationale", "\u2800", "no visible character"),
    ],
)
def test_what_an_answer_says_is_what_is_seen(name, words, why):
    """001 §7: no reordered, hidden or wild name becomes the scope of a plan, and no reason reads otherwise than it is."""
    raw = said((REVIEW, "leave_out"), (SCOPE, "text"), text="", rationale="")
    raw["answers"][1] |= {"text": "src/", name: words}
    told = [p for p in find_answer_pack_problems(PACK, raw) if p.field == f"answers[1].{name}"]
    assert told
    assert why in told[0].message


def test_a_directory_may_be_named_with_its_stars():
    """`src/**` says the same as `src/`."""
    raw = said((REVIEW, "leave_out"), (SCOPE, "text"))
    raw["answers"][1]["text"] = "src/**"
    assert find_answer_pack_problems(PACK, raw) == ()


def test_one_answer_can_be_looked_at_by_itself():
    """At a prompt each answer is looked at when it is given: its problems are those that the pack would have."""
    bad = QuestionAnswer(question_id=SCOPE.question_id, answer="text", text="../x")
    assert [p.field for p in find_answer_problems(SCOPE, bad)] == [f"{SCOPE.question_id}.text"]
    assert find_answer_problems(SCOPE, replace(bad, text="src/")) == ()


def test_the_time_that_is_left_is_what_the_next_gate_has():
    """001 §7: after answers that were refused the questions wait for the rest of the time; a run of the first version
    knows of no rest."""
    given = {
        "mode": "interactive", "task_ref": "p-0", "intent_ref": "p-0", "policy_ref": "p-0", "wait_ms": 9_000,
    }  # fmt: skip
    assert answers_gate_input(CoordinatorContext(**given))["after_ms"] == 9_000
    assert answers_gate_input(CoordinatorContext(**given, left_ms=7))["after_ms"] == 7
    assert CoordinatorContext(**upcast_add_answered_by(upcast_add_time_left(given))).left_ms == 0
