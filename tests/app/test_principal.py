"""Who may speak for a person: nothing that works for a run, whichever function it calls."""

import asyncio

import pytest
from tests.support.small_machines import (
    begin_run,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
    settle_post,
)

from steersman.app.actions import (
    ActionInput,
    RunActions,
    confirm_proposal,
    fork_run_at,
    post_abort,
    post_event,
    post_follow_up,
    post_override,
    post_revert,
    require_resume_rights,
)
from steersman.app.audit import prune_texts
from steersman.app.documents import restore_run_files
from steersman.app.gates import AnswerRequest, check_answer
from steersman.app.known_failures import choose_known_failures
from steersman.app.principal import AgentCallerError, Principal, require_person
from steersman.app.runs import RunService
from steersman.contracts.config import Config

ANN = Principal("ann")
AGENT = Principal("ann", effect="261116-abc123:4:1")

ATTEMPTS = {
    "nudged": lambda runs, run: post_event(runs, AGENT, run, "nudged", {"ok": True}),
    "followup": lambda runs, run: post_follow_up(runs, AGENT, run, "more"),
    "prune": lambda runs, run: prune_texts(runs, AGENT, run),
    "restore": lambda runs, run: restore_run_files(runs, AGENT, run),
    "acknowledge": lambda runs, run: choose_known_failures(runs, AGENT, run, Config()),
    "approve": lambda runs, run: confirm_proposal(runs, AGENT, run),
    "abort": lambda runs, run: post_abort(runs, AGENT, run),
    "override": lambda runs, run: post_override(runs, AGENT, run, "out", "why not"),
    "revert": lambda runs, run: post_revert(runs, AGENT, run),
    "fork": lambda runs, run: asyncio.run(fork_run_at(runs, AGENT, run)),
    "resume --despite-verify": lambda runs, run: require_resume_rights(runs, AGENT, run),
}


@pytest.mark.parametrize("word", ATTEMPTS)
def test_an_agents_attempt_is_refused_on_the_tape(tmp_path, word):
    """The caller gets an error with exit code 4, and the run records what was attempted and from which effect."""
    ports = fake_ports_with_machines(tmp_path)
    run = play_run(ports, "watch", after=10**9).run
    before = ports.journal.head(run).state
    with pytest.raises(AgentCallerError, match="an agent never speaks for a person") as refused:
        ATTEMPTS[word](RunService(ports), run)
    assert (refused.value.exit_code, refused.value.effect) == (4, AGENT.effect)
    assert settle_post(ports, run, refused.value.attempt.message_id)["result"] == "refused"
    entry = read_run_tape(ports, run)[-1]
    assert (entry.kind, entry.event) == ("refused", word)
    assert AGENT.effect in entry.why
    assert ports.journal.head(run).state == before


def test_an_agent_answers_no_gate(tmp_path):
    """The refusal comes before the answer is even checked, and the gate stays open."""
    ports = fake_ports_with_machines(tmp_path)
    run = play_run(ports, "watch", after=0).run
    with pytest.raises(AgentCallerError):
        check_answer(RunService(ports), AGENT, run, AnswerRequest(choice="approve"))
    with pytest.raises(AgentCallerError):
        RunActions(RunService(ports), AGENT, run).act("approve", ActionInput())
    assert [gate.answer for gate in ports.journal.gates(run)] == [""]


def test_a_refusal_without_a_run_records_nothing():
    """Where there is no run to record it, the caller gets the error alone; a person passes."""
    with pytest.raises(AgentCallerError) as refused:
        require_person(AGENT)
    assert refused.value.attempt is None
    require_person(ANN)


def test_a_person_passes(tmp_path):
    """The same functions post a person's message."""
    ports = fake_ports_with_machines(tmp_path)
    run = asyncio.run(begin_run(ports, "captain", child="watch", options={"after": 10**9}))
    posted = post_abort(RunService(ports), ANN, run, "enough")
    assert (posted.run, posted.wants_end) == (run, True)
    assert settle_post(ports, run, posted.message_id)["result"] == "taken"
