"""Many effects in flight: who is late, who is stopped, and what an effect keeps while it is under way."""

import asyncio

import pytest
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


def test_those_that_outlive_their_state_come_late(tmp_path):
    """Each is journaled when it comes, none is folded, and the run waits for them before it parks."""

    async def performer(call):
        # One after the other, each when the one before it is on tape: the first one leaves the state.
        on_tape = {"transition", "effect_finished"}
        await wait_until(
            lambda: sum(kind in on_tape for kind in entry_kinds(ports, call.run)) == call.given("n")
        )
        return ErrandFacts(ok=True, weight=call.given("n"))

    ports = fake_ports_with_machines(tmp_path, performer)
    head = play_run(ports, "loyal", errands=4)
    late = [e for e in read_run_tape(ports, head.run) if e.kind == "effect_finished"]
    assert (head.state, head.status) == ("resting_", "waiting for you")
    assert [(e.late, e.data["weight"]) for e in late] == [(True, 1), (True, 2), (True, 3)]
    assert load_active_run(ports, head.run).snapshot.context.done == [0]
    assert [i.kind for i in load_active_run(ports, head.run).snapshot.items.values()] == ["gate"]


def test_those_that_do_not_are_stopped(tmp_path):
    """Leaving the state cancels them; nothing of theirs is journaled."""
    cancelled = []

    async def performer(call):
        try:
            await asyncio.sleep(60 if call.given("n") else 0)
        except asyncio.CancelledError:
            cancelled.append(call.given("n"))
            raise
        return ErrandFacts(ok=True, weight=0)

    ports = fake_ports_with_machines(tmp_path, performer)
    head = play_run(ports, "fickle", errands=4)
    assert (head.state, sorted(cancelled)) == ("resting_", [1, 2, 3])
    assert "effect_finished" not in entry_kinds(ports, head.run)


def test_those_that_come_at_the_same_moment(tmp_path):
    """The first leaves the state; results that were there already are journaled as late, not lost and not folded."""
    together = asyncio.Barrier(3)

    async def performer(call):
        await together.wait()
        return ErrandFacts(ok=True, weight=call.given("n"))

    ports = fake_ports_with_machines(tmp_path, performer)
    head = play_run(ports, "fickle", errands=3)
    late = [e for e in read_run_tape(ports, head.run) if e.kind == "effect_finished"]
    assert (head.state, len(load_active_run(ports, head.run).snapshot.context.done)) == ("resting_", 1)
    assert len(late) == 2
    assert all(e.late for e in late)


def test_the_late_are_never_taken_for_the_new(tmp_path):
    """When the state is entered again, results of the visit before are late: the new visit has asked anew."""
    slow = []

    async def performer(call):
        if not slow and call.given("n") == 0:
            slow.append(call.effect)
            await wait_until(lambda: ports.journal.pending(call.run) == [] and slow[1:])
            return ErrandFacts(ok=True, weight="old")
        slow.append(call.effect)
        await wait_until(lambda: "effect_finished" in entry_kinds(ports, call.run))
        return ErrandFacts(ok=True, weight="new")

    ports = fake_ports_with_machines(tmp_path, performer)

    async def play():
        run = await begin_run(ports, "loyal", errands=1)
        drive = asyncio.create_task(drive_run(ports, run))
        await wait_until(lambda: slow)
        RunService(ports).send(run, "again", {}, "ann")
        return await asyncio.wait_for(drive, PATIENCE_SECONDS)

    head = asyncio.run(play())
    late = [e.data["weight"] for e in read_run_tape(ports, head.run) if e.late]
    assert (late, load_active_run(ports, head.run).snapshot.context.done) == (["old"], ["new"])


