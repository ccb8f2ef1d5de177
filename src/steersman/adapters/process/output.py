"""Reads what a program writes: bounded, in whole lines for a listener, and without making the program wait.

What does not fit is left out between lines, so that a reader sees whole ones.

**Invariant:** memory is bounded by the caps whatever arrives; a listener that breaks stops the program, not the loop.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

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
        """From here on nothing is told: the program is being stopped, and what it says now is no success."""
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
