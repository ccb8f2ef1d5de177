"""A working tree that had to be made anew is set up before anyone works or is judged in it."""

import asyncio

from test_retries import crew
from tests.support.small_machines import begin_run, drive_run, fake_ports_with_machines, play_run

from steersman.contracts.agent import AgentReply
from steersman.contracts.config import SetupStep, Worktree
from steersman.testing import FakeAgent, ScriptedCommands, fake_config
from steersman.testing.files import fake_command_result

SETUP = ("uv", "sync")


def judge(ready):
    """Setup makes a tree ready; a check passes only in one that is."""

    def judged(command, workdir):
        if command.argv == SETUP:
            ready.add(workdir)
            return fake_command_result(command)
        return fake_command_result(command, 0 if workdir in ready else 1)

    return judged


def config(**more):
    """A project whose trees need setting up."""
    return fake_config(worktree=Worktree(setup=(SetupStep(SETUP),)), **more)


def test_after_an_attempt_that_edited(tmp_path):
    """The coder breaks down half-way; its next attempt gets a clean tree, set up, and so do the checks."""
    ready = set()

    def answer(request):
        if request.role == "coder" and request.mode == "implementation" and request.attempt == 1:
            with open(f"{request.workdir}/README", "w") as file:
                file.write("half")
            return AgentReply(error="provider_crashed", detail="gone", provider="fake")
        assert request.workdir in ready
        return crew(request)

    commands = ScriptedCommands(judge(ready), allow=(("true",),))
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(answer), commands=commands)

    async def play():
        run = await begin_run(ports, "roundtable", config(), mode="implementation")
        drive = asyncio.create_task(drive_run(ports, run))
        while not drive.done():
            await asyncio.sleep(0.02)
            ports.clock.forward(1_000)
        return await drive

    head = asyncio.run(play())
    assert (head.outcome, len(ready)) == ("approved", 4)


def test_a_tree_that_serves_is_not_set_up_again(tmp_path):
    """Setup runs once for the agents, and once for each set of checks: no agent has worked in their trees."""
    ready = set()
    commands = ScriptedCommands(judge(ready), allow=(("true",),))
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew), commands=commands)
    head = play_run(ports, "roundtable", config(), mode="implementation")
    assert head.outcome == "approved"
    assert [argv for _, argv in commands.ran].count(SETUP) == 3


def test_a_proposal_is_set_up_and_checked_first(tmp_path):
    """The base tree is known before anybody is asked for a proposal; a confirmed one is not set up again."""
    commands = ScriptedCommands(judge(set()))
    ports = fake_ports_with_machines(tmp_path, commands=commands)
    head = play_run(ports, "roundtable", config())
    assert head.outcome == "await_operator_confirm"
    assert [argv for _, argv in commands.ran] == [SETUP, SETUP, ("true",)]


def test_a_setup_that_fails_is_an_outcome(tmp_path):
    """Of its own: nobody is asked to work in that tree."""
    agent = FakeAgent(crew)
    ports = fake_ports_with_machines(
        tmp_path, agent=agent, commands=ScriptedCommands(lambda c, _: fake_command_result(c, 1))
    )
    head = play_run(ports, "roundtable", config(), mode="implementation")
    assert (head.outcome, agent.asked) == ("setup_failed", [])