def test_an_outliving_effect_survives_its_driver(tmp_path):
    """A run that parks has none; one that is stopped begins them again, late as they are."""
    once_more = asyncio.Event()

    async def performer(call):
        if call.given("n") == 1:
            await once_more.wait()
        return ErrandFacts(ok=True, weight=call.given("n"))

    ports = fake_ports_with_machines(tmp_path, performer)

    async def play():
        run = await begin_run(ports, "loyal", errands=2)
        driver = Driver(ports)
        drive = asyncio.create_task(driver.drive(run))
        await wait_until(lambda: ports.journal.head(run).state == "resting_")
        driver.stop()
        await drive
        between = [i.job for i in load_active_run(ports, run).snapshot.items.values()]
        once_more.set()
        return run, between, await drive_run(ports, run)

    run, between, head = asyncio.run(play())
    assert (sorted(between), head.state) == (["ask", "part"], "resting_")
    assert [e.data["weight"] for e in read_run_tape(ports, run) if e.late] == [1]


def test_late_after_the_end(tmp_path):
    """A result that comes when the run has ended is journaled behind its seal; the outcome stays."""
    gate_open = asyncio.Event()

    async def performer(call):
        if call.given("n") == 1:
            await gate_open.wait()
        return ErrandFacts(ok=True, weight=call.given("n"))

    ports = fake_ports_with_machines(tmp_path, performer)

    async def play():
        run = await begin_run(ports, "loyal", errands=2)
        drive = asyncio.create_task(drive_run(ports, run))
        await wait_until(lambda: ports.journal.gates(run))
        RunService(ports).answer(RunService(ports).gate(run), "approve", "ann")
        await wait_until(lambda: ports.journal.head(run).state == "over")
        gate_open.set()
        return await asyncio.wait_for(drive, PATIENCE_SECONDS)

    head = asyncio.run(play())
    assert (head.status, head.outcome, entry_kinds(ports, head.run)[-2:]) == (
        "done", "over", ["sealed", "effect_finished"],
    )  # fmt: skip


# ── parts inside one effect ───────────────────────────────────────────────────────────────────────────────────────────


def test_parts_are_kept_as_they_come(tmp_path):
    """Each is an entry of its own; a further attempt finds those that are there and does the rest."""
    done = []

    async def performer(call):
        for key in "abc":
            if key in call.item.parts:
                continue
            if key == "c" and len(done) < 3:
                done.append("stop")
                await asyncio.sleep(60)
            done.append(key)
            await call.part(key, {"n": key})
        return ErrandFacts(ok=True, weight=sorted(call.item.parts))

    ports = fake_ports_with_machines(tmp_path, performer)

    async def play():
        run = await begin_run(ports)
        driver = Driver(ports)
        drive = asyncio.create_task(driver.drive(run))
        await wait_until(lambda: "stop" in done)
        driver.stop()
        await drive
        return await drive_run(ports, run)

    head = asyncio.run(play())
    assert (head.state, done) == ("home", ["a", "b", "stop", "c"])
    assert [e.data["n"] for e in read_run_tape(ports, head.run) if e.kind == "part_finished"] == [
        "a", "b", "c",
    ]  # fmt: skip


@pytest.mark.parametrize("facts", [1.5, 2**60, b"x", object()])
def test_a_part_that_may_not_go_on_tape(tmp_path, facts):
    """The effect is told, and breaks if it does not know better; nothing of the part is kept."""

    async def performer(call):
        await call.part("a", facts)
        return ErrandFacts(ok=True)

    ports = fake_ports_with_machines(tmp_path, performer)
    head = play_run(ports)
    assert (head.state, "part_finished" in entry_kinds(ports, head.run)) == ("lost", False)


def test_parts_of_many_effects_at_once(tmp_path):
    """Parts and results of several effects come in any order; every one of them is on tape once."""

    async def performer(call):
        for n in range(5):
            await asyncio.sleep(0.001 * (call.given("n") % 3))
            await call.part(str(n), {"of": call.given("n"), "n": n})
        return ErrandFacts(ok=False, weight=call.given("n"))

    ports = fake_ports_with_machines(tmp_path, performer)
    head = play_run(ports, "loyal", errands=6)
    parts = [(e.data["of"], e.data["n"]) for e in read_run_tape(ports, head.run) if e.kind == "part_finished"]
    assert sorted(parts) == [(a, b) for a in range(6) for b in range(5)]
    assert len([e for e in read_run_tape(ports, head.run) if e.event == "failed"]) == 6
    assert settle_post(ports, head.run, RunService(ports).abort(head.run, "ann"))["result"] == "taken"
