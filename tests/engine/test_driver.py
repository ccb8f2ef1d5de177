"""Driving: what effects bring back, what breaks, what comes late, and many runs at once."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.support.faulty_disks import CountingVFS
from tests.support.small_machines import (
    ERRAND,
    PATIENCE_SECONDS,
    ErrandFacts,
    begin_run,
    drive_run,
    entry_kinds,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
    succeed,
    wait_until,
)

from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.app.runs import RunService
from steersman.engine.active_run import load_active_run
from steersman.engine.driver import Driver, RunBusy
from steersman.errors import DefinitionError, StaleError, StoreBroken, StoreFull, UserError
from steersman.kernel.replay import decision_hash
from steersman.testing import FakeLocks, MemoryJournal


def brings(result):
    """A performer that brings back this."""

    async def performer(_call):
        if isinstance(result, BaseException):
            raise result
        return result

    return performer


# ── facts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_facts_become_an_event(tmp_path):
    """The naming decides; the run ends where its table says, sealed."""
    ports = fake_ports_with_machines(tmp_path, brings(ErrandFacts(ok=True, weight={"kg": 3})))
    head = play_run(ports)
    assert (head.state, head.status, head.outcome) == ("home", "done", "home")
    assert entry_kinds(ports, head.run)[-2:] == ["transition", "sealed"]
    assert load_active_run(ports, head.run).snapshot.context.last == {"kg": 3}


@pytest.mark.parametrize(
    "error", [ValueError("no"), RuntimeError(""), OSError(5, "io"), UserError("say it so")]
)
def test_a_performer_that_raises_is_a_fact(tmp_path, error):
    """What broke is a payload, the entry names it, and `otherwise` says what it means."""
    ports = fake_ports_with_machines(tmp_path, brings(error))
    head = play_run(ports)
    last = read_run_tape(ports, head.run)[-2]
    assert (head.state, last.event, last.data["error"]) == ("lost", "errand_failed", "provider_crashed")
    text = load_active_run(ports, head.run).payloads.get(last.data["detail_ref"])
    assert text == f"{type(error).__name__}: {error}"


def test_a_performer_that_is_not_there_is_a_fact(tmp_path):
    """A job that nobody performs here fails like any other."""
    ports = fake_ports_with_machines(tmp_path)
    ports.performers.clear()
    head = play_run(ports)
    assert head.state == "lost"


@pytest.mark.parametrize(
    "weight",
    [1.5, float("nan"), float("inf"), 2**53, -(2**60), 2**70, "\ud800", {"a": [1, {"b": 0.1}]}, {1: "x"}, b"x", object()],
)  # fmt: skip
def test_facts_that_may_not_go_on_tape(tmp_path, weight):
    """Floats, huge integers, broken text and foreign objects are refused into `otherwise`, however good the rest looks."""
    ports = fake_ports_with_machines(tmp_path, brings(ErrandFacts(ok=True, weight=weight)))
    head = play_run(ports)
    last = read_run_tape(ports, head.run)[-2]
    assert (head.state, last.event) == ("lost", "errand_failed")
    assert "weight" not in last.data


@pytest.mark.parametrize("facts", [None, {"ok": True}, "yes", 7, ERRAND])
def test_facts_of_another_type(tmp_path, facts):
    """Only what the job says it returns counts as its facts."""
    ports = fake_ports_with_machines(tmp_path, brings(facts))
    head = play_run(ports)
    assert (head.state, read_run_tape(ports, head.run)[-2].event) == ("lost", "errand_failed")


def test_facts_that_cannot_say_that_they_broke(tmp_path):
    """A machine whose facts have no defaults is told so, by name, when one of its effects breaks."""
    strict = msgspec.defstruct("Strict", [("n", int)], frozen=True)
    out = replace(ERRAND.jobs["run_errand"], returns=strict)
    machine = replace(ERRAND, jobs={"run_errand": out})
    ports = fake_ports_with_machines(tmp_path, brings(ValueError("no")))
    ports.machines["errand"] = machine
    try:
        with pytest.raises(DefinitionError, match=r"errand: run_errand broke .*: give Strict defaults"):
            play_run(ports)
    finally:
        ports.machines["errand"] = ERRAND
    assert ports.locks.held == {}


def test_text_of_a_broken_effect_is_not_in_the_entry(tmp_path):
    """Outside text is behind a payload name, redacted."""
    ports = fake_ports_with_machines(tmp_path, brings(ValueError("password=hunter2hunter2 and more")))
    head = play_run(ports)
    assert all(b"hunter2" not in body for _, body, _ in ports.journal.rows(head.run))
    ref = read_run_tape(ports, head.run)[-2].data["detail_ref"]
    assert "hunter2" not in load_active_run(ports, head.run).payloads.get(ref)


# ── ownership ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_driver_at_a_time(tmp_path):
    """Whoever comes second is told who drives, and nothing of the run is touched."""
    going, refused = asyncio.Event(), asyncio.Event()

    async def slow(_call):
        going.set()
        await refused.wait()
        return ErrandFacts(ok=True)

    async def play(ports):
        run = await begin_run(ports)
        first = asyncio.create_task(drive_run(ports, run))
        await going.wait()
        with pytest.raises(RunBusy, match=f"run {run} is driven by driver. Run `steersman watch {run}`"):
            await drive_run(ports, run)
        refused.set()
        return await first

    assert asyncio.run(play(fake_ports_with_machines(tmp_path, slow))).state == "home"


def test_an_owner_that_was_taken_over_cannot_write(tmp_path):
    """The new owner's epoch shuts the old one out: its result is refused, and the run is decided once."""
    going, go_on = asyncio.Event(), asyncio.Event()

    async def slow(call):
        if not going.is_set():
            going.set()
            await go_on.wait()
            return ErrandFacts()
        return ErrandFacts(ok=True)

    async def play(ports):
        run = await begin_run(ports)
        old = asyncio.create_task(drive_run(ports, run))
        await going.wait()
        head = await Driver(ports).drive(run, take_over=True)
        go_on.set()
        with pytest.raises(StaleError, match="another driver owns it now"):
            await old
        return head

    ports = fake_ports_with_machines(tmp_path, slow)
    head = asyncio.run(play(ports))
    assert head.state == "home"
    assert [e.event for e in read_run_tape(ports, head.run) if e.kind == "transition"] == ["errand_done"]


