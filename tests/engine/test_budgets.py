"""What a run and all its children may use: reserved, settled, used up, raised."""

import asyncio

import pytest
from test_retries import crew
from tests.support.small_machines import (
    begin_run,
    budget_rows,
    drive_run,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
    settle_post,
    wait_until,
)

from steersman.app.runs import RunService
from steersman.contracts.agent import AgentReply
from steersman.contracts.config import Budget, Role
from steersman.engine.active_run import load_active_run
from steersman.engine.driver import Driver
from steersman.errors import UserError
from steersman.testing import FakeAgent, fake_config, fake_reply


def config(**limits):
    """A configuration with this budget."""
    return fake_config(budget=Budget(**limits))


def implementing(ports, configuration):
    """An implementation, driven until it parks or ends."""
    return play_run(ports, "roundtable", configuration, mode="implementation")


def test_what_is_used_is_settled(tmp_path):
    """When all is over nothing is reserved and the figures are the sum of what the agents told."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew))
    head = implementing(ports, config(turns=50, tokens=10_000, micro_usd=5_000))
    told = budget_rows(ports, head.run)
    assert head.outcome == "approved"
    assert told["turns"] == (3, 0, 50)
    assert told["tokens"] == (300, 0, 10_000)
    assert told["micro_usd"] == (30, 0, 5_000)


def test_an_agent_reserves_before_it_starts(tmp_path):
    """While it works its ceiling is reserved: a role's own, or a tenth."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew))
    roles = {
        "coder": Role(agent="fake", options={"call_tokens": 700}),
        "reviewer": Role(agent="fake"),
        "tester": Role(agent="fake"),
    }
    configuration = fake_config(roles=roles, budget=Budget(turns=50, tokens=10_000))
    seen = []

    def answer(request):
        seen.append(budget_rows(ports, request.effect.split(":")[0])["tokens"][1])
        return crew(request)

    ports.agent("x", None)._answer = answer
    implementing(ports, configuration)
    assert seen == [700, 1_000, 1_000]


@pytest.mark.parametrize(("figure", "limit"), [("turns", 2), ("tokens", 250), ("micro_usd", 25)])
def test_a_used_up_budget_parks_the_run(tmp_path, figure, limit):
    """Before the agent that does not fit is started: a gate offers to raise or to stop."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew))
    roles = {
        r: Role(agent="fake", options={"call_tokens": 100, "call_micro_usd": 10})
        for r in ("coder", "reviewer", "tester")
    }
    head = implementing(ports, fake_config(roles=roles, budget=Budget(**{figure: limit})))
    assert (head.state, head.status) == ("test", "waiting for you")
    assert [r.role for r in ports.agent("x", None).asked] == ["coder", "reviewer"]
    gate = RunService(ports).gate(head.run)
    assert (gate.job, gate.choices, gate.shown["figure"]) == ("budget", ("raise", "stop"), figure)


def parked(tmp_path, turns=2):
    """A run whose budget is used up: its ports, head and gate."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew))
    head = implementing(ports, config(turns=turns))
    return ports, head, RunService(ports).gate(head.run)


def test_a_raise_goes_on(tmp_path):
    """In another process, too: what is held starts, and the new limit binds."""
    ports, head, gate = parked(tmp_path)
    posted = RunService(ports).answer(gate, "raise", "ann", limits={"turns": 10})
    assert settle_post(ports, head.run, posted)["result"] == "taken"
    after = ports.journal.head(head.run)
    assert (after.outcome, budget_rows(ports, head.run)["turns"]) == ("approved", (3, 0, 10))
    answered = next(e for e in read_run_tape(ports, head.run) if e.kind == "gate_answered")
    assert (answered.actor, answered.data) == ("person:ann", {"choice": "raise", "limits": {"turns": 10}})


def test_a_raise_that_does_not_suffice_asks_again(tmp_path):
    """The run stays parked at a new gate, with nothing started and nothing lost."""
    ports, head, gate = parked(tmp_path)
    settle_post(ports, head.run, RunService(ports).answer(gate, "raise", "ann", limits={"turns": 2}))
    again = RunService(ports).gate(head.run)
    assert (again.id != gate.id, ports.journal.head(head.run).status) == (True, "waiting for you")
    assert len(ports.agent("x", None).asked) == 2
    settle_post(ports, head.run, RunService(ports).answer(again, "raise", "ann", limits={"turns": 3}))
    assert ports.journal.head(head.run).outcome == "approved"


def test_stopping_there_ends_the_run(tmp_path):
    """By the machine's own abort row, with nothing reserved."""
    ports, head, gate = parked(tmp_path)
    settle_post(ports, head.run, RunService(ports).answer(gate, "stop", "ann", reason="enough"))
    after = ports.journal.head(head.run)
    assert (after.outcome, budget_rows(ports, head.run)["turns"]) == ("canceled", (2, 0, 2))
    assert ports.journal.gates() == []


def test_figures_survive_a_driver_that_goes_away(tmp_path):
    """A new driver neither forgets what was used nor reserves twice."""
    going = asyncio.Event()

    class Slow(FakeAgent):
        async def call(self, request):
            if request.role == "reviewer" and not going.is_set():
                going.set()
                await asyncio.sleep(60)
            return await super().call(request)

    ports = fake_ports_with_machines(tmp_path, agent=Slow(crew))

    async def play():
        run = await begin_run(ports, "roundtable", config(turns=3), mode="implementation")
        driver = Driver(ports)
        drive = asyncio.create_task(driver.drive(run))
        await going.wait()
        driver.stop()
        await drive
        between = budget_rows(ports, run)["turns"]
        return run, between, await drive_run(ports, run)

    run, between, head = asyncio.run(play())
    assert (between, head.outcome, budget_rows(ports, run)["turns"]) == ((1, 1, 3), "approved", (3, 0, 3))


