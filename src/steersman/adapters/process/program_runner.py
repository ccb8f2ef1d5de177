"""Starts programs under an effect id and stops everything that comes of them.

Each program gets STEERSMAN_EFFECT=<effect>. What it starts is found below its subreaper, in its control group, by that
mark and by its session: whichever of these it leaves, it does not leave all.
**Invariant:** argv only, no shell; everything started here is reaped; this process and its ancestors are never stopped.
What kills its subreaper and then leaves session and environment behind is held by a control group or a sandbox alone.
"""

import asyncio
import contextlib
import json
import math
import os
import select
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, NamedTuple, TypeVar

from steersman.adapters.process import subreaper
from steersman.adapters.process.cgroups import ProgramCgroup, create_program_cgroup
from steersman.adapters.process.child_process import (
    LineListener,
    LineSplitter,
    OutputActivity,
    OutputSink,
    SupervisedProgram,
    WorkingDirectory,
    spawn_process,
    start_supervised,
)
from steersman.adapters.process.process_table import (
    CALL_VARIABLE,
    EFFECT_VARIABLE,
    alive,
    stop_in_rounds,
    stop_tree,
)
from steersman.adapters.process.subreaper import STOP_GRACE_SECONDS
from steersman.ports.sandbox import SandboxDescriptors, WrittenSpace

# ── deadlines ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# The three clocks of a program: until its first output, between two outputs, in total.
#
# **Invariant:** only looks at the time; the caller stops the program.


ExpiredClock = Literal["", "start", "idle", "total"]


class ProgramClocks(NamedTuple):
    """Seconds; output is anything on standard output or standard error."""

    start: float  # until the first byte of output
    idle: float  # between two outputs
    total: float


def to_program_clocks(clocks_or_total: ProgramClocks | float) -> ProgramClocks:
    """A number is a total only."""
    return (
        clocks_or_total
        if isinstance(clocks_or_total, ProgramClocks)
        else ProgramClocks(math.inf, math.inf, clocks_or_total)
    )