def test_an_owner_that_was_taken_over_stops_nothing(tmp_path):
    """Stopped by a person after it woke up, it leaves the new owner's processes alone."""
    going = asyncio.Event()

    async def endless(_call):
        going.set()
        await asyncio.sleep(60)

    async def play(ports, other):
        run = await begin_run(ports)
        driver = Driver(ports)
        old = asyncio.create_task(driver.drive(run))
        await going.wait()
        usurper = Driver(other)
        new = asyncio.create_task(usurper.drive(run, take_over=True))
        await wait_until(lambda: other.processes.stopped)
        before = len(ports.processes.stopped)
        driver.stop()
        await old
        after = len(ports.processes.stopped)
        usurper.stop()
        await new
        return before, after

    ports = fake_ports_with_machines(tmp_path, endless)
    other = fake_ports_with_machines(tmp_path, endless, journal=ports.journal, locks=ports.locks)
    before, after = asyncio.run(play(ports, other))
    assert (before, after) == (1, 1)


def test_the_lock_is_given_back_whatever_happens(tmp_path):
    """A run that cannot be loaded, or whose store fails, is not left locked."""
    ports = fake_ports_with_machines(tmp_path)
    with pytest.raises(UserError, match="there is no run 'nobody'"):
        asyncio.run(drive_run(ports, "nobody"))
    run = asyncio.run(begin_run(ports))
    ports.journal._rows[run][0] = (1, b"{}", "00")
    with pytest.raises(StoreBroken):
        asyncio.run(drive_run(ports, run))
    assert ports.locks.held == {}


