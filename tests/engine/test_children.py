"""A run that starts others: made once, driven, told when they end, stopped when it is stopped."""

import asyncio

import pytest
from test_budgets import family
from tests.support.small_machines import (
    PATIENCE_SECONDS,
    ErrandFacts,
    begin_run,
    drive_run,
    entry_kinds,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
    settle_post,
    wait_until,
)

from steersman.app.runs import RunService
from steersman.engine.active_run import load_active_run
from steersman.engine.driver import Driver
from steersman.testing import FakeLocks


def test_a_parent_gets_its_childrens_ends(tmp_path):
    """Each is a run of its own with a tape of its own; its end is one event of the parent."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "captain", errands=3)
    children = ports.journal.children(head.run)
    assert (head.state, [c.status for c in children]) == ("satisfied", ["done"] * 3)
    assert sorted(load_active_run(ports, head.run).snapshot.context.done) == sorted(c.run for c in children)
    assert {(c.parent, c.root) for c in children} == {(head.run, head.run)}
    backs = [e for e in read_run_tape(ports, head.run) if e.event == "mate_back"]
    assert [e.data["outcome"] for e in backs] == ["home"] * 3


def test_a_child_that_fails_is_an_event_too(tmp_path):
    """The naming says which."""

    async def badly(_call):
        return ErrandFacts()

    ports = fake_ports_with_machines(tmp_path, badly)
    head = play_run(ports, "captain", errands=1)
    assert (head.state, read_run_tape(ports, head.run)[-2].event) == ("angry", "mate_lost")


def test_a_grandchild(tmp_path):
    """Children may have children; the innermost end travels up."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "admiral", child="captain", options={"errands": 2})
    (captain,) = ports.journal.children(head.run)
    errands = ports.journal.children(captain.run)
    assert (head.state, captain.state, [e.state for e in errands]) == ("satisfied", "satisfied", ["home"] * 2)
    assert {h.root for h in ports.journal.tree(head.run)} == {head.run}


def working(ports, run):
    """How many of a run's children are being driven."""
    return sum(c.status == "working" and c.epoch > 0 for c in ports.journal.children(run))


def waiting(ports):
    """A captain whose only child waits for a person: both heads."""

    async def play():
        run = await begin_run(ports, "captain", child="watch")
        await asyncio.wait_for(drive_run(ports, run, patience_ms=0), PATIENCE_SECONDS)
        ports.clock.forward(1_000)
        return await asyncio.wait_for(drive_run(ports, run, patience_ms=0), PATIENCE_SECONDS)

    head = asyncio.run(play())
    (child,) = ports.journal.children(head.run)
    return head, child


def test_a_child_that_waits_parks_its_parent(tmp_path):
    """Nobody sits there; when the child's gate is answered child and parent come to their ends."""
    ports = fake_ports_with_machines(tmp_path)

    head, child = waiting(ports)
    assert (head.state, child.state, ports.locks.held) == ("commanding", "asking", {})
    posted = RunService(ports).answer(RunService(ports).gate(child.run), "approve", "ann")
    assert settle_post(ports, child.run, posted)["state"] == "granted"
    assert ports.journal.head(head.run).state == "satisfied"


def test_a_child_driven_by_somebody_else(tmp_path):
    """Its parent waits for the end, which comes through the inbox."""
    going, both = asyncio.Event(), asyncio.Event()

    async def slow(_call):
        going.set()
        await both.wait()
        return ErrandFacts(ok=True)

    ports = fake_ports_with_machines(tmp_path, slow)

    async def play():
        run = await begin_run(ports, "captain")
        first = Driver(ports)
        parent = asyncio.create_task(first.drive(run))
        await going.wait()
        first.stop()
        await parent
        (child,) = ports.journal.children(run)
        theirs = asyncio.create_task(drive_run(ports, child.run))
        await wait_until(lambda: child.run in ports.locks.held)
        mine = asyncio.create_task(drive_run(ports, run))
        await wait_until(lambda: run in ports.locks.held or mine.done())
        both.set()
        await asyncio.wait_for(asyncio.gather(theirs, mine), PATIENCE_SECONDS)
        return run

    run = asyncio.run(play())
    head = ports.journal.head(run)
    if head.state != "satisfied":  # the child's end came after its parent had parked: it was posted
        head = asyncio.run(drive_run(ports, run))
    assert head.state == "satisfied"
    assert [e.event for e in read_run_tape(ports, run) if e.kind == "transition"] == ["mate_back", "all_back"]


def test_a_child_is_made_once(tmp_path):
    """A parent that is driven again finds the child it has made."""

    async def endless(call):
        await asyncio.sleep(0 if call.item.starts > 1 else 60)
        return ErrandFacts(ok=True)

    ports = fake_ports_with_machines(tmp_path, endless)

    async def play():
        run = await begin_run(ports, "captain", errands=2)
        driver = Driver(ports)
        drive = asyncio.create_task(driver.drive(run))
        await wait_until(lambda: working(ports, run) == 2)
        driver.stop()
        await drive
        return await drive_run(ports, run)

    head = asyncio.run(play())
    assert (head.state, len(ports.journal.children(head.run))) == ("satisfied", 2)


