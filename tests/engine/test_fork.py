"""A new run from an entry of another: what it takes along, and what it has to have of its own."""

import asyncio

from tests.support.small_machines import begin_run, budget_rows, drive_run, fake_ports_with_machines, play_run

from steersman.contracts.config import Budget
from steersman.engine.active_run import load_active_run
from steersman.engine.start import fork_run
from steersman.testing import FakeAgent, fake_config, fake_reply


def test_a_fork_has_the_budget_of_its_configuration(tmp_path):
    """It gets the same limits, reserves what its agents may cost, and gives back what they did not."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "roundtable", fake_config(budget=Budget(turns=3)))
    new = asyncio.run(fork_run(ports, head.run, 6, "ann"))
    assert budget_rows(ports, new)["turns"] == (0, 1, 3)
    after = asyncio.run(drive_run(ports, new))
    assert (after.outcome, budget_rows(ports, new)["turns"]) == ("await_operator_confirm", (2, 0, 3))


def test_a_fork_from_every_entry_goes_on(tmp_path):
    """Wherever it begins, also where the machine itself moves next, it comes to a gate or an outcome."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "roundtable", fake_config())
    for at in range(1, head.seq + 1):
        after = asyncio.run(drive_run(ports, asyncio.run(fork_run(ports, head.run, at, "ann"))))
        assert after.outcome == "await_operator_confirm", at
        assert after.status == "waiting for you", at


def test_a_fork_waits_as_long_as_its_state_says(tmp_path):
    """A timer of the state it begins in is set anew, from now on."""
    ports = fake_ports_with_machines(tmp_path)
    run = asyncio.run(begin_run(ports, "watch", after=60_000))
    now = ports.clock.now()
    new = asyncio.run(fork_run(ports, run, 1, "ann"))
    (item,) = load_active_run(ports, new).snapshot.items.values()
    assert (item.kind, item.due, ports.journal.head(new).due) == ("timer", now + 60_000, now + 60_000)


class Pinned:
    """Notes under which label every tree was recorded; everything else is the workspace's own."""

    def __init__(self, workspace):
        self._workspace, self.labels = workspace, []

    def __getattr__(self, name):
        return getattr(self._workspace, name)

    def capture(self, run, path, base, label):
        self.labels.append(label)
        return self._workspace.capture(run, path, base, label)


def test_no_recorded_tree_loses_its_pin(tmp_path):
    """Rounds begin anew after a follow-up, the labels of recorded trees do not."""
    ports = fake_ports_with_machines(
        tmp_path, agent=FakeAgent(lambda request: fake_reply(request, "nothing to do"))
    )
    pinned = Pinned(ports.workspace(None))
    ports = fake_ports_with_machines(
        tmp_path, agent=ports.agent("coder", None), workspace=lambda _config: pinned
    )
    head = play_run(ports, "roundtable", mode="implementation")
    assert head.outcome == "max_iterations_reached"
    ports.journal.post(
        head.run, "event",
        {"event": "task_followup_received", "data": {"choice": "followup"}, "person": "ann"}, 0,
    )  # fmt: skip
    asyncio.run(drive_run(ports, head.run))
    assert len(pinned.labels) == 6
    assert len(set(pinned.labels)) == 6