def test_a_run_nobody_has_driven_has_not_run_twice(tmp_path):
    """Only an effect that an owner may have begun is marked as begun again."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports, "captain")
    (child,) = ports.journal.children(head.run)
    assert entry_kinds(ports, child.run) == ["created", "claimed", "transition", "sealed"]


def test_an_interrupted_effect_is_marked(tmp_path):
    """After a driver that went away its effect is begun again, with its reason, and says so ever after."""

    async def play(ports):
        live_run = await begin_run(ports)  # started by a driver that went away at once
        return await drive_run(ports, live_run)

    ports = fake_ports_with_machines(tmp_path)
    head = asyncio.run(play(ports))
    again = next(e for e in read_run_tape(ports, head.run) if e.kind == "effect_started")
    assert (again.retry.retry_count, again.retry.retry_reason) == (1, "interrupted")
    assert (again.held[0].starts, again.cause) == (2, again.held[0].id)


# ── stopping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_clean_stop_leaves_effects_begun(tmp_path):
    """Stopping cancels what is under way and writes nothing; the next driver begins it again and ends the run."""
    cancelled, going = [], asyncio.Event()

    async def endless(call):
        if call.item.starts > 2:
            return ErrandFacts(ok=True)
        going.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(call.effect)
            raise

    async def play(ports):
        run = await begin_run(ports)
        driver = Driver(ports)
        drive = asyncio.create_task(driver.drive(run))
        await going.wait()
        driver.stop()
        stopped = await asyncio.wait_for(drive, PATIENCE_SECONDS)
        before = entry_kinds(ports, run)
        return stopped, before, await drive_run(ports, run)

    ports = fake_ports_with_machines(tmp_path, endless)
    stopped, before, ended = asyncio.run(play(ports))
    assert (stopped.status, before) == ("working", ["created", "claimed", "effect_started"])
    assert cancelled == [f"{ended.run}:1:1"]
    assert (ended.state, ports.locks.held) == ("home", {})
    assert ports.processes.stopped.count(f"{ended.run}:") >= 2


def test_an_effect_that_cancels_itself_is_a_fact(tmp_path):
    """A performer may not make its run hang by being cancelled from within."""
    ports = fake_ports_with_machines(tmp_path, brings(asyncio.CancelledError()))

    async def play():
        return await asyncio.wait_for(drive_run(ports, await begin_run(ports)), PATIENCE_SECONDS)

    assert asyncio.run(play()).state == "lost"


# ── store trouble ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Failing(MemoryJournal):
    """Refuses the nth append."""

    def __init__(self, nth):
        super().__init__()
        self.left = nth

    def append(self, batch):
        self.left -= 1
        if self.left == 0:
            raise StoreFull("the disk is full")
        super().append(batch)


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_store_that_refuses_loses_nothing(tmp_path, nth):
    """The drive ends with the store's own error; resumed afterwards, the run ends as ever."""
    plain = play_run(fake_ports_with_machines(tmp_path / "plain"))
    ports = fake_ports_with_machines(tmp_path / "failing", journal=Failing(nth))

    async def play():
        try:
            run = await begin_run(ports)
            return await drive_run(ports, run)
        except StoreFull:
            heads = ports.journal.heads()
            return await drive_run(ports, heads[0].run if heads else await begin_run(ports))

    head = asyncio.run(play())
    assert head.state == plain.state == "home"
    assert len([e for e in read_run_tape(ports, head.run) if e.kind == "transition"]) == 1
    assert ports.locks.held == {}


def test_one_broken_run_stops_no_other(tmp_path):
    """A run whose tape cannot be read is quarantined by name; the others are listed and driven."""
    ports = fake_ports_with_machines(tmp_path)

    async def play():
        runs = [await begin_run(ports) for _ in range(3)]
        seq, body, hash_ = ports.journal._rows[runs[1]][0]
        ports.journal._rows[runs[1]][0] = (seq, body.replace(b"errand", b"errant"), hash_)
        return runs, await asyncio.gather(*(drive_run(ports, r) for r in runs), return_exceptions=True)

    runs, told = asyncio.run(play())
    assert [getattr(t, "state", None) for t in told] == ["home", None, "home"]
    assert "Other runs go on" in str(told[1])
    assert list(ports.journal.quarantined()) == [runs[1]]
    assert len(ports.journal.heads()) == 3


