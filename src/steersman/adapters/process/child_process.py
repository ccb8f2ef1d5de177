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
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import MAGIC_NUMBER, cache_from_source
from typing import IO, Any

from steersman.adapters.process import subreaper
from steersman.adapters.process.cgroups import ProgramCgroup, create_program_cgroup
from steersman.adapters.process.process_table import (
    CALL_VARIABLE,
    EFFECT_VARIABLE,
    SUBREAPER_VARIABLE,
    ProcessInfo,
    find_process_tree,
)

# ── output ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads what a program writes: bounded, in whole lines for a listener, and without making the program wait.
#
# What does not fit is left out between lines, so that a reader sees whole ones.
#
# **Invariant:** memory is bounded by the caps whatever arrives; a listener that breaks stops the program, not the loop.


LineListener = Callable[[bytes], object]

_GAP_NOTICE = b"\n[... %d bytes left out ...]\n"
_MAX_TORN_BYTES = 8192  # bytes of a line that are left out so that it is not torn
_CUT_LINE_NOTICE = b" [... %d bytes of this line left out ...]"


class OutputActivity:
    """When output last came, on any stream of one program, and whether a listener has heard enough."""

    def __init__(self) -> None:
        self.last: float | None = None
        self.first = asyncio.Event()
        self.enough = asyncio.Event()
        self.broken: BaseException | None = None  # what a listener raised
        self.excess = ""  # why the program has used too much

    def note_output(self) -> None:
        self.last = time.monotonic()
        self.first.set()


class LineSplitter:
    """Cuts a stream into lines for a listener; of a line beyond the cap the head is kept, and it is marked."""

    def __init__(self, listener: LineListener, cap: int, activity: OutputActivity) -> None:
        self._listener, self._cap, self._activity = listener, cap, activity
        self._line, self._lost = bytearray(), 0
        self._stopped = False

    def feed(self, data: bytes) -> None:
        """Tells every line that `data` completes, until the listener has heard enough."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            if self._stopped:
                return
            self._buffer_part(part)
            self._report_lines()
        self._buffer_part(rest)

    def stop_reporting(self) -> None:
        """Reports no result from here on: the program is being stopped, and its exit is no success."""
        self._stopped = True

    def flush_last_line(self) -> None:
        """Tells the last line of a program that ended by itself, where it has no newline."""
        if self._line and not self._stopped:
            self._report_lines()

    def _buffer_part(self, part: bytes) -> None:
        room = self._cap - len(self._line)
        self._line += part[:room]
        self._lost += max(len(part) - room, 0)

    def _report_lines(self) -> None:
        line = bytes(self._line)
        if self._lost:
            line += _CUT_LINE_NOTICE % self._lost
        self._line, self._lost = bytearray(), 0
        try:
            enough = self._listener(line)
        except BaseException as error:  # raised again where the program is waited for
            self._activity.broken = enough = error
        if enough:
            self._stopped = True
            self._activity.enough.set()


class OutputSink(asyncio.Protocol):
    """Reads a pipe to its end and keeps the head and the tail of what came."""

    def __init__(self, cap: int, activity: OutputActivity, lines: LineSplitter | None = None) -> None:
        self._half = max(cap // 2 - 32, 0)  # room for the sentence in the middle
        self._head, self._tail, self._received = bytearray(), bytearray(), 0
        self._activity, self._lines = activity, lines
        self._ended = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    async def open(self) -> int:
        """Starts reading and returns the end to write to."""
        ours, theirs = os.pipe()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(ours, "rb", 0))
        return theirs

    def data_received(self, data: bytes) -> None:
        self._activity.note_output()
        if self._lines is not None:
            self._lines.feed(data)
        self._received += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if (over := len(self._tail) - self._half) > 0:
            del self._tail[:over]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the name is the protocol's
        self._ended.set()

    async def wait_for_end(self) -> None:
        """Waits for the end of the pipe."""
        await self._ended.wait()

    async def closed(self, seconds: float) -> None:
        """Waits for the end of the pipe, but not for a stranger who still holds it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def value(self) -> bytes:
        head, tail = bytes(self._head), bytes(self._tail)
        if self._received == len(head) + len(tail):
            return head + tail
        if (end := head.rfind(b"\n", max(0, len(head) - _MAX_TORN_BYTES)) + 1) > 0:
            head = head[:end]
        tail = tail[tail.find(b"\n", 0, _MAX_TORN_BYTES) + 1 :]
        lost = self._received - len(head) - len(tail)
        return head + _GAP_NOTICE % lost + tail


# ── child process ────────────────────────────────────────────────────────────────────────────────


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