@pytest.mark.parametrize("how", ["unknown machine", "broken tape"])
def test_a_child_that_cannot_be_driven_has_ended(tmp_path, how):
    """For its parent, which goes on; the child itself is shown for what it is."""
    ports = fake_ports_with_machines(tmp_path)

    async def play():
        if how == "unknown machine":
            return await drive_run(ports, await begin_run(ports, "captain", child="nobody"))
        run = await begin_run(ports, "captain", child="watch", options={"after": 10**9})
        await drive_run(ports, run)
        (child,) = ports.journal.children(run)
        ports.journal._rows[child.run][0] = (1, b"{}", "00")
        ports.journal.post(child.run, "abort", {}, 0)
        return await drive_run(ports, run)

    head = asyncio.run(play())
    lost = next(e for e in read_run_tape(ports, head.run) if e.event == "mate_lost")
    assert (head.state, lost.data["outcome"]) == ("angry", "broken")
    assert lost.why


def test_a_child_that_rests_at_a_gate_is_not_over(tmp_path):
    """Only when it has nothing more to do or to ask is its parent told."""
    ports = fake_ports_with_machines(tmp_path)
    base = ports.workspace(None).base(None)
    options = {"mode": "proposal", "base_commit": base.commit, "base_tree": base.tree}
    head = play_run(ports, "captain", child="roundtable", options=options)
    (child,) = ports.journal.children(head.run)
    assert (child.outcome, child.status, head.state) == (
        "await_operator_confirm", "waiting for you", "commanding",
    )  # fmt: skip
    posted = RunService(ports).answer(RunService(ports).gate(child.run), "reject", "ann")
    settle_post(ports, child.run, posted)
    assert (ports.journal.head(head.run).state, ports.journal.head(child.run).outcome) == (
        "angry",
        "canceled",
    )


# ── stopping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def endless(_call):
    await asyncio.sleep(60)


@pytest.mark.parametrize("machine", ["captain", "admiral"])
def test_stopping_a_parent_stops_its_children(tmp_path, machine):
    """While they work: every child ends as canceled, nothing goes on, nothing stays locked."""
    ports = fake_ports_with_machines(tmp_path, endless)

    async def play():
        run = await begin_run(ports, machine, errands=3)
        drive = asyncio.create_task(drive_run(ports, run))
        await wait_until(lambda: working(ports, run) == 3)
        posted = RunService(ports).abort(run, "ann", "enough")
        await asyncio.wait_for(drive, PATIENCE_SECONDS)
        return run, ports.journal.verdict(posted)

    run, verdict = asyncio.run(play())
    head = ports.journal.head(run)
    assert (verdict["result"], head.status, ports.locks.held) == ("taken", "stopped", {})
    assert head.state == ("stopped" if machine == "captain" else "commanding")
    for child in ports.journal.children(run):
        assert (child.status, child.outcome) == ("stopped", "canceled")
        assert entry_kinds(ports, child.run)[-2:] == ["note", "sealed"]
        assert ports.journal.pending(child.run) == []


def test_stopping_a_parked_family(tmp_path):
    """Nobody drives, the child waits for a person: the one command ends both."""
    ports = fake_ports_with_machines(tmp_path)
    head, child = waiting(ports)
    assert settle_post(ports, head.run, RunService(ports).abort(head.run, "ann"))["result"] == "taken"
    assert ports.journal.head(head.run).state == "stopped"
    assert (ports.journal.head(child.run).status, ports.journal.head(child.run).outcome) == (
        "stopped",
        "canceled",
    )
    assert ports.journal.gates() == []


def test_stopping_a_child_is_told_to_its_parent(tmp_path):
    """A child that a person has canceled in place is an end like any other."""
    ports = fake_ports_with_machines(tmp_path)
    head, child = waiting(ports)
    settle_post(ports, child.run, RunService(ports).abort(child.run, "ann"))
    after = ports.journal.head(head.run)
    assert (after.state, read_run_tape(ports, head.run)[-2].data["outcome"]) == ("angry", "canceled")


def test_stopping_while_another_drives_the_child(tmp_path):
    """The abort is in its inbox, and whoever drives it takes it from there."""
    ports = fake_ports_with_machines(tmp_path, endless)
    other = fake_ports_with_machines(tmp_path, endless, journal=ports.journal, locks=ports.locks)

    async def play():
        run = await begin_run(ports, "captain")
        first = Driver(ports)
        parent = asyncio.create_task(first.drive(run))
        await wait_until(lambda: working(ports, run) == 1)
        first.stop()
        await parent
        (child,) = ports.journal.children(run)
        theirs = asyncio.create_task(drive_run(other, child.run))
        await wait_until(lambda: child.run in ports.locks.held)
        posted = RunService(ports).abort(run, "ann")
        await RunService(ports).settle(run, posted)
        return run, await asyncio.wait_for(theirs, PATIENCE_SECONDS)

    run, child = asyncio.run(play())
    assert (child.outcome, ports.journal.head(run).state, isinstance(ports.locks, FakeLocks)) == (
        "canceled", "stopped", True,
    )  # fmt: skip


def test_a_whole_family_of_roundtables(tmp_path):
    """Two implementations as children: trees of their own, both approved."""
    ports, head = family(tmp_path, 50, errands=2)
    trees = {load_active_run(ports, c.run).snapshot.context.tree for c in ports.journal.children(head.run)}
    assert (head.state, len(trees)) == ("satisfied", 1)
