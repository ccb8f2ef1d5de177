"""The entries of a run as they happen, whichever process drives it: the journal, read again when it has changed.

**Invariant:** a subscription only reads. An entry is reported once, in the order of the tape.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import msgspec

from steersman.engine.ports import Ports
from steersman.errors import UnknownRunError
from steersman.kernel.tape import Entry, read_entry
from steersman.ports.journal import Head

POLL_SECONDS = 0.2  # a commit of another process rings no bell; the store is asked whether it has changed
DRIVER_START_SECONDS = (
    3.0  # how long a run that nothing drives is still followed: its driver may only be starting
)


class RunUpdate(msgspec.Struct, frozen=True):
    """What has happened since the last update: new entries, and where the run is now."""

    run: str
    entries: tuple[Entry, ...]
    head: Head
    driven_by: str | None

    @property
    def last_seq(self) -> int:
        """The entry after which the next update begins."""
        return self.entries[-1].seq if self.entries else self.head.seq


async def follow_run(ports: Ports, run: str, after: int = 0) -> AsyncIterator[RunUpdate]:
    """The entries after `after`, then each new one; ends when the run has parked or ended and nothing drives it."""
    seen_seq, seen_change, last_driven = after, None, time.monotonic()
    with _listen_for_wakeups(ports) as wakeup:
        while True:
            driven_by, change = ports.locks.owner(run), ports.journal.changed()
            head = ports.journal.head(run)
            if head is None:
                raise UnknownRunError(run)
            if change != seen_change:
                entries = tuple(read_entry(body) for _, body, _ in ports.journal.rows(run, seen_seq))
                if entries or seen_change is None:
                    yield RunUpdate(run, entries, head, driven_by)
                seen_seq = entries[-1].seq if entries else seen_seq
                seen_change = change
            if driven_by is not None:
                last_driven = time.monotonic()
            elif head.status != "working" or time.monotonic() > last_driven + DRIVER_START_SECONDS:
                return
            await _wait_for_wakeup(wakeup)


@contextmanager
def _listen_for_wakeups(ports: Ports) -> Iterator[asyncio.Event]:
    """An event that is set when another process has posted a message."""
    loop, wakeup, listener = asyncio.get_running_loop(), asyncio.Event(), ports.bell.listen()

    def take_datagram() -> None:
        listener.recv(64)
        wakeup.set()

    if listener is not None:
        loop.add_reader(listener, take_datagram)
    try:
        yield wakeup
    finally:
        if listener is not None:
            loop.remove_reader(listener)
            ports.bell.stop_listening(listener)


async def _wait_for_wakeup(wakeup: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(POLL_SECONDS):
            await wakeup.wait()
    except TimeoutError:
        return
    wakeup.clear()
