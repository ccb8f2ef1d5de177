"""What an agent is asked to continue: its role's last success in this run, and only if there is one."""

from msgspec import structs
from test_checked_trees import run_of
from test_retries import GOOD, PLAN
from tests.support.small_machines import read_run_tape

from steersman.contracts.agent import AgentReply
from steersman.testing import FakeAgent, fake_reply
from steersman.testing.files import fake_command_result

STRICT = {**GOOD, "decision": "changes_requested", "must_fix": ["one thing"]}


def crew(*, keeps):
    """A coder that crashes once in its second round, and a reviewer that sends the first one back."""

    def answer(request):
        if (request.role, request.round, request.attempt) == ("coder", 2, 1):
            return AgentReply(error="provider_invalid_request", detail="no", session="broken")
        if request.role == "coder":
            with open(f"{request.workdir}/README", "w") as file:
                file.write(f"round {request.round}\n")
        word = {"coder": "done", "reviewer": STRICT if request.round == 1 else GOOD, "tester": PLAN}
        name = f"{request.role}-{request.round}" if keeps else None
        return structs.replace(fake_reply(request, word[request.role]), session=name)

    return FakeAgent(answer)


def passing(command, _):
    return fake_command_result(command, tests=3)


def sessions(agent):
    return [(r.role, r.round, r.session) for r in agent.asked]


def test_a_role_is_handed_its_own_session(tmp_path):
    """The coder of the second round is asked to go on; nobody is handed what another one said."""
    agent = crew(keeps=True)
    ports, head, _ = run_of(tmp_path, passing, agent)
    assert head.outcome == "provider_invalid_request"
    assert sessions(agent) == [("coder", 1, None), ("reviewer", 1, None), ("coder", 2, "coder-1")]
    done = next(e for e in read_run_tape(ports, head.run) if e.event == "start_reviewer")
    assert done.data["session"] == "coder-1"


def test_without_a_session_every_call_begins_anew(tmp_path):
    """Where no session is kept none is asked for."""
    agent = crew(keeps=False)
    run_of(tmp_path, passing, agent)
    assert [session for _, _, session in sessions(agent)] == [None, None, None]
