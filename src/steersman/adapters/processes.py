"""Starts programs under an effect id and stops everything that carries it.

Each child gets STEERSMAN_EFFECT=<effect> and inherits it to its own children, so that what a run started is found
again by any later process, also when it left its group and its parent behind.
**Invariant:** argv only, no shell; every child started here is reaped; this process and its ancestors are never
stopped. A program that leaves the session, its parent and its environment behind at once is only held by a sandbox.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from steersman.adapters.process_table import CALL, EFFECT, Process, below, others, tree

OUTPUT_CAP = 256 * 1024
GRACE = 1.0
_STEP = 0.02


class Executed(NamedTuple):
    """What happened: `exit_code` is None when it could not start (`reason` says why), negative for a signal."""

    exit_code: int | None
    output: bytes
    timed_out: bool
    micros: int
    reason: str = ""
    errors: bytes = b""  # standard error, when it was asked for apart


def alive(effect_prefix: str) -> list[int]:
    """The processes that work for this effect, or for every effect below it (`<run>:` finds a whole run)."""
    wanted = below(effect_prefix)
    return sorted(process.pid for process in others() if wanted(process))


def stop_tree(effect_prefix: str, grace: float) -> int:
    """Stops what `alive` finds and all its children, asking first; returns how many it had to stop."""
    wanted = below(effect_prefix)
    stopped: set[int] = set()
    for pause in _stopping(lambda: tree(wanted), grace, stopped):
        time.sleep(pause)
    return len(stopped)


async def execute(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    seconds: float,
    effect: str,
    stdin_bytes: bytes | None = None,
    *,
    cap: int = OUTPUT_CAP,
    errors_apart: bool = False,
) -> Executed:
    """Runs one program to its end, its timeout or our cancellation; nothing it started is alive afterwards."""
    call = secrets.token_hex(8)
    marked = {**env, EFFECT: effect, CALL: call}
    began = time.monotonic_ns()
    with _stdin(stdin_bytes) as stdin:
        sinks = [_Sink(cap) for _ in range(2 if errors_apart else 1)]
        try:
            child = await _start(argv, cwd, marked, stdin, sinks)
        except (OSError, TypeError, ValueError) as error:
            return Executed(
                None, b"", timed_out=False, micros=_since(began), reason=_cannot_start(argv, cwd, error)
            )
        timed_out = await _to_its_end(child, seconds, call, sinks)
    errors = sinks[1].value() if errors_apart else b""
    return Executed(child.returncode, sinks[0].value(), timed_out, _since(began), errors=errors)


async def _to_its_end(
    child: asyncio.subprocess.Process, seconds: float, call: str, sinks: list["_Sink"]
) -> bool:
    """Waits, then leaves nothing behind, also when this task is cancelled meanwhile."""

    def ours(process: Process) -> bool:
        return process.call == call or process.session == child.pid

    try:
        async with asyncio.timeout(seconds):
            await child.wait()
    except TimeoutError:
        return True
    else:
        return False
    finally:
        await _uninterrupted(_leave_nothing(child, ours, sinks))


async def _leave_nothing(
    child: asyncio.subprocess.Process, ours: Callable[[Process], bool], sinks: list["_Sink"]
) -> None:
    for pause in _stopping(lambda: tree(ours), GRACE, set()):
        await asyncio.sleep(pause)
    await child.wait()
    for sink in sinks:
        await sink.closed()


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Finishes `work` whatever happens to this task; a cancellation in the meantime is raised afterwards."""
    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted


async def _start(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdin: IO[bytes] | int,
    sinks: list["_Sink"],
) -> asyncio.subprocess.Process:
    # Pipes of our own: asyncio's would tie the end of the program to the end of everyone who inherited them.
    ends = [await sink.open() for sink in sinks]
    try:
        return await asyncio.create_subprocess_exec(
            *argv, cwd=cwd, env=env, stdin=stdin, stdout=ends[0], stderr=ends[-1], start_new_session=True
        )
    except BaseException:
        for sink in sinks:
            sink.close()
        raise
    finally:
        for end in ends:
            os.close(end)


class _Sink(asyncio.Protocol):
    """Reads a pipe to its end and keeps the head and the tail of what came."""

    def __init__(self, cap: int) -> None:
        self._half = max(cap // 2 - 32, 0)  # room for the sentence in the middle
        self._head, self._tail, self._lost = bytearray(), bytearray(), 0
        self._ended = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    async def open(self) -> int:
        """Starts reading and returns the end to write to."""
        ours, theirs = os.pipe()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self, os.fdopen(ours, "rb", 0))
        return theirs

    def data_received(self, data: bytes) -> None:
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if (over := len(self._tail) - self._half) > 0:
            del self._tail[:over]
            self._lost += over

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the name is the protocol's
        self._ended.set()

    async def closed(self) -> None:
        """Waits for the end of the pipe, but not for a stranger who still holds it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._ended.wait()
        self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def value(self) -> bytes:
        gap = b"\n[... %d bytes left out ...]\n" % self._lost if self._lost else b""
        return bytes(self._head) + gap + bytes(self._tail)


@contextlib.contextmanager
def _stdin(content: bytes | None) -> Iterator[IO[bytes] | int]:
    """An unnamed file: a program that does not read its input cannot make us wait."""
    if content is None:
        yield asyncio.subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _cannot_start(argv: Sequence[str], cwd: str | os.PathLike[str], error: Exception) -> str:
    program = argv[0] if argv else "nothing"
    if not os.path.isdir(cwd):
        return f"cannot start {program}: the working directory {os.fspath(cwd)} is gone"
    if isinstance(error, FileNotFoundError):
        return f"cannot start {program}: it was not found; install it or correct PATH"
    return f"cannot start {program}: {error}"


def _since(began: int) -> int:
    return (time.monotonic_ns() - began) // 1000


def _stopping(find: Callable[[], set[int]], grace: float, stopped: set[int]) -> Iterator[float]:
    """Asks, waits, kills, and looks again until nothing is found; yields the pauses so that any caller can sleep."""
    deadline = time.monotonic() + grace
    asked: set[int] = set()
    while (found := find()) and time.monotonic() < deadline:
        _signal(found - asked, signal.SIGTERM)
        asked |= found
        yield _STEP
    stopped |= asked
    for _ in range(200):  # a program that forks faster than we look is met again; an unkillable one is let go
        if not (found := find()):
            return
        _signal(found, signal.SIGKILL)
        stopped |= found
        yield _STEP


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
