"""One program that was started, with everything that may come of it.

On Linux a keeper stands between us and the program, and a control group around it where one can be made; elsewhere the
program is our own child, and its marks and its session are all there is.
**Invariant:** argv only, no shell; whoever starts a child ends it with `gone`, and then nothing of it is left open.
"""

import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from steersman.adapters import keeper
from steersman.adapters.byte_code import soonest
from steersman.adapters.cgroups import Group, fenced
from steersman.adapters.process_table import CALL, EFFECT, KEEPER, Process, tree
from steersman.adapters.sinks import Pulse, Sink

Place = str | os.PathLike[str]
_SOON, _LATE = 0.2, 3.0  # seconds for a keeper with nothing to do, and for one that has to kill


class Child:
    """A program under way: `process` is its keeper, or itself where there is none."""

    def __init__(
        self, process: asyncio.subprocess.Process, call: str, group: Group, status: Sink | None
    ) -> None:
        self._process, self._call, self._group, self._status = process, call, group, status

    async def ended(self) -> None:
        """Waits for the program itself; what it has started may be left."""
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._process.wait())}
        if self._status is not None:
            waits.add(asyncio.ensure_future(self._status.ended()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def left(self) -> set[int]:
        """Who is alive of it. A keeper that lives has them all below it; one that was killed may have lost some."""
        inside = set(filter(keeper.lives, self._group.members()))
        code = self._process.returncode
        if self._status is not None and code is None:
            return inside | keeper.descendants(self._process.pid)
        if self._status is not None and code is not None and code >= 0:
            return inside  # it ended by itself: there was nobody below it any more
        return inside | tree(self._is_ours)

    def _is_ours(self, process: Process) -> bool:
        return process.call == self._call or process.session == self._program()

    def _program(self) -> int:
        said = self._status.value() if self._status is not None else b""
        return int(said[1:]) if said[:1] == b"p" and said[1:].isdigit() else self._process.pid

    def first_process(self) -> int:
        """None that a box could be seen through."""
        return 0

    def kill_group(self) -> None:
        """Ends everyone inside the fence at once, where there is one."""
        self._group.kill()

    async def gone(self) -> int:
        """Reaps it and says how the program ended. A keeper that stays has somebody below it whom we do not see."""
        for patience, number in ((_SOON, signal.SIGTERM), (keeper.GRACE + _LATE, signal.SIGKILL)):
            try:
                async with asyncio.timeout(patience):
                    return await self._process.wait()
            except TimeoutError:
                keeper.send({self._process.pid}, number)
                keeper.send({self._process.pid}, signal.SIGCONT)  # it may have been stopped from below
        return await self._process.wait()

    def ask(self) -> None:
        """Tells a keeper to start nothing any more, where it has not; one that was stopped from below goes on."""
        if self._status is not None and self._process.returncode is None:
            if not self._status.value():
                keeper.send({self._process.pid}, signal.SIGTERM)
            keeper.send({self._process.pid}, signal.SIGCONT)

    async def closed(self, patience: float) -> None:
        """Closes what was open and takes the fence away."""
        if self._status is not None:
            await self._status.closed(patience)
        await self._group.removed()

    def why_not(self) -> OSError | None:
        """What kept the program from being started."""
        said = self._status.value() if self._status is not None else b"p"
        if said[:1] == b"p":
            return None
        number = int(said[1:]) if said[1:].isdigit() else errno.ECHILD
        return OSError(number, os.strerror(number) if said else "what should keep it has ended too early")


async def start(
    argv: Sequence[str],
    cwd: Place,
    env: Mapping[str, str],
    marks: tuple[str, str],
    streams: tuple[IO[bytes] | int, int, int],
) -> Child:
    """Starts a program with exactly this environment and the marks; raises what keeps it from being started."""
    effect, call = marks
    if not kept():
        marked = {**env, EFFECT: effect, CALL: call}
        process = await spawn(argv, cwd, marked, streams)
        return Child(process, call, Group(), None)
    group = fenced(effect, call)
    try:
        return await _start_kept(argv, cwd, env, marks, streams, group)
    except BaseException:
        group.remove()
        raise


def kept() -> bool:
    """Whether programs get a keeper here: on Linux, with an interpreter to run it."""
    return sys.platform == "linux" and all(map(os.path.isfile, (sys.executable or "", keeper.__file__)))


async def _start_kept(
    argv: Sequence[str],
    cwd: Place,
    env: Mapping[str, str],
    marks: tuple[str, str],
    streams: tuple[IO[bytes] | int, int, int],
    group: Group,
) -> Child:
    own = {EFFECT: marks[0], CALL: marks[1]}
    spec = _spec(argv, {**env, **own}, group)
    status = Sink(256, Pulse())
    try:
        told = await status.open()
        try:
            command = (
                sys.executable,
                "-I",
                "-S",
                soonest(keeper.__file__),
                str(os.getpid()),
                str(spec),
                str(told),
            )
            # Its own environment holds the marks alone: whoever reads it from below finds no secret.
            process = await spawn(command, cwd, {**own, KEEPER: "1"}, streams, (spec, told))
        finally:
            os.close(told)
    except BaseException:
        status.close()
        raise
    finally:
        os.close(spec)
    return Child(process, marks[1], group, status)


async def spawn(
    argv: Sequence[str],
    cwd: Place,
    env: Mapping[str, str],
    streams: tuple[IO[bytes] | int, int, int],
    handed: tuple[int, ...] = (),
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
        pass_fds=handed,
    )


def _spec(argv: Sequence[str], env: Mapping[str, str], group: Group) -> int:
    """An unnamed file with what the keeper is to start."""
    words = [os.fsencode(word) for word in argv]
    pairs = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items()]
    if not words:
        raise ValueError("there is no program to start")
    if any(b"\0" in part for part in (*words, *pairs)):
        raise ValueError("embedded null byte")
    if any(not name or "=" in name for name in env):
        raise ValueError("illegal environment variable name")
    spec = os.memfd_create("steersman")
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, spec)
        packed = memoryview(keeper.pack(words, list(map(os.fsencode, group.folders)), pairs))
        while packed:
            packed = packed[os.write(spec, packed) :]
        os.lseek(spec, 0, os.SEEK_SET)
        undo.pop_all()
    return spec
