"""How a story runs a command to its end: from a fresh start, or from the fork server where the start is not the point.

**Invariant:** what depends on the start itself gets a fresh one: an environment that differs in more than `CHANGES`,
a system that has no fork server, and whoever asks for it.
"""

import json
import os
import re
import select
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

PYTHON = sys.executable
# Read when the command works; not by the interpreter, a library at its start or whoever looks at a process from outside.
FORKABLE_VARIABLES = re.compile(
    r"PATH|HOME|XDG_STATE_HOME|XDG_CONFIG_HOME|STEERSMAN_POLICY|TMPDIR|TERM|COLUMNS|PAGER|EDITOR|VISUAL|SSH_ASKPASS|GIT_\w+|STEERSMAN_PERSON"
    r"|STEERSMAN_EFFECT|ANTHROPIC_API_KEY|MY_SERVICE_TOKEN|MOOD"
)
FIXED_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
CAN_FORK = hasattr(os, "pidfd_open") and hasattr(select, "POLLRDHUP")


class CommandCall(NamedTuple):
    """A command to run; without a feed it has nothing to read."""

    words: Sequence[str]
    cwd: str | os.PathLike[str]
    env: Mapping[str, str]
    feed: bytes | None = None
    timeout: float = 180  # only whoever hangs takes so long
    module: str = "steersman"

    @property
    def argv(self) -> list[str]:
        """What a fresh start executes."""
        return [PYTHON, "-m", self.module, *self.words]


CompletedCommand = subprocess.CompletedProcess[bytes]
RunCommand = Callable[[CommandCall], CompletedCommand]


def run_fresh_command(order: CommandCall) -> CompletedCommand:
    """Runs one command to its end, from its first import on."""
    fed: dict[str, Any] = {"stdin": subprocess.DEVNULL} if order.feed is None else {"input": order.feed}
    return subprocess.run(
        order.argv, cwd=order.cwd, env=order.env, timeout=order.timeout, capture_output=True, check=False, **fed
    )  # fmt: skip


class Launcher:
    """The way to a fork server, which is there from the first launch on and ends with whoever holds this."""

    def __init__(self, module: str = "steersman") -> None:
        self._module, self._lock = module, threading.Lock()
        self._fork_server: subprocess.Popen[bytes] | None = None
        self._channel, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def launch(self, order: CommandCall) -> CompletedCommand:
        """Runs one command to its end, as `started` does."""
        if (
            not CAN_FORK
            or {n: v for n, v in order.env.items() if not FORKABLE_VARIABLES.fullmatch(n)}
            != FIXED_ENVIRONMENT
        ):
            return run_fresh_command(order)
        self._open()
        until = time.monotonic() + order.timeout
        with ExitStack() as stack:
            line, streams, into = self._lent(stack, idle=order.feed is None)
            try:
                line.sendall(_encode_call(order))
                said = _read_streams(streams, into, memoryview(order.feed or b""), until)
                line.settimeout(max(until - time.monotonic(), 0.001))
                return CompletedCommand(order.argv, int(line.recv(16)), *said)
            except BaseException as error:
                line.shutdown(socket.SHUT_WR)  # for the fork server that means: kill it
                line.settimeout(None)
                line.recv(16)
                if isinstance(error, TimeoutError):
                    raise subprocess.TimeoutExpired(order.argv, order.timeout) from error
                raise

    def close(self) -> None:
        """Ends the fork server and all that it has launched."""
        self._channel.close()
        self._theirs.close()
        if self._fork_server is not None:
            self._fork_server.wait()

    def _open(self) -> None:
        script, theirs = Path(__file__).with_name("fork_server.py"), self._theirs
        with self._lock:
            if self._fork_server is None:
                self._fork_server = subprocess.Popen(
                    [PYTHON, script, str(theirs.fileno()), self._module],
                    env={**FIXED_ENVIRONMENT, "PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                )  # fmt: skip
                theirs.close()
                assert self._channel.recv(1), "the fork server did not start; it has said why"

    def _lent(self, stack: ExitStack, *, idle: bool) -> tuple[socket.socket, list[IO[bytes]], IO[bytes]]:
        """Hands a child's ends over; ours are the line, its two streams, and what feeds it."""
        line, line_end = map(stack.enter_context, socket.socketpair())
        (out, out_end), (err, err_end), (in_end, into) = (_open_pipe(stack) for _ in range(3))
        nothing = stack.enter_context(os.fdopen(os.open(os.devnull, os.O_RDONLY), "rb"))
        ends: tuple[Any, ...] = (nothing if idle else in_end, out_end, err_end, line_end)
        socket.send_fds(self._channel, [b"."], [end.fileno() for end in ends])
        for end in (*ends, in_end):
            end.close()
        return line, [out, err], into


def _open_pipe(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reads, writes = os.pipe()
    return stack.enter_context(os.fdopen(reads, "rb", 0)), stack.enter_context(os.fdopen(writes, "wb", 0))


def _encode_call(order: CommandCall) -> bytes:
    told = {"words": list(order.words), "cwd": os.fspath(order.cwd), "env": dict(order.env)}
    return json.dumps(told).encode() + b"\n"


def _read_streams(
    streams: Sequence[IO[bytes]], into: IO[bytes], feed: memoryview, until: float
) -> list[bytes]:
    """What is said on each stream until all are closed, while the feed is given."""
    said = {stream: bytearray() for stream in streams}
    with selectors.DefaultSelector() as watch:
        for stream in streams:
            watch.register(stream, selectors.EVENT_READ)
        watch.register(into, selectors.EVENT_WRITE)
        while watch.get_map():
            ready = watch.select(until - time.monotonic())
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                stream: Any = key.fileobj
                if stream is into:
                    feed = rest = _write_feed(into, feed)
                else:
                    rest = memoryview(os.read(key.fd, 1 << 16))
                    said[stream] += rest
                if not rest:
                    watch.unregister(stream)
                    stream.close()
    return [bytes(heard) for heard in said.values()]


def _write_feed(into: IO[bytes], feed: memoryview) -> memoryview:
    """What is left of the feed; nothing where nobody reads any more."""
    try:
        return feed[into.write(feed[: select.PIPE_BUF]) :] if feed else feed
    except BrokenPipeError:
        return feed[:0]
