"""Drives runs: lock, load, claim, then the run loop, until the run waits or has its outcome.

`drive` starts, continues and resumes a run alike. After a crash the lock of the dead driver is free at once; the next
driver resumes the run with `RunLoop.claim`, whose new epoch voids late writes of an older driver.
A parked run holds no memory and no thread.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from steersman.engine.active_run import ActiveRun, load_active_run
from steersman.engine.ports import Ports
from steersman.engine.run_loop import RunBusy, RunLoop
from steersman.errors import StaleError
from steersman.kernel.tape import SealedEntry
from steersman.ports.journal import Head

__all__ = ["Driver", "RunBusy", "RunWatcher"]

PATIENCE_MS = 120_000  # the driver waits this long for a timer; a longer wait parks the run

RunWatcher = Callable[[ActiveRun, Sequence[SealedEntry]], None]


class Driver:
    """Drives any number of runs in this process."""

    def __init__(
        self,
        ports: Ports,
        watch: RunWatcher | None = None,
        *,
        patience_ms: int = PATIENCE_MS,
        kind: str = "driver",
    ) -> None:
        self.world, self.kind, self.patience_ms = ports, kind, patience_ms
        self.stopping = False
        # An inbox item; when the run refuses it, the driver starts nothing else.
        self.heeds: int | None = None
        self._watch = watch
        self._active: dict[str, RunLoop] = {}
        self._ears: Any = None

    async def drive(
        self,
        run: str,
        *,
        take_over: bool = False,
        held: Any = None,
        live: ActiveRun | None = None,
        despite: tuple[str, str] | None = None,
    ) -> Head:
        """Drives a run until it waits for a person or has its outcome; returns its head.

        Raises StoreBroken for a run that does not fit its tape, unless `despite` gives a person and a reason. A run
        whose settings go beyond today's limits is driven only to take an abort.
        """
        lock = held or self.world.locks.acquire(run, take_over=take_over)
        if lock is None:
            owner = self.world.locks.owner(run) or "another process"
            raise RunBusy(
                f"run {run} is driven by {owner}. Run `steersman watch {run}`, or stop that driver first"
            )
        try:
            run_loop = RunLoop(self, live or await self._load(run, despite))
            self._add_run_loop(run_loop)
            try:
                if live is None:
                    await run_loop.claim()
                head = run_loop.live.head() if run_loop.was_only_refused else await run_loop.loop()
            except StaleError:
                run_loop.lost = True
                raise
            finally:
                self._remove_run_loop(run_loop)
                await run_loop.close()
        finally:
            lock.release()
        await self._drive_parent(head)
        return head

    async def _load(self, run: str, despite: tuple[str, str] | None) -> ActiveRun:
        from steersman.engine.drive_check import (
            check_before_driving,
        )  # commands that only show a run do not load this

        active_run = load_active_run(self.world, run)
        await check_before_driving(active_run, despite)
        if all(posted.kind != "abort" for posted in self.world.journal.pending(run)):
            active_run.apply_limits()
        return active_run

    async def _drive_parent(self, head: Head) -> None:
        """Drives the parent of a child that has ended, unless another driver does."""
        parent = head.parent
        if not parent or parent in self._active or self.stopping:
            return
        if self.world.journal.pending(parent) and self.world.locks.owner(parent) is None:
            await self.drive(parent)

    def _add_run_loop(self, run_loop: RunLoop) -> None:
        if not self._active:
            self._listen()
        self._active[run_loop.live.run] = run_loop
        self._grouped()

    def _remove_run_loop(self, run_loop: RunLoop) -> None:
        self._active.pop(run_loop.live.run, None)
        self._grouped()
        if not self._active and self._ears is not None:
            asyncio.get_running_loop().remove_reader(self._ears)
            self.world.bell.stop_listening(self._ears)
            self._ears = None

    def _grouped(self) -> None:
        for run_loop in self._active.values():
            run_loop.live.together = len(self._active) > 1

    def _listen(self) -> None:
        self._ears = self.world.bell.listen()
        if self._ears is not None:
            asyncio.get_running_loop().add_reader(self._ears, self._handle_wakeup)

    def _handle_wakeup(self) -> None:
        self._ears.recv(64)
        for run_loop in self._active.values():
            run_loop.wake.set()

    def stop(self) -> None:
        """Stops all effects and releases every run; the tape keeps the effects as begun."""
        self.stopping = True
        for run_loop in self._active.values():
            run_loop.wake.set()

    def changed(self, active_run: ActiveRun, entries: Sequence[SealedEntry]) -> None:
        """Passes new entries to the watcher; anchors a run that has its outcome, and again after each later entry."""
        if self._watch is not None:
            self._watch(active_run, entries)
        if self.world.sealed is not None and entries and _has_outcome(active_run, entries):
            last_entry = entries[-1]
            self.world.sealed(active_run.run, last_entry.entry.seq, last_entry.hash, last_entry.entry.at)


def _has_outcome(active_run: ActiveRun, entries: Sequence[SealedEntry]) -> bool:
    snapshot = active_run.snapshot
    is_settled = snapshot.ended or (snapshot.state in active_run.machine.settled and not snapshot.items)
    return bool(is_settled) or any(e.entry.kind == "sealed" for e in entries)
