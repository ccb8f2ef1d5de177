"""Starts programs under an effect id and stops everything that comes of them.

Each program gets STEERSMAN_EFFECT=<effect>. What it starts is found below its keeper, in its control group, by that
mark and by its session: whichever of these it leaves, it does not leave all.
**Invariant:** argv only, no shell; everything started here is reaped; this process and its ancestors are never stopped.
What kills its keeper and then leaves session and environment behind is held by a control group or a sandbox alone.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import IO, Literal, NamedTuple, TypeVar

from steersman.adapters.child import Child, start
from steersman.adapters.contained import Contained, start_contained
from steersman.adapters.deadlines import Clocks, Expired, clocks_of, watch
from steersman.adapters.keeper import GRACE
from steersman.adapters.sinks import Lines, Listener, Pulse, Sink
from steersman.adapters.sweep import alive, stop_tree, stopping
from steersman.ports.sandbox import Doors, Space

__all__ = ["Clocks", "Executed", "Expired", "alive", "execute", "stop_tree"]

OUTPUT_CAP = 256 * 1024
LINE_CAP = 1024 * 1024

Cause = Literal["", "not_found", "permission", "other"]
T = TypeVar("T")


class Executed(NamedTuple):
    """What happened: `exit_code` is None when it could not start (`reason` says why), negative for a signal.

    A program that was stopped may still have ended with 0 and a success on its lips: `expired` and `stopped` come first.
    """

    exit_code: int | None
    output: bytes
    timed_out: bool
    micros: int
    reason: str = ""
    errors: bytes = b""  # standard error, when it was asked for apart
    expired: Expired = ""  # the clock that was over
    stopped: bool = False  # `lines` had heard enough
    cause: Cause = ""  # why it could not start, as a word
    excess: str = ""  # why it was ended, where it used too much
    changed: tuple[str, ...] = ()  # files of the tree that it was not to change, as `LocalCommands` finds


async def execute(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    clocks: Clocks | float,
    effect: str,
    stdin_bytes: bytes | IO[bytes] | None = None,
    *,
    cap: int = OUTPUT_CAP,
    errors_apart: bool = False,
    lines: Listener | None = None,
    error_lines: Listener | None = None,
    line_cap: int = LINE_CAP,
    doors: Doors | None = None,
    space: Space | None = None,
) -> Executed:
    """Runs one program to its end, a clock's or our cancellation; nothing it started is alive afterwards.

    `lines` gets each line of standard output without its newline, cut and marked beyond `line_cap`. When it returns
    something true the program is stopped at once; what it raises stops the program too and is raised here. Once the
    program is being stopped `lines` hears nothing more: what comes then is no success. `error_lines` is the same for
    standard error, when that is asked for apart. Standard input is nothing, bytes, or a file that the caller closes.
    With `doors` it is a box that lets nobody out and ends with us: it needs no keeper. What `space` finds ends it.
    """
    began = time.monotonic_ns()
    pulse = Pulse()
    # With both streams in one pipe the first listener hears both.
    heard = [
        Lines(listener, line_cap, pulse) if listener is not None else None
        for listener in (lines, error_lines)
    ]
    sinks = [Sink(cap, pulse, told) for told in heard][: 2 if errors_apart else 1]
    try:
        child, interrupted = await _uninterrupted(_start(argv, cwd, env, effect, stdin_bytes, sinks, doors))
    except (OSError, TypeError, ValueError) as error:
        return _not_started(argv, cwd, error, began)
    measured = asyncio.ensure_future(_measure(space, child, pulse)) if space is not None else None
    try:
        expired, exit_code, left = await _to_its_end(
            child, interrupted, clocks_of(clocks), sinks, pulse, heard
        )
    finally:
        if measured is not None:
            measured.cancel()
    if (why := child.why_not()) is not None and not expired:
        return _not_started(argv, cwd, why, began)
    if pulse.broken is not None:
        raise pulse.broken
    return Executed(
        exit_code,
        sinks[0].value(),
        bool(expired),
        _since(began),
        reason=f"{left} of its processes could not be stopped" if left else "",
        errors=sinks[1].value() if errors_apart else b"",
        expired=expired,
        stopped=pulse.enough.is_set() and not expired,
        excess=pulse.excess or (space.find_excess() if space is not None else ""),
    )


async def _measure(space: Space, child: Child | Contained, pulse: Pulse) -> None:
    """Looks every second whether the program has used too much, and ends it then."""
    while not pulse.excess:
        await asyncio.sleep(1)
        pulse.excess = await asyncio.to_thread(space.find_excess, child.first_process())
    pulse.enough.set()


async def _to_its_end(
    child: Child | Contained,
    interrupted: asyncio.CancelledError | None,
    clocks: Clocks,
    sinks: list[Sink],
    pulse: Pulse,
    heard: Sequence[Lines | None],
) -> tuple[Expired, int, int]:
    """Waits, then leaves nothing behind, also when this task is cancelled meanwhile; a success is void then."""
    ended = asyncio.ensure_future(child.ended())
    expired: Expired = ""
    by_itself = False
    try:
        if interrupted is None:
            expired = await watch(ended, clocks, pulse)
            by_itself = not expired and not pulse.enough.is_set()
    except asyncio.CancelledError as error:
        interrupted = error
    ended.cancel()
    if not by_itself:
        child.ask()
        for told in filter(None, heard):
            told.hush()
    (exit_code, left), again = await _surely(lambda: _leave_nothing(child, sinks))
    if (cancelled := interrupted or again) is not None:
        raise cancelled
    for told in filter(None, heard):
        told.end()
    return expired, exit_code, left


async def _leave_nothing(child: Child | Contained, sinks: list[Sink]) -> tuple[int, int]:
    """Stops and reaps all of it: how it ended, and how many could not be stopped."""
    left: set[int] = set()
    for pause in stopping(child.left, child.kill_group, GRACE, set()):
        await asyncio.sleep(pause)
    exit_code = await child.gone()
    if exit_code < 0:  # its keeper may have been killed: what was below it is elsewhere
        orphans: set[int] = set()
        for pause in stopping(child.left, child.kill_group, GRACE, orphans):
            await asyncio.sleep(pause)
        _reap(orphans)
        left = child.left() if orphans else set()
    for sink in sinks:
        await sink.closed(GRACE)
    await child.closed(GRACE)
    return exit_code, len(left)


def _reap(orphans: set[int]) -> None:
    """Reaps those that have become our own children: that is who a system without an `init` gives them to."""
    for pid in orphans:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


async def _uninterrupted(work: Coroutine[None, None, T]) -> tuple[T, asyncio.CancelledError | None]:
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


async def _surely(make: Callable[[], Coroutine[None, None, T]]) -> tuple[T, asyncio.CancelledError | None]:
    """The same for work that can be begun anew: a loop that comes to its end cancels every task there is, once."""
    try:
        return await _uninterrupted(make())
    except asyncio.CancelledError as error:
        result, _ = await _uninterrupted(make())
        return result, error


async def _start(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    effect: str,
    stdin_bytes: bytes | IO[bytes] | None,
    sinks: list[Sink],
    doors: Doors | None,
) -> Child | Contained:
    marks = (effect, os.urandom(8).hex())
    # Pipes of our own: asyncio's would tie the end of the program to the end of everyone who inherited them.
    ends: list[int] = []
    try:
        for sink in sinks:
            ends.append(await sink.open())  # noqa: PERF401  what is open so far is closed below
        with _stdin(stdin_bytes) as stdin:
            streams = (stdin, ends[0], ends[-1])
            if doors is not None:
                return await start_contained(argv, doors, cwd, env, marks, streams)
            return await start(argv, cwd, env, marks, streams)
    except BaseException:
        for sink in sinks:
            sink.close()
        raise
    finally:
        for end in ends:
            os.close(end)


@contextlib.contextmanager
def _stdin(content: bytes | IO[bytes] | None) -> Iterator[IO[bytes] | int]:
    """Bytes as an unnamed file: a program that does not read its input cannot make us wait."""
    if not isinstance(content, bytes):
        yield asyncio.subprocess.DEVNULL if content is None else content
        return
    import tempfile  # slow to import, and who starts nothing has no need of it

    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _not_started(argv: Sequence[str], cwd: str | os.PathLike[str], error: Exception, began: int) -> Executed:
    reason, cause = _cannot_start(argv, cwd, error)
    return Executed(None, b"", timed_out=False, micros=_since(began), reason=reason, cause=cause)


def _cannot_start(argv: Sequence[str], cwd: str | os.PathLike[str], error: Exception) -> tuple[str, Cause]:
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


def _since(began: int) -> int:
    return (time.monotonic_ns() - began) // 1000
