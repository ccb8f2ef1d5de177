"""A person stops a run: in every state, whether somebody drives it or not; nothing new is begun for it."""

import asyncio

import pytest
from test_retries import GOOD, PLAN
from tests.support.small_machines import (
    PATIENCE_SECONDS,
    ErrandFacts,
    begin_run,
    drive_run,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
    settle_post,
    wait_until,
)

from steersman.app.runs import RunService
from steersman.engine.driver import Driver
from steersman.testing import FakeAgent, fake_reply

STATES = [
    ("proposal", "coder", "plan"),
    ("proposal", "reviewer", "review"),
    ("proposal", "tester", "test"),
    ("implementation", "coder", "build"),
    ("implementation", "reviewer", "review"),
    ("implementation", "tester", "test"),
]


class Stuck(FakeAgent):
    """Plays every role well but one, which never ends."""

    def __init__(self, role):
        super().__init__(self._good)
        self.role, self.reached = role, asyncio.Event()

    @staticmethod
    def _good(request):
        if request.mode == "implementation" and request.role == "coder":
            with open(f"{request.workdir}/README", "w") as file:
                file.write("new\n")
        answers = {"reviewer": GOOD, "tester": PLAN} if request.mode == "implementation" else {}
        return fake_reply(request, answers.get(request.role, "fine"))

    async def call(self, request):
        if request.role == self.role:
            self.asked.append(request)
            self.reached.set()
            await asyncio.sleep(60)
        return await super().call(request)


@pytest.mark.parametrize(("mode", "role", "state"), STATES)
def test_while_it_is_driven(tmp_path, mode, role, state):
    """The machine's own abort row is taken, and what was under way is stopped."""
    agent = Stuck(role)
    ports = fake_ports_with_machines(tmp_path, agent=agent)

    async def play():
        run = await begin_run(ports, "roundtable", mode=mode)
        drive = asyncio.create_task(drive_run(ports, run))
        await agent.reached.wait()
        assert ports.journal.head(run).state == state
        posted = RunService(ports).abort(run, "ann", "no more")
        head = await asyncio.wait_for(drive, PATIENCE_SECONDS)
        return head, ports.journal.verdict(posted)

    head, verdict = asyncio.run(play())
    assert (head.outcome, head.status, verdict["result"]) == ("canceled", "stopped", "taken")
    entry = read_run_tape(ports, head.run)[verdict["seq"] - 1]
    assert (entry.event, entry.source, entry.actor, entry.why) == (
        "aborted_by_operator", state, "person:ann", "no more",
    )  # fmt: skip
    assert f"{head.run}:" in ports.processes.stopped


@pytest.mark.parametrize(("mode", "role", "state"), STATES)
def test_when_nobody_drives_it(tmp_path, mode, role, state):
    """The command takes the run over, ends it, and begins no effect, not even on tape."""
    agent = Stuck(role)
    ports = fake_ports_with_machines(tmp_path, agent=agent)

    async def play():
        run = await begin_run(ports, "roundtable", mode=mode)
        driver = Driver(ports)
        drive = asyncio.create_task(driver.drive(run))
        await agent.reached.wait()
        driver.stop()
        await drive
        asked = len(agent.asked)
        before = ports.journal.head(run)
        verdict, _ = await RunService(ports).settle(run, RunService(ports).abort(run, "ann"))
        return before, verdict, len(agent.asked) - asked

    before, verdict, asked = asyncio.run(play())
    head = ports.journal.head(before.run)
    assert (before.state, before.status) == (state, "working")
    assert (head.outcome, verdict["result"], asked) == ("canceled", "taken", 0)
    new = [e.kind for e in read_run_tape(ports, head.run) if e.seq > before.seq]
    assert new == ["claimed", "transition", "sealed"]


def test_while_a_proposal_waits(tmp_path):
    """The gate goes with it."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "roundtable")
    assert head.outcome == "await_operator_confirm"
    assert settle_post(ports, head.run, RunService(ports).abort(head.run, "ann"))["result"] == "taken"
    assert (ports.journal.head(head.run).outcome, ports.journal.gates()) == ("canceled", [])


def test_a_run_with_its_outcome(tmp_path):
    """There is nothing to stop any more: refused, and told so."""
    ports = fake_ports_with_machines(tmp_path, agent=Stuck("nobody"))
    head = play_run(ports, "roundtable", mode="implementation")
    assert head.outcome == "approved"
    verdict = settle_post(ports, head.run, RunService(ports).abort(head.run, "ann"))
    assert (verdict["result"], ports.journal.head(head.run).outcome) == ("refused", "approved")


def test_a_machine_without_an_abort_row(tmp_path):
    """Canceled in place: the state stays, the outcome is canceled, sealed, and nothing moves it any more."""

    async def endless(_call):
        await asyncio.sleep(60)

    ports = fake_ports_with_machines(tmp_path, endless)

    async def play():
        run = await begin_run(ports)
        drive = asyncio.create_task(drive_run(ports, run))
        await wait_until(lambda: ports.journal.head(run).epoch > 1)
        RunService(ports).abort(run, "ann", "no")
        return await asyncio.wait_for(drive, PATIENCE_SECONDS)

    head = asyncio.run(play())
    assert (head.state, head.status, head.outcome) == ("out", "stopped", "canceled")
    assert [e.kind for e in read_run_tape(ports, head.run)][-2:] == ["note", "sealed"]
    assert settle_post(ports, head.run, RunService(ports).abort(head.run, "bob"))["result"] == "refused"
    assert (
        settle_post(ports, head.run, RunService(ports).send(head.run, "nudged", {}, "bob"))["result"]
        == "refused"
    )
    assert ports.journal.head(head.run).outcome == "canceled"


def test_while_it_waits_for_a_time(tmp_path):
    """A run that waits until tomorrow is stopped today."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "watch", after=10**9)
    assert settle_post(ports, head.run, RunService(ports).abort(head.run, "ann"))["result"] == "taken"
    after = ports.journal.head(head.run)
    assert (after.outcome, after.due) == ("canceled", None)


def test_an_effect_that_will_not_stop(tmp_path):
    """One that answers its cancellation with a result has come too late: it is over, nothing of it is folded."""

    async def stubborn(_call):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return ErrandFacts(ok=True)

    ports = fake_ports_with_machines(tmp_path, stubborn)

    async def play():
        run = await begin_run(ports)
        drive = asyncio.create_task(drive_run(ports, run))
        await wait_until(lambda: ports.journal.head(run).epoch > 1)
        RunService(ports).abort(run, "ann")
        return await asyncio.wait_for(drive, PATIENCE_SECONDS)

    assert asyncio.run(play()).outcome == "canceled"
