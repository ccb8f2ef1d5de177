"""A subscription reports each entry of a run once and in order, whichever process drives it."""

import asyncio

import pytest
from tests.support.small_machines import (
    begin_run,
    drive_run,
    fake_ports_with_machines,
    play_run,
    read_run_tape,
    succeed,
    wait_until,
)

from steersman.adapters.process.run_locks import WakeupSockets
from steersman.adapters.storage.sqlite.reader import SqliteJournalReader
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.app import subscriptions
from steersman.app.principal import Principal
from steersman.app.runs import RunService
from steersman.app.subscriptions import follow_run
from steersman.errors import UserError


@pytest.fixture(autouse=True)
def _quick_ends(monkeypatch):
    """A run that nothing drives is given up sooner than in life."""
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(subscriptions, "DRIVER_START_SECONDS", 1.0)


async def _collect(ports, run, after=0):
    return [update async for update in follow_run(ports, run, after)]


def _seqs(updates):
    return [entry.seq for update in updates for entry in update.entries]


def test_a_parked_run_is_reported_once(tmp_path):
    """All that is on its tape comes in one update, and the subscription ends."""
    ports = fake_ports_with_machines(tmp_path)
    run = play_run(ports, "watch", after=0).run
    updates = asyncio.run(_collect(ports, run))
    assert (len(updates), _seqs(updates)) == (1, [entry.seq for entry in read_run_tape(ports, run)])
    assert updates[0].head.status == "waiting for you"


def test_a_subscription_begins_after_an_entry(tmp_path):
    """What a caller has already is not reported again."""
    ports = fake_ports_with_machines(tmp_path)
    run = play_run(ports).run
    last = ports.journal.head(run).seq
    assert _seqs(asyncio.run(_collect(ports, run, last - 1))) == [last]


def test_entries_of_another_driver_arrive_in_order(tmp_path):
    """A reader of the store follows what a driver with a connection of its own commits, from begin to end."""
    store = tmp_path / "store.db"
    allowed = asyncio.Event()

    async def waits(call):
        await allowed.wait()
        return await succeed(call)

    writing = fake_ports_with_machines(tmp_path, waits, journal=SqliteJournal(store))

    async def play():
        run = await begin_run(writing)
        reading = fake_ports_with_machines(tmp_path, locks=writing.locks, journal=SqliteJournalReader(store))
        updates = []
        driving = asyncio.create_task(drive_run(writing, run))
        async for update in follow_run(reading, run):
            updates.append(update)
            allowed.set()
        await driving
        reading.journal.close()
        return run, updates

    run, updates = asyncio.run(play())
    assert _seqs(updates) == [entry.seq for entry in read_run_tape(writing, run)]
    assert len(updates) > 1
    assert (updates[-1].head.state, updates[-1].last_seq) == ("home", updates[-1].head.seq)
    writing.journal.close()


def test_a_second_driver_is_followed_too(tmp_path):
    """The subscription goes on when one driver lets go of the run and another takes it over."""
    ports = fake_ports_with_machines(tmp_path)
    run = play_run(ports, "watch", after=0).run

    async def play():
        seen = await _collect(ports, run)
        runs = RunService(ports)
        message = runs.answer(runs.gate(run), "approve", Principal("ann").person)
        following = asyncio.create_task(_collect(ports, run, seen[-1].last_seq))
        await runs.settle(run, message)
        return seen + await following

    updates = asyncio.run(play())
    assert _seqs(updates) == [entry.seq for entry in read_run_tape(ports, run)]


def test_a_message_of_another_process_wakes_a_subscription(tmp_path, monkeypatch):
    """The wake-up socket ends the wait at once; nothing listens any more afterwards."""
    monkeypatch.setattr(subscriptions, "POLL_SECONDS", 30.0)
    sockets = WakeupSockets(tmp_path / "bell")
    ports = fake_ports_with_machines(tmp_path, bell=sockets)
    run = asyncio.run(begin_run(ports))

    async def play():
        lock = ports.locks.acquire(run)
        following = asyncio.create_task(_collect(ports, run))
        await wait_until(lambda: list((tmp_path / "bell").glob("*")))
        await asyncio.sleep(0.05)
        lock.release()
        await drive_run(ports, run)
        sockets.notify()
        return await asyncio.wait_for(following, 20)

    assert _seqs(asyncio.run(play())) == [entry.seq for entry in read_run_tape(ports, run)]
    assert list((tmp_path / "bell").iterdir()) == []


def test_a_run_that_is_not_there_is_an_error(tmp_path):
    """The message names the command that lists runs."""
    ports = fake_ports_with_machines(tmp_path)
    with pytest.raises(UserError, match="steersman runs --all"):
        asyncio.run(_collect(ports, "261116-none"))
