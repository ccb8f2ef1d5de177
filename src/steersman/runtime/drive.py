"""Drives runs: claim → load → perform → append, until parked or ended.

One driver per run, held by a lock that dies with its process and fenced by an epoch in the store. Parked runs hold no
memory and no thread.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from steersman.errors import StaleError
from steersman.kernel.tape import Sealed
from steersman.ports.journal import Head
from steersman.runtime.live import Live, load
from steersman.runtime.passage import Busy, Passage
from steersman.runtime.world import World

__all__ = ["Busy", "Driver", "Watch"]

PATIENCE_MS = 120_000  # a wait up to this long is sat out, a longer one parks the run

Watch = Callable[[Live, Sequence[Sealed]], None]


class Driver:
    """Drives any number of runs in this process."""

    def __init__(
        self,
        world: World,
        watch: Watch | None = None,
        *,
        patience_ms: int = PATIENCE_MS,
        kind: str = "driver",
    ) -> None:
        self.world, self.kind, self.patience_ms = world, kind, patience_ms
        self.stopping = False
        self.heeds: int | None = (
            None  # an item of an inbox: where it is refused, its run is not driven for it
        )
        self._watch = watch
        self._active: dict[str, Passage] = {}
        self._ears: Any = None

    async def drive(
        self,
        run: str,
        *,
        take_over: bool = False,
        held: Any = None,
        live: Live | None = None,
        despite: tuple[str, str] | None = None,
    ) -> Head:
        """Drives a run until it waits for somebody or has its outcome; returns its head.

        One that does not fit its tape is refused; `despite` is a person with a reason to go on all the same. One whose
        settings go beyond the limits of now is driven only to take an abort.
        """
        lock = held or self.world.locks.acquire(run, take_over=take_over)
        if lock is None:
            owner = self.world.locks.owner(run) or "another process"
            raise Busy(f"run {run} is driven by {owner}; see `steersman watch {run}`, or stop that first")
        try:
            drive = Passage(self, live or await self._load(run, despite))
            self._enter(drive)
            try:
                if live is None:
                    await drive.claim()
                head = drive.live.head() if drive.declined else await drive.loop()
            except StaleError:
                drive.lost = True
                raise
            finally:
                self._leave(drive)
                await drive.close()
        finally:
            lock.release()
        await self._onward(head)
        return head

    async def _load(self, run: str, despite: tuple[str, str] | None) -> Live:
        from steersman.runtime.drive_check import check_before_driving  # who only looks does not need it

        live = load(self.world, run)
        await check_before_driving(live, despite)
        if all(posted.kind != "abort" for posted in self.world.journal.pending(run)):
            live.apply_limits()
        return live

    async def _onward(self, head: Head) -> None:
        """A child's end makes its parent runnable: it is driven too, unless somebody does."""
        parent = head.parent
        if not parent or parent in self._active or self.stopping:
            return
        if self.world.journal.pending(parent) and self.world.locks.owner(parent) is None:
            await self.drive(parent)

    def _enter(self, drive: Passage) -> None:
        if not self._active:
            self._listen()
        self._active[drive.live.run] = drive
        self._grouped()

    def _leave(self, drive: Passage) -> None:
        self._active.pop(drive.live.run, None)
        self._grouped()
        if not self._active and self._ears is not None:
            asyncio.get_running_loop().remove_reader(self._ears)
            self.world.bell.hush(self._ears)
            self._ears = None

    def _grouped(self) -> None:
        for drive in self._active.values():
            drive.live.together = len(self._active) > 1

    def _listen(self) -> None:
        self._ears = self.world.bell.listen()
        if self._ears is not None:
            asyncio.get_running_loop().add_reader(self._ears, self._heard)

    def _heard(self) -> None:
        self._ears.recv(64)
        for drive in self._active.values():
            drive.wake.set()

    def stop(self) -> None:
        """Lets go of every run as it is: what is under way is stopped and stays on tape as begun."""
        self.stopping = True
        for drive in self._active.values():
            drive.wake.set()

    def changed(self, live: Live, entries: Sequence[Sealed]) -> None:
        """Tells whoever watches; anchors a run that has its outcome, and again what is added to it."""
        if self._watch is not None:
            self._watch(live, entries)
        if self.world.sealed is not None and entries and _over(live, entries):
            last = entries[-1]
            self.world.sealed(live.run, last.entry.seq, last.hash, last.entry.at)


def _over(live: Live, entries: Sequence[Sealed]) -> bool:
    s = live.snapshot
    done = s.ended or (s.state in live.machine.settled and not s.items)
    return bool(done) or any(e.entry.kind == "sealed" for e in entries)