def test_what_is_left_behind_is_given_back(tmp_path):
    """An agent whose state is left before it is done keeps no reservation."""

    class Endless(FakeAgent):
        async def call(self, request):  # noqa: ARG002  it never looks at it
            await asyncio.sleep(60)

    ports = fake_ports_with_machines(tmp_path, agent=Endless(crew))

    async def play():
        run = await begin_run(ports, "roundtable", config(turns=9), mode="implementation")
        drive = asyncio.create_task(drive_run(ports, run))
        await wait_until(lambda: budget_rows(ports, run)["turns"] == (0, 1, 9))
        RunService(ports).abort(run, "ann")
        return await drive

    head = asyncio.run(play())
    assert (head.outcome, budget_rows(ports, head.run)["turns"]) == ("canceled", (0, 0, 9))


def test_unknown_cost_is_unknown(tmp_path):
    """It is counted as unknown, not as nothing, and the figures that are known bind."""

    def silent(request):
        reply = crew(request)
        return AgentReply(text=reply.text, provider="fake")

    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(silent, tells_cost=False))
    head = implementing(ports, config(turns=50, micro_usd=1_000))
    told = budget_rows(ports, head.run)
    assert (head.outcome, told["turns"][0], told["unknown"][0]) == ("approved", 3, 3)
    assert told["micro_usd"] == (0, 0, 1_000)


def test_money_alone_needs_agents_that_tell(tmp_path):
    """A budget in usd only, with a provider that tells no cost, is refused before anything begins."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew, tells_cost=False))
    with pytest.raises(UserError, match=r"\[budget\] has only usd.*Add tokens or turns to \[budget\]"):
        implementing(ports, config(micro_usd=1_000))
    assert ports.journal.heads() == []
    implementing(ports, config(micro_usd=1_000, tokens=100_000))


def test_wall_time_binds(tmp_path):
    """Agents that took longer than the budget's hours are followed by a gate, not by another agent."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew))

    def slow(request):
        ports.clock.forward(2_000)
        return crew(request)

    ports.agent("x", None)._answer = slow
    head = implementing(ports, config(seconds=3, turns=99))
    assert (head.status, RunService(ports).gate(head.run).shown["figure"]) == ("waiting for you", "ms")
    assert budget_rows(ports, head.run)["ms"][0] >= 4_000


def test_a_first_agent_that_does_not_fit(tmp_path):
    """The run is made all the same, and begins at the gate."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew))
    roles = {r: Role(agent="fake", options={"call_tokens": 700}) for r in ("coder", "reviewer", "tester")}
    head = play_run(ports, "roundtable", fake_config(roles=roles, budget=Budget(tokens=500)))
    assert (head.state, head.status, ports.agent("x", None).asked) == ("plan", "waiting for you", [])
    gate = RunService(ports).gate(head.run)
    assert gate.shown["figure"] == "tokens"
    settle_post(ports, head.run, RunService(ports).answer(gate, "raise", "ann", limits={"tokens": 5_000}))
    assert ports.journal.head(head.run).outcome == "await_operator_confirm"


# ── the run and all its children ──────────────────────────────────────────────────────────────────────────────────────


def family(tmp_path, turns, errands=1, machine="captain"):
    """A captain whose children are implementations, under one budget."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(crew))
    base = ports.workspace(None).base(None)
    options = {"mode": "implementation", "base_commit": base.commit, "base_tree": base.tree}
    head = play_run(ports, machine, config(turns=turns), child="roundtable", options=options, errands=errands)
    return ports, head


def test_children_spend_what_their_parent_has(tmp_path):
    """What a child uses is on its own account and on its parent's."""
    ports, head = family(tmp_path, 10, errands=2)
    assert (head.state, budget_rows(ports, head.run)["turns"]) == ("satisfied", (6, 0, 10))
    for child in ports.journal.children(head.run):
        assert (child.outcome, budget_rows(ports, child.run)["turns"]) == ("approved", (3, 0, None))


def test_a_child_parks_when_its_parent_has_nothing_left(tmp_path):
    """Its gate raises the limit of the whole tree; then child and parent come to their ends."""
    ports, head = family(tmp_path, 2)
    (child,) = ports.journal.children(head.run)
    assert (child.status, head.state) == ("waiting for you", "commanding")
    gate = RunService(ports).gate(child.run)
    settle_post(ports, child.run, RunService(ports).answer(gate, "raise", "ann", limits={"turns": 5}))
    assert ports.journal.head(child.run).outcome == "approved"
    assert ports.journal.head(head.run).state == "satisfied"
    assert budget_rows(ports, head.run)["turns"] == (3, 0, 5)
    assert load_active_run(ports, head.run).snapshot.items == {}


def test_a_child_that_cannot_even_begin(tmp_path):
    """It is made, begins at a gate, and goes on when that is answered."""
    ports = fake_ports_with_machines(tmp_path, agent=FakeAgent(lambda r: fake_reply(r, "fine")))
    base = ports.workspace(None).base(None)
    options = {"mode": "proposal", "base_commit": base.commit}
    roles = {r: Role(agent="fake", options={"call_tokens": 700}) for r in ("coder", "reviewer", "tester")}
    configuration = fake_config(roles=roles, budget=Budget(tokens=500))
    head = play_run(ports, "captain", configuration, child="roundtable", options=options)
    (child,) = ports.journal.children(head.run)
    assert (child.state, child.status) == ("plan", "waiting for you")