def test_a_cut_tape_is_quarantined(tmp_path):
    """A run with fewer entries than its head says is broken, not 'driven by another'."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports)
    ports.journal._rows[head.run].pop()
    with pytest.raises(StoreBroken, match="quarantined"):
        load_active_run(ports, head.run)
    assert head.run in ports.journal.quarantined()


# ── many at once ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_many_runs_in_one_process(tmp_path):
    """64 runs at once over SQLite: each ends as it would alone, and their commits are shared."""
    disk = CountingVFS(sync_seconds=0.02)  # while it syncs, the next commits gather
    store = SqliteJournal(tmp_path / "s" / "store.db", vfs=disk.name)

    async def slow(call):
        await asyncio.sleep(0.01)
        return ErrandFacts(ok=True, weight=len(call.run))

    ports = fake_ports_with_machines(tmp_path, slow, journal=store)

    async def play():
        runs = [await begin_run(ports) for _ in range(64)]
        disk.deeds.clear()
        driver = Driver(ports)
        return await asyncio.gather(*(driver.drive(r) for r in runs))

    heads = asyncio.run(play())
    assert {h.state for h in heads} == {"home"}
    hashes = {decision_hash(read_run_tape(ports, h.run)) for h in heads}
    assert len(hashes) == 1
    assert disk.syncs < 2 * 64, "two commits a run: alone each of them would sync"
    store.close()


def test_runs_together_fail_alone(tmp_path):
    """One of many whose run was taken over meanwhile is stale; the others go on."""
    store = SqliteJournal(tmp_path / "s" / "store.db")
    theft = []

    async def slow(call):
        await asyncio.sleep(0.05)
        if call.run == theft[0]:
            other = fake_ports_with_machines(Path(tmp_path), journal=store, locks=FakeLocks())
            await drive_run(other, call.run)
        return ErrandFacts(ok=True)

    ports = fake_ports_with_machines(tmp_path, slow, journal=store)

    async def play():
        runs = [await begin_run(ports) for _ in range(8)]
        theft.append(runs[3])
        driver = Driver(ports)
        return await asyncio.gather(*(driver.drive(r) for r in runs), return_exceptions=True)

    told = asyncio.run(play())
    assert [type(t).__name__ for t in told] == ["Head"] * 3 + ["StaleError"] + ["Head"] * 4
    assert all(h.state == "home" for h in store.heads())
    store.close()


def test_a_watcher_sees_every_entry(tmp_path):
    """In order, after they are durable."""
    ports = fake_ports_with_machines(tmp_path)
    seen = []

    def watch(live, entries):
        assert ports.journal.head(live.run).seq == entries[-1].entry.seq
        seen.extend(s.entry.seq for s in entries)

    async def play():
        run = await begin_run(ports)
        return await Driver(ports, watch).drive(run)

    head = asyncio.run(play())
    assert seen == list(range(2, head.seq + 1))


def test_a_parked_run_costs_nothing(tmp_path):
    """Driving a run that has nothing to do writes nothing."""
    ports = fake_ports_with_machines(tmp_path)
    head = play_run(ports)
    assert asyncio.run(drive_run(ports, head.run)) == head
    assert ports.journal.head(head.run) == head


def test_why_and_find(tmp_path):
    """Runs are found by a unique prefix; several or none say so."""
    ports = fake_ports_with_machines(tmp_path)
    runs = [asyncio.run(begin_run(ports)) for _ in range(2)]
    bridge = RunService(ports)
    assert bridge.find(runs[0][:-1]) == runs[0]
    with pytest.raises(UserError, match="write more of it"):
        bridge.find("260101")
    with pytest.raises(UserError, match="there is no run 'x'"):
        bridge.find("x")


def test_facts_are_plain_on_tape(tmp_path):
    """What an entry carries reads back as the facts it was given."""
    ports = fake_ports_with_machines(tmp_path, brings(ErrandFacts(ok=True, weight=[1, "ü", None])))
    head = play_run(ports)
    data = read_run_tape(ports, head.run)[-2].data
    assert msgspec.convert(data, ErrandFacts) == ErrandFacts(ok=True, weight=[1, "ü", None])


def test_well_is_well(tmp_path):
    """The small machines themselves work."""
    assert asyncio.run(succeed(None)) == ErrandFacts(ok=True)
