"""A box as a child: it needs no keeper, because a process namespace lets nobody out and ends with its first process.

A box waits until it is inside its fence, which bounds how many it may become. Whoever started it may end: it is told to
die with it. Afterwards its first process is waited for: a box may be gone a moment before what it held.
**Invariant:** a number of a process is used only while a descriptor says that it still means the same one.
"""

import asyncio
import contextlib
import json
import os
import select
from collections.abc import Mapping, Sequence
from typing import IO

from steersman.adapters.process import subreaper
from steersman.adapters.process.cgroups import ProgramCgroup, create_program_cgroup
from steersman.adapters.process.child_process import WorkingDirectory, spawn_process
from steersman.adapters.process.output import OutputActivity, OutputSink
from steersman.adapters.process.process_table import CALL_VARIABLE, EFFECT_VARIABLE
from steersman.ports.sandbox import SandboxDescriptors


class SandboxStarter(OutputSink):
    """Hears from a box which process is the first one inside, puts it behind the fence and lets it begin."""

    def __init__(self, group: ProgramCgroup, begin_fd: int) -> None:
        super().__init__(4096, OutputActivity())
        self.pid = 0
        self._group, self._begin, self._held = group, begin_fd, -1

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        with contextlib.suppress(ValueError, KeyError, OSError):  # there is none, or it is gone already
            pid = int(json.loads(self.value())["child-pid"])
            self._held = os.pidfd_open(pid)
            self.pid = pid
            self._group.add(pid)
            os.write(self._begin, b"1")
        self._close_descriptors()

    def is_alive(self) -> bool:
        """A descriptor of a process can be read once it is gone, and everyone inside with it."""
        if self._held < 0:
            return False
        poller = select.poll()
        poller.register(self._held, select.POLLIN)
        return not poller.poll(0)

    def let_go(self) -> None:
        """Closes what is open."""
        self._close_descriptors()
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def _close_descriptors(self) -> None:
        if self._begin >= 0:
            os.close(self._begin)
            self._begin = -1


class SandboxedProgram:
    """A box under way."""

    def __init__(
        self, process: asyncio.subprocess.Process, starter: SandboxStarter, group: ProgramCgroup
    ) -> None:
        self._process, self._first, self._group = process, starter, group

    async def wait_for_end(self) -> None:
        """Waits for the program; the box ends with it."""
        await self._process.wait()

    def list_survivors(self) -> set[int]:
        """Who is alive of it."""
        if self._process.returncode is None:
            return {self._process.pid, *subreaper.find_descendants(self._process.pid)}
        return (
            {self._first.pid, *subreaper.find_descendants(self._first.pid)}
            if self._first.is_alive()
            else set()
        )

    def first_process(self) -> int:
        """The first one inside; 0 before it is known and after its end."""
        return self._first.pid if self._first.is_alive() else 0

    def kill_group(self) -> None:
        """Ends everyone inside the fence at once, where there is one."""
        self._group.kill()

    async def reap(self) -> int:
        """Reaps it and says how the program ended."""
        return await self._process.wait()

    def forbid_new_processes(self) -> None:
        """There is nobody to be told before it begins."""

    async def closed(self, seconds: float) -> None:
        """Closes what was open and takes the fence away."""
        await self._first.closed(seconds)
        self._first.let_go()
        await self._group.removed()

    def why_not(self) -> OSError | None:
        """A box that cannot be closed says so itself, and starts nothing."""
        return None


async def start_sandboxed(
    argv: Sequence[str],
    doors: SandboxDescriptors,
    cwd: WorkingDirectory,
    env: Mapping[str, str],
    marks: tuple[str, str],
    streams: tuple[IO[bytes] | int, int, int],
) -> SandboxedProgram:
    """Starts a box, and the program in it once it is behind its fence."""
    group = create_program_cgroup(*marks)
    wait_fd, begin_fd = os.pipe()
    starter = SandboxStarter(group, begin_fd)
    info_fd = -1
    try:
        info_fd = await starter.open()
        command = (argv[0], doors.tells, str(info_fd), doors.waits, str(wait_fd), *argv[1:])
        marked = {**env, EFFECT_VARIABLE: marks[0], CALL_VARIABLE: marks[1]}
        return SandboxedProgram(
            await spawn_process(command, cwd, marked, streams, (info_fd, wait_fd)), starter, group
        )
    except BaseException:
        starter.close()
        starter.let_go()
        group.remove()
        raise
    finally:
        for fd in (wait_fd, info_fd):
            if fd >= 0:
                os.close(fd)
