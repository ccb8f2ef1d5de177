"""One program that was started, with everything that may come of it.

On Linux a subreaper stands between us and the program, and a control group around it where one can be made; elsewhere the
program is our own child, and its marks and its session are all there is.
**Invariant:** argv only, no shell; every child is ended with `reap` and `closed`, and then nothing of it is left open.
"""

import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib.util import MAGIC_NUMBER, cache_from_source
from typing import IO, Any

from steersman.adapters.process import subreaper
from steersman.adapters.process.cgroups import ProgramCgroup, create_program_cgroup
from steersman.adapters.process.output import OutputActivity, OutputSink
from steersman.adapters.process.process_table import (
    CALL_VARIABLE,
    EFFECT_VARIABLE,
    SUBREAPER_VARIABLE,
    ProcessInfo,
    find_process_tree,
)

WorkingDirectory = str | os.PathLike[str]
# Seconds for a subreaper with nothing to do, and for one that has to kill.
_QUICK_EXIT_SECONDS, _KILL_EXIT_SECONDS = (0.2, 3.0)


class SupervisedProgram:
    """A program under way: `process` is its subreaper, or itself where there is none."""

    def __init__(
        self, process: asyncio.subprocess.Process, call: str, group: ProgramCgroup, status: OutputSink | None
    ) -> None:
        self._process, self._call, self._group, self._status = process, call, group, status

    async def wait_for_end(self) -> None:
        """Waits for the program itself; what it has started may be left."""
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._process.wait())}
        if self._status is not None:
            waits.add(asyncio.ensure_future(self._status.wait_for_end()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def list_survivors(self) -> set[int]:
        """The living processes of it. A subreaper that lives has them all below it; one that was killed may have lost some."""
        group_members = set(filter(subreaper.is_process_alive, self._group.members()))
        code = self._process.returncode
        if self._status is not None and code is None:
            return group_members | subreaper.find_descendants(self._process.pid)
        if self._status is not None and code is not None and code >= 0:
            return group_members  # it ended by itself: no process was below it any more
        return group_members | find_process_tree(self._is_ours)

    def _is_ours(self, process: ProcessInfo) -> bool:
        return process.call == self._call or process.session == self._program()

    def _program(self) -> int:
        message = self._status.value() if self._status is not None else b""
        return int(message[1:]) if message[:1] == b"p" and message[1:].isdigit() else self._process.pid

    def first_process(self) -> int:
        """0: there is no sandbox to look into."""
        return 0

    def kill_group(self) -> None:
        """Kills every process in the control group at once, where there is one."""
        self._group.kill()

    async def reap(self) -> int:
        """Reaps it and says how the program ended. A subreaper that stays has a process below it that we do not see."""
        for seconds, signal_number in (
            (_QUICK_EXIT_SECONDS, signal.SIGTERM),
            (subreaper.STOP_GRACE_SECONDS + _KILL_EXIT_SECONDS, signal.SIGKILL),
        ):
            try:
                async with asyncio.timeout(seconds):
                    return await self._process.wait()
            except TimeoutError:
                subreaper.send_signal_to_all({self._process.pid}, signal_number)
                # It may have been stopped from below.
                subreaper.send_signal_to_all({self._process.pid}, signal.SIGCONT)
        return await self._process.wait()

    def forbid_new_processes(self) -> None:
        """Tells a subreaper to start nothing any more, where it has not; one that was stopped from below goes on."""
        if self._status is not None and self._process.returncode is None:
            if not self._status.value():
                subreaper.send_signal_to_all({self._process.pid}, signal.SIGTERM)
            subreaper.send_signal_to_all({self._process.pid}, signal.SIGCONT)

    async def closed(self, seconds: float) -> None:
        """Closes what was open and removes the control group."""
        if self._status is not None:
            await self._status.closed(seconds)
        await self._group.removed()

    def why_not(self) -> OSError | None:
        """What kept the program from being started."""
        message = self._status.value() if self._status is not None else b"p"
        if message[:1] == b"p":
            return None
        number = int(message[1:]) if message[1:].isdigit() else errno.ECHILD
        return OSError(number, os.strerror(number) if message else "what should keep it has ended too early")


async def start_supervised(
    argv: Sequence[str],
    cwd: WorkingDirectory,
    env: Mapping[str, str],
    marks: tuple[str, str],
    streams: tuple[IO[bytes] | int, int, int],
) -> SupervisedProgram:
    """Starts a program with exactly this environment and the marks; raises what keeps it from being started."""
    effect, call = marks
    if not can_use_subreaper():
        marked = {**env, EFFECT_VARIABLE: effect, CALL_VARIABLE: call}
        process = await spawn_process(argv, cwd, marked, streams)
        return SupervisedProgram(process, call, ProgramCgroup(), None)
    group = create_program_cgroup(effect, call)
    try:
        return await _start_under_subreaper(argv, cwd, env, marks, streams, group)
    except BaseException:
        group.remove()
        raise


def can_use_subreaper() -> bool:
    """Whether programs get a subreaper here: on Linux, with an interpreter to run it."""
    return sys.platform == "linux" and all(map(os.path.isfile, (sys.executable or "", subreaper.__file__)))


async def _start_under_subreaper(
    argv: Sequence[str],
    cwd: WorkingDirectory,
    env: Mapping[str, str],
    marks: tuple[str, str],
    streams: tuple[IO[bytes] | int, int, int],
    group: ProgramCgroup,
) -> SupervisedProgram:
    marks_env = {EFFECT_VARIABLE: marks[0], CALL_VARIABLE: marks[1]}
    spec_fd = _write_subreaper_spec(argv, {**env, **marks_env}, group)
    status = OutputSink(256, OutputActivity())
    try:
        status_fd = await status.open()
        try:
            command = (
                sys.executable,
                "-I",
                "-S",
                prefer_cached_bytecode(subreaper.__file__),
                str(os.getpid()),
                str(spec_fd),
                str(status_fd),
            )
            # Its own environment holds the marks alone: a process below that reads it finds no secret.
            process = await spawn_process(
                command, cwd, {**marks_env, SUBREAPER_VARIABLE: "1"}, streams, (spec_fd, status_fd)
            )
        finally:
            os.close(status_fd)
    except BaseException:
        status.close()
        raise
    finally:
        os.close(spec_fd)
    return SupervisedProgram(process, marks[1], group, status)


async def spawn_process(
    argv: Sequence[str],
    cwd: WorkingDirectory,
    env: Mapping[str, str],
    streams: tuple[IO[bytes] | int, int, int],
    inherited_fds: tuple[int, ...] = (),
) -> asyncio.subprocess.Process:
    """Starts exactly this, in a session of its own, with the descriptors it is handed."""
    stdin, stdout, stderr = streams
    return await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        pass_fds=inherited_fds,
    )


def _write_subreaper_spec(argv: Sequence[str], env: Mapping[str, str], group: ProgramCgroup) -> int:
    """An unnamed file with the program that the subreaper starts."""
    arguments = [os.fsencode(word) for word in argv]
    pairs = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items()]
    if not arguments:
        raise ValueError("there is no program to start")
    if any(b"\0" in part for part in (*arguments, *pairs)):
        raise ValueError("embedded null byte")
    if any(not name or "=" in name for name in env):
        raise ValueError("illegal environment variable name")
    spec_fd = os.memfd_create("steersman")
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, spec_fd)
        packed = memoryview(
            subreaper.pack_program_spec(arguments, list(map(os.fsencode, group.folders)), pairs)
        )
        while packed:
            packed = packed[os.write(spec_fd, packed) :]
        os.lseek(spec_fd, 0, os.SEEK_SET)
        undo.pop_all()
    return spec_fd


def prefer_cached_bytecode(script: str) -> str:
    """What to give an interpreter: the byte code that an import of the script has left, or the script."""
    try:
        cached = cache_from_source(script)
        with open(cached, "rb") as file:
            header = file.read(16)
        source_status = os.stat(script)
    except (OSError, NotImplementedError):
        return script
    header_fields = (0, int(source_status.st_mtime) & 0xFFFFFFFF, source_status.st_size & 0xFFFFFFFF)
    expected_header = MAGIC_NUMBER + b"".join(field.to_bytes(4, "little") for field in header_fields)
    return cached if header == expected_header else script
