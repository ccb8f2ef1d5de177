"""What goes on tape of a task's replies: counts, words, and the name of all the rest."""

import json
from types import SimpleNamespace

import msgspec
import pytest
from tests.support.cases import for_each_case

from steersman.contracts.config import Config
from steersman.engine.active_run import PayloadStore
from steersman.engine.effects import EffectCall
from steersman.engine.effects.agent_work import plain_reply
from steersman.errors import DefinitionError
from steersman.kernel.snapshot import JobItem
from steersman.machines.task import replies as r
from steersman.testing.memory import MemoryJournal

ASKED = (
    r.ProposedQuestion(text="which currency?", blocking=True),
    r.ProposedQuestion(text="a name?", blocking=False),
)
PLAN = r.TaskPlannerReply(
    nonce="n-1", title="t", brief="b", requirements=("r",), in_scope=(), out_of_scope=(), steps=("s",), risks=(),
    assumptions=(), acceptance_criteria=("c",), files=(r.ProposedFile(path="src/a.py", intent="create", summary="new"),),
    test_strategy="", test_cases=(), questions=ASKED,
)  # fmt: skip
COMMENT = r.PlanCommentReply(nonce="n-1", ready=False, comment="c", concerns=("slow",), questions=ASKED)
ON_PLAN = r.PlanReviewerReply(nonce="n-1", decision="accept", summary="s", blocking_issues=(), suggestions=())
CODE = r.TaskCoderReply(nonce="n-1", status="done", summary="s", missing=())
ON_CODE = r.CodeReviewerReply(
    nonce="n-1", decision="plan_flawed", summary="s", blocking_issues=(), plan_issues=("p",), suggestions=()
)


async def _part(key, facts):
    raise AssertionError(key)


def call(contract):
    """One attempt at asking an agent that answers by this contract."""
    item = JobItem("run:1:0", "ask", "agent", "", {"contract": contract, "role": "scribe"}, 1)
    payloads = PayloadStore(MemoryJournal(), "run", b"k" * 32)
    return EffectCall(None, "run", "task", item, Config(), payloads, _part)


@for_each_case(
    ("contract", "reply", "facts"),
    [
        ("task_planner", PLAN, {"files": 1, "questions": 2, "blocking": 1}),
        ("plan_comment", COMMENT, {"ready": False, "concerns": 1, "blocking": 1}),
        ("plan_reviewer", ON_PLAN, {"decision": "accept"}),
        ("task_coder", CODE, {"status": "done"}),
        ("code_reviewer", ON_CODE, {"decision": "plan_flawed"}),
    ],
)
def test_plain(contract, reply, facts):
    """The plain facts, and a payload with everything but the nonce, from which the reply can be read again."""
    one = call(contract)
    plain = plain_reply(one, r.TASK_REPLY_CONTRACTS[contract], reply)
    assert {**plain, "reply": ""} == {"role": "scribe", **facts, "reply": ""}
    data = json.loads(one.payloads.get(plain["reply"]))
    assert "nonce" not in data
    assert msgspec.convert({**data, "nonce": "n-1"}, type=r.TASK_REPLY_CONTRACTS[contract].reply) == reply
    later = msgspec.structs.replace(reply, nonce="n-2")
    assert plain_reply(one, r.TASK_REPLY_CONTRACTS[contract], later) == plain


def test_what_was_hidden_fits():
    """A secret is in no payload, and a text that got longer by hiding it still fits its contract."""
    secret = "password=hunter2s3cret"
    question = r.ProposedQuestion(text=secret, blocking=False)
    long = msgspec.structs.replace(
        PLAN, requirements=("x" * (399 - len(secret)) + " " + secret,), questions=(question,)
    )
    one = call("task_planner")
    said = one.payloads.get(plain_reply(one, r.TASK_REPLY_CONTRACTS["task_planner"], long)["reply"])
    assert "hunter2s3cret" not in said
    read = msgspec.convert({**json.loads(said), "nonce": ""}, type=r.TaskPlannerReply)
    assert len(read.requirements[0]) == 400
    assert read.requirements[0].endswith("…")


def test_an_unknown_contract_is_a_defect_of_the_machine():
    """A machine that names a reply contract which does not exist learns which exist."""
    one = msgspec.structs.replace(call("task_coder"), world=SimpleNamespace(packages={}))
    with pytest.raises(DefinitionError, match="no reply contract 'task_coder': planner, reviewer, tester"):
        one.reply_contract()
