"""The replies of a task's agents: what they say fits together and can be seen."""

import json

import msgspec
from tests.support.cases import for_each_case
from tests.support.task_replies import sample_draft, sample_question

from steersman.judges.replies.agent_reply import ParsedReply, parse_reply
from steersman.machines.task.replies import TASK_REPLY_CONTRACTS

PLAN = msgspec.to_builtins(sample_draft(questions=(sample_question("which currency?"),)))
COMMENT = {"nonce": "n", "ready": True, "comment": "fine", "concerns": [], "questions": []}
ON_PLAN = {"nonce": "n", "decision": "accept", "summary": "read", "blocking_issues": [], "suggestions": []}
CODE = {"nonce": "n", "status": "done", "summary": "written", "missing": []}
ON_CODE = {**ON_PLAN, "decision": "approve", "plan_issues": []}
GOOD = {
    "task_planner": PLAN, "plan_comment": COMMENT, "plan_reviewer": ON_PLAN, "task_coder": CODE,
    "code_reviewer": ON_CODE,
}  # fmt: skip


def parsed(contract, **changed):
    return parse_reply(json.dumps({**GOOD[contract], **changed}), TASK_REPLY_CONTRACTS[contract], "n")


def problems(contract, **changed):
    return parsed(contract, **changed).problems


@for_each_case("contract", GOOD)
def test_good(contract):
    """A reply that fits is the struct of its contract."""
    found = parsed(contract)
    assert isinstance(found, ParsedReply)
    assert isinstance(found.value, TASK_REPLY_CONTRACTS[contract].reply)


@for_each_case(
    ("contract", "changed"),
    [
        ("plan_comment", {"ready": False, "concerns": ["slow"]}),
        ("plan_comment", {"ready": False}),
        ("plan_reviewer", {"decision": "needs_changes", "blocking_issues": ["x"]}),
        ("plan_reviewer", {"decision": "blocked", "blocking_issues": ["x"]}),
        ("task_coder", {"status": "plan_unclear", "missing": ["x"]}),
        ("task_coder", {"status": "scope_mismatch", "missing": ["x"]}),
        ("code_reviewer", {"decision": "needs_changes", "blocking_issues": ["x"], "plan_issues": ["y"]}),
        ("code_reviewer", {"decision": "plan_flawed", "plan_issues": ["x"]}),
    ],
)
def test_what_fits_together(contract, changed):
    """A word and the list that goes with it."""
    assert isinstance(parsed(contract, **changed), ParsedReply)


@for_each_case(
    ("contract", "changed", "told"),
    [
        ("plan_comment", {"concerns": ["x"]}, "ready: true contradicts a concerns"),
        ("plan_reviewer", {"blocking_issues": ["x"]}, "decision: accept contradicts a blocking_issues"),
        ("plan_reviewer", {"decision": "needs_changes"}, "decision: needs_changes needs at least one blocking"),
        ("plan_reviewer", {"decision": "blocked"}, "decision: blocked needs at least one blocking_issues"),
        ("task_coder", {"status": "plan_unclear"}, "status: plan_unclear needs at least one missing"),
        ("task_coder", {"status": "scope_mismatch"}, "status: scope_mismatch needs at least one missing"),
        ("code_reviewer", {"blocking_issues": ["x"]}, "decision: approve contradicts a blocking_issues"),
        ("code_reviewer", {"plan_issues": ["x"]}, "decision: approve contradicts a plan_issues"),
        ("code_reviewer", {"decision": "needs_changes", "plan_issues": ["x"]}, "decision: needs_changes needs"),
        ("code_reviewer", {"decision": "plan_flawed", "blocking_issues": ["x"]}, "decision: plan_flawed needs"),
    ],
)  # fmt: skip
def test_contradictions(contract, changed, told):
    """A word without its list, or against it, is refused and named."""
    (only,) = problems(contract, **changed)
    assert only.startswith(told)


@for_each_case("contract", GOOD)
def test_another_shape(contract):
    """Fields of another type are told as such, and never as a contradiction."""
    odd = dict.fromkeys(GOOD[contract], 1)
    found = problems(contract, **odd)
    assert not any("contradicts" in p or "needs at least" in p for p in found)
    assert any("is not of type" in p for p in found)


def test_inner_texts_can_be_seen():
    """A text that looks empty is none, also in a question or the name of a file."""
    unseen = "\u200b"
    files = [{"path": unseen, "intent": "create", "summary": unseen}]
    questions = [{"text": "who?", "blocking": True}, {"text": unseen, "blocking": True}, 5]
    found = problems("task_planner", files=files, questions=questions[:2], steps=[unseen])
    assert found == (
        "steps[0]: holds nothing that can be seen",
        "files[0].path: holds nothing that can be seen",
        "questions[1].text: holds nothing that can be seen",
    )
    assert 'questions[2]: 5 is not of type "object"' in problems("task_planner", questions=questions)


@for_each_case(
    ("changed", "told"),
    [
        ({"files": [{"path": "a", "intent": "rename", "summary": ""}]}, "files[0].intent: "),
        ({"files": [{"path": "a", "intent": "create"}]}, "files[0].summary: is missing"),
        ({"questions": [{"text": "x?", "blocking": "yes"}]}, "questions[0].blocking: "),
        ({"questions": [{"text": "x?", "blocking": True, "answer": "no"}]}, "questions[0].answer: is not a known"),
    ],
)  # fmt: skip
def test_inner_problems_name_their_field(changed, told):
    """What is wrong inside a list is told with its place."""
    assert any(p.startswith(told) for p in problems("task_planner", **changed))


@for_each_case(
    ("contract", "facts"),
    [
        ("task_planner", {"files": len(PLAN["files"]), "questions": 1, "blocking": 1}),
        ("plan_comment", {"ready": True, "concerns": 0, "blocking": 0}),
        ("plan_reviewer", {"decision": "accept"}),
        ("task_coder", {"status": "done"}),
        ("code_reviewer", {"decision": "approve"}),
    ],
)
def test_facts(contract, facts):
    """What guards see of a reply: words and counts."""
    assert TASK_REPLY_CONTRACTS[contract].facts(parsed(contract).value) == facts