async def wait_for_deadline(
    ended: "asyncio.Future[Any]", clocks: ProgramClocks, activity: OutputActivity
) -> ExpiredClock:
    """Waits until the program has ended, a listener has heard enough, or a clock has run out; returns that clock."""
    began = time.monotonic()
    enough = asyncio.ensure_future(activity.enough.wait())
    first_output = asyncio.ensure_future(activity.first.wait())
    try:
        while not ended.done() and not enough.done():
            # The first output ends the start clock and begins the idle one; later output only puts that one off.
            due, clock = _next_deadline(began, clocks, activity)
            waits = {ended, enough} if first_output.done() else {ended, enough, first_output}
            remaining = max(due - time.monotonic(), 0)
            await asyncio.wait(waits, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done() and time.monotonic() >= due == _next_deadline(began, clocks, activity)[0]:
                return clock
        return ""
    finally:
        enough.cancel()
        first_output.cancel()


def _next_deadline(
    began: float, clocks: ProgramClocks, activity: OutputActivity
) -> tuple[float, ExpiredClock]:
    """The moment at which the next clock is over; of two at once the total is named."""
    total = began + clocks.total
    due = began + clocks.start if activity.last is None else activity.last + clocks.idle
    if total <= due:
        return total, "total"
    return due, "start" if activity.last is None else "idle"


# ── contained process ───────────────────────────────────────────────────────────────────────────────────────────────────

# A sandbox as a child: it needs no subreaper, because no process leaves a process namespace, and the namespace ends with its first process.
#
# A sandbox waits until it is in its control group, which bounds its number of processes. When its parent ends it
# dies with it. Afterwards its first process is waited for: a sandbox may be gone a moment before what it held.
# **Invariant:** a number of a process is used only while a descriptor says that it still means the same one.


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


# ── program runner ────────────────────────────────────────────────────────────────────────────────


__all__ = ["ExpiredClock", "ProgramClocks", "ProgramResult", "alive", "run_program", "stop_tree"]

OUTPUT_CAP = 256 * 1024
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")  # paths of certificate files
LINE_CAP = 1024 * 1024

StartFailure = Literal["", "not_found", "permission", "other"]
T = TypeVar("T")


class ProgramResult(NamedTuple):
    """What happened: `exit_code` is None when it could not start (`reason` says why), negative for a signal.

    A program that was stopped may still have ended with 0 and a success on its lips: `expired` and `stopped` come first.
    """

    exit_code: int | None
    output: bytes
    timed_out: bool
    micros: int
    reason: str = ""
    errors: bytes = b""  # standard error
    expired: ExpiredClock = ""  # the clock that was over
    stopped: bool = False  # `lines` had heard enough
    cause: StartFailure = ""  # why it could not start, as a word
    excess: str = ""  # why it was ended, where it used too much
    changed: tuple[str, ...] = ()  # files of the tree that it was not to change, as `LocalCommands` finds


async def run_program(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    clocks: ProgramClocks | float,
    effect: str,
    stdin_bytes: bytes | IO[bytes] | None = None,
    *,
    cap: int = OUTPUT_CAP,
    lines: LineListener | None = None,
    error_lines: LineListener | None = None,
    line_cap: int = LINE_CAP,
    doors: SandboxDescriptors | None = None,
    space: WrittenSpace | None = None,
) -> ProgramResult:
    """Runs one program to its end, a clock's or our cancellation; nothing it started is alive afterwards.

    `lines` gets each line of standard output without its newline, cut and marked beyond `line_cap`. When it returns
    something true the program is stopped at once; what it raises stops the program too and is raised here. Once the
    program is being stopped `lines` hears nothing more: what comes then is no success. `error_lines` is the same for
    standard error. Standard input is nothing, bytes, or a file that the caller closes.
    With `doors` it is a sandbox that no process leaves and that ends with us: it needs no subreaper. What `space` finds ends it.
    """
    began = time.monotonic_ns()
    activity = OutputActivity()
    line_readers = _split_streams((lines, error_lines), line_cap, activity)
    sinks = [OutputSink(cap, activity, reader) for reader in line_readers]
    try:
        child, interrupted = await _finish_uninterrupted(
            _start_with_pipes(argv, cwd, env, effect, stdin_bytes, sinks, doors)
        )
    except (OSError, TypeError, ValueError) as error:
        return _start_failure_result(argv, cwd, error, began)
    space_watch = asyncio.ensure_future(_watch_space(space, child, activity)) if space is not None else None
    try:
        expired, exit_code, survivors = await _wait_and_stop(
            child, interrupted, to_program_clocks(clocks), sinks, activity, line_readers
        )
    finally:
        if space_watch is not None:
            space_watch.cancel()
    if (start_error := child.why_not()) is not None and not expired:
        return _start_failure_result(argv, cwd, start_error, began)
    if activity.broken is not None:
        raise activity.broken
    return ProgramResult(
        exit_code,
        sinks[0].value(),
        bool(expired),
        _elapsed_micros(began),
        reason=f"{survivors} of its processes could not be stopped" if survivors else "",
        errors=sinks[1].value(),
        expired=expired,
        stopped=activity.enough.is_set() and not expired,
        excess=activity.excess or (space.find_excess() if space is not None else ""),
    )


def _split_streams(
    listeners: Sequence[LineListener | None], cap: int, activity: OutputActivity
) -> list[LineSplitter | None]:
    """One splitter for each listener."""
    return [LineSplitter(listener, cap, activity) if listener is not None else None for listener in listeners]


async def _watch_space(
    space: WrittenSpace, child: SupervisedProgram | SandboxedProgram, activity: OutputActivity
) -> None:
    """Looks every second whether the program has used too much, and ends it then."""
    while not activity.excess:
        await asyncio.sleep(1)
        activity.excess = await asyncio.to_thread(space.find_excess, child.first_process())
    activity.enough.set()


async def _wait_and_stop(
    child: SupervisedProgram | SandboxedProgram,
    interrupted: asyncio.CancelledError | None,
    clocks: ProgramClocks,
    sinks: list[OutputSink],
    activity: OutputActivity,
    line_readers: Sequence[LineSplitter | None],
) -> tuple[ExpiredClock, int, int]:
    """Waits for the program, then stops everything it started, even if this task is cancelled; then it is no success."""
    ended = asyncio.ensure_future(child.wait_for_end())
    expired: ExpiredClock = ""
    by_itself = False
    try:
        if interrupted is None:
            expired = await wait_for_deadline(ended, clocks, activity)
            by_itself = not expired and not activity.enough.is_set()
    except asyncio.CancelledError as error:
        interrupted = error
    ended.cancel()
    if not by_itself:
        child.forbid_new_processes()
        for reader in filter(None, line_readers):
            reader.stop_reporting()
    (exit_code, survivors), later_cancel = await _finish_despite_cancel(lambda: _stop_and_reap(child, sinks))
    if (cancelled := interrupted or later_cancel) is not None:
        raise cancelled
    for reader in filter(None, line_readers):
        reader.flush_last_line()
    return expired, exit_code, survivors


async def _stop_and_reap(
    child: SupervisedProgram | SandboxedProgram, sinks: list[OutputSink]
) -> tuple[int, int]:
    """Stops and reaps all of it: how it ended, and how many could not be stopped."""
    survivors: set[int] = set()
    for pause in stop_in_rounds(child.list_survivors, child.kill_group, STOP_GRACE_SECONDS, set()):
        await asyncio.sleep(pause)
    exit_code = await child.reap()
    if exit_code < 0:  # its subreaper may have been killed: what was below it is elsewhere
        orphans: set[int] = set()
        for pause in stop_in_rounds(child.list_survivors, child.kill_group, STOP_GRACE_SECONDS, orphans):
            await asyncio.sleep(pause)
        _reap_orphans(orphans)
        survivors = child.list_survivors() if orphans else set()
    for sink in sinks:
        await sink.closed(STOP_GRACE_SECONDS)
    await child.closed(STOP_GRACE_SECONDS)
    return exit_code, len(survivors)


def _reap_orphans(orphans: set[int]) -> None:
    """Reaps those that have become our own children: that is who a system without an `init` gives them to."""
    for pid in orphans:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


async def _finish_uninterrupted(work: Coroutine[None, None, T]) -> tuple[T, asyncio.CancelledError | None]:
    """Finishes `work` whatever happens to this task; a cancellation in the meantime comes back beside its result."""
    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None and not task.cancelled() and task.exception() is not None:
        raise interrupted
    return task.result(), interrupted


async def _finish_despite_cancel(
    make: Callable[[], Coroutine[None, None, T]],
) -> tuple[T, asyncio.CancelledError | None]:
    """The same for work that can be started again: a loop that comes to its end cancels every task there is, once."""
    try:
        return await _finish_uninterrupted(make())
    except asyncio.CancelledError as error:
        result, _ = await _finish_uninterrupted(make())
        return result, error


async def _start_with_pipes(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    effect: str,
    stdin_bytes: bytes | IO[bytes] | None,
    sinks: list[OutputSink],
    doors: SandboxDescriptors | None,
) -> SupervisedProgram | SandboxedProgram:
    marks = (effect, os.urandom(8).hex())
    # Pipes of our own: asyncio's would tie the end of the program to the end of everyone who inherited them.
    ends: list[int] = []
    try:
        for sink in sinks:
            ends.append(await sink.open())  # noqa: PERF401  what is open so far is closed below
        with _open_stdin(stdin_bytes) as stdin:
            streams = (stdin, ends[0], ends[-1])
            if doors is not None:
                return await start_sandboxed(argv, doors, cwd, env, marks, streams)
            return await start_supervised(argv, cwd, env, marks, streams)
    except BaseException:
        for sink in sinks:
            sink.close()
        raise
    finally:
        for end in ends:
            os.close(end)


@contextlib.contextmanager
def _open_stdin(content: bytes | IO[bytes] | None) -> Iterator[IO[bytes] | int]:
    """Bytes as an unnamed file: a program that does not read its input cannot make us wait."""
    if not isinstance(content, bytes):
        yield asyncio.subprocess.DEVNULL if content is None else content
        return
    import tempfile  # slow to import, and who starts nothing has no need of it

    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _start_failure_result(
    argv: Sequence[str], cwd: str | os.PathLike[str], error: Exception, began: int
) -> ProgramResult:
    reason, cause = _describe_start_failure(argv, cwd, error)
    return ProgramResult(
        None, b"", timed_out=False, micros=_elapsed_micros(began), reason=reason, cause=cause
    )


def _describe_start_failure(
    argv: Sequence[str], cwd: str | os.PathLike[str], error: Exception
) -> tuple[str, StartFailure]:
    program = argv[0] if argv else "nothing"
    match error:
        case _ if not os.path.isdir(cwd):
            return f"cannot start {program}: the working directory {os.fspath(cwd)} is gone", "other"
        case FileNotFoundError():
            return f"cannot start {program}: it was not found; install it or correct PATH", "not_found"
        case PermissionError():
            return f"cannot start {program}: {error}; make it executable for this user", "permission"
        case _:
            return f"cannot start {program}: {error}", "other"


def _elapsed_micros(began: int) -> int:
    return (time.monotonic_ns() - began) // 1000
