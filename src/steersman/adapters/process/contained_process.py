"""A sandbox as a child: it needs no subreaper, because no process leaves a process namespace, and the namespace ends with its first process.

A sandbox waits until it is in its control group, which bounds its number of processes. When its parent ends it
dies with it. Afterwards its first process is waited for: a sandbox may be gone a moment before what it held.
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
    """Reads which process is the first one inside, puts it into the control group and lets it begin."""

    def __init__(self, group: ProgramCgroup, begin_fd: int) -> None:
        super().__init__(4096, OutputActivity())
        self.pid = 0
        self._group, self._begin_fd, self._process_fd = group, begin_fd, -1

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        with contextlib.suppress(ValueError, KeyError, OSError):  # there is none, or it is gone already
            pid = int(json.loads(self.value())["child-pid"])
            self._process_fd = os.pidfd_open(pid)
            self.pid = pid
            self._group.add(pid)
            os.write(self._begin_fd, b"1")
        self._close_descriptors()

    def is_alive(self) -> bool:
        """A descriptor of a process can be read once it is gone, and everyone inside with it."""
        if self._process_fd < 0:
            return False
        poller = select.poll()
        poller.register(self._process_fd, select.POLLIN)
        return not poller.poll(0)

    def let_go(self) -> None:
        """Closes what is open."""
        self._close_descriptors()
        if self._process_fd >= 0:
            os.close(self._process_fd)
            self._process_fd = -1

    def _close_descriptors(self) -> None:
        if self._begin_fd >= 0:
            os.close(self._begin_fd)
            self._begin_fd = -1


class SandboxedProgram:
    """A sandbox under way."""

    def __init__(
        self, process: asyncio.subprocess.Process, starter: SandboxStarter, group: ProgramCgroup
    ) -> None:
        self._process, self._starter, self._group = process, starter, group

    async def wait_for_end(self) -> None:
        """Waits for the program; the sandbox ends with it."""
        await self._process.wait()

    def list_survivors(self) -> set[int]:
        """The living processes of it."""
        if self._process.returncode is None:
            return {self._process.pid, *subreaper.find_descendants(self._process.pid)}
        return (
            {self._starter.pid, *subreaper.find_descendants(self._starter.pid)}
            if self._starter.is_alive()
            else set()
        )

    def first_process(self) -> int:
        """The first one inside; 0 before it is known and after its end."""
        return self._starter.pid if self._starter.is_alive() else 0

    def kill_group(self) -> None:
        """Kills every process in the control group at once, where there is one."""
        self._group.kill()

    async def reap(self) -> int:
        """Reaps it and says how the program ended."""
        return await self._process.wait()

    def forbid_new_processes(self) -> None:
        """Nothing to do: the first process starts nothing before it is let in."""

    async def closed(self, seconds: float) -> None:
        """Closes what was open and removes the control group."""
        await self._starter.closed(seconds)
        self._starter.let_go()
        await self._group.removed()

    def why_not(self) -> OSError | None:
        """A sandbox that cannot be closed says so itself, and starts nothing."""
        return None


async def start_sandboxed(
    argv: Sequence[str],
    doors: SandboxDescriptors,
    cwd: WorkingDirectory,
    env: Mapping[str, str],
    marks: tuple[str, str],
    streams: tuple[IO[bytes] | int, int, int],
) -> SandboxedProgram:
    """Starts a sandbox, and the program in it once it is in its control group."""
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
