"""Sessions in a roundtable: each role goes on with its own, from its last success."""

import msgspec
import pytest
from tests.support.simulated_roundtable import (
    SimulatedRun,
    agent_facts,
    approval_facts,
    building_run,
    change_facts,
    change_request_facts,
    check_facts,
    command_facts,
    finish_setup,
    gate_answer,
    setup_facts,
)

from steersman.contracts.facts import AgentFacts
from steersman.kernel.replay import convert_context, rebuild_snapshot
from steersman.machines.roundtable import MACHINE


def held(facts, session):
    return msgspec.structs.replace(facts, session=session)


def given(tape, job):
    """The session that a job is handed; None: it is told of none."""
    return tape.item(job).input.get("session")


def test_each_role_goes_on_with_its_own():
    """From the discussion into the rounds, over a round that was sent back and a follow-up: nobody gets another's."""
    tape = finish_setup(SimulatedRun())
    assert given(tape, "propose") is None
    tape.finish("propose", held(agent_facts("p-1"), "c1"))
    assert given(tape, "discuss_review") is None
    tape.finish("discuss_review", held(agent_facts("p-2"), "r1"))
    tape.finish("discuss_test", held(agent_facts("p-3"), "t1"))
    tape.finish("confirm", gate_answer("approve", tape.context.contract_digest))
    assert given(tape, "implement") == "c1"
    tape.finish("implement", held(change_facts("t1"), "c2"))
    assert given(tape, "review") == "r1"
    tape.finish("review", held(change_request_facts("f-1"), "r2"))
    assert given(tape, "implement") == "c2"
    tape.finish("implement", held(change_facts("t1"), "c3"))
    assert tape.events[-2:] == ["coder_changed_nothing", "start_coder"]
    assert given(tape, "implement") == "c3"
    tape.finish("implement", held(change_facts("t2"), "c4"))
    assert given(tape, "review") == "r2"
    tape.finish("review", held(approval_facts(), "r3"))
    assert given(tape, "ask_tester") == "t1"
    tape.finish("ask_tester", held(command_facts(), "t2"))
    tape.finish("run_checks", check_facts("t2", blocked=1))
    tape.send("task_followup_received", gate_answer("more", text="p-more"))
    assert tape.context.sessions == {"coder": "c4", "reviewer": "r3", "tester": "t2"}
    tape.finish("prepare", setup_facts("t2"))
    assert given(tape, "implement") == "c4"


def test_who_keeps_none_is_handed_none():
    """Without a session nothing is remembered, and the work's input says nothing of one."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    tape.finish("review", change_request_facts("f-1"))
    assert tape.context.sessions == {}
    assert "session" not in tape.item("implement").input


@pytest.mark.parametrize(
    "facts",
    [
        AgentFacts(error="provider_crashed", session="c2"),
        AgentFacts(session="c2"),  # no tree: it answered in no known form
        change_facts("t2"),
    ],
    ids=["failed", "no-known-form", "kept-none"],
)
def test_the_last_success_is_what_counts(facts):
    """A call that failed, or kept no session, leaves the one before in place."""
    tape = building_run()
    tape.finish("implement", held(change_facts("t1"), "c1"))
    tape.finish("review", change_request_facts("f-1"))
    tape.finish("implement", facts)
    assert tape.context.sessions == {"coder": "c1"}


@pytest.mark.parametrize("job", ["review", "ask_tester"])
def test_a_reply_that_breaks_its_contract_is_no_success(job):
    """A reviewer or tester that did not answer as it should is not continued from there."""
    tape = building_run()
    tape.finish("implement", change_facts("t1"))
    if job == "ask_tester":
        tape.finish("review", approval_facts())
    tape.finish(job, AgentFacts(text_ref="p-odd", problems_ref="p-problems", session="x1"))
    assert tape.events[-1] in ("review_schema_invalid", "start_coder")
    assert tape.context.sessions == {}


def test_a_run_of_before_remembers_none():
    """A context that was written when nobody remembered sessions has none, and goes on."""
    tape = building_run()
    plain = rebuild_snapshot(tape.rows, tape.snapshot.run)
    old = {name: value for name, value in plain.context.items() if name != "sessions"}
    before = msgspec.structs.replace(plain, context=old, context_version=1)
    now = convert_context(MACHINE, before)
    assert (now.context.sessions, now.context_version) == ({}, 4)
