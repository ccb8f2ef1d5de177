"""The three clocks of a program: until its first output, between two outputs, in total.

**Invariant:** only looks at the time; whoever waits does the stopping.
"""

import asyncio
import math
import time
from typing import Any, Literal, NamedTuple

from steersman.adapters.sinks import Pulse

Expired = Literal["", "start", "idle", "total"]


class Clocks(NamedTuple):
    """Seconds; output is anything on standard output or standard error."""

    start: float  # until the first byte of output
    idle: float  # between two outputs
    total: float


def clocks_of(given: Clocks | float) -> Clocks:
    """A number is a total only."""
    return given if isinstance(given, Clocks) else Clocks(math.inf, math.inf, given)


async def watch(ended: "asyncio.Future[Any]", clocks: Clocks, pulse: Pulse) -> Expired:
    """Waits until the program has ended, somebody has heard enough, or a clock is over; says which clock."""
    began = time.monotonic()
    enough = asyncio.ensure_future(pulse.enough.wait())
    first = asyncio.ensure_future(pulse.first.wait())
    try:
        while not ended.done() and not enough.done():
            # The first output ends the start clock and begins the idle one; later output only puts that one off.
            due, which = _due(began, clocks, pulse)
            wake = {ended, enough} if first.done() else {ended, enough, first}
            left = max(due - time.monotonic(), 0)
            await asyncio.wait(wake, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done() and time.monotonic() >= due == _due(began, clocks, pulse)[0]:
                return which
        return ""
    finally:
        enough.cancel()
        first.cancel()


def _due(began: float, clocks: Clocks, pulse: Pulse) -> tuple[float, Expired]:
    """The moment at which the next clock is over; of two at once the total is named."""
    total = began + clocks.total
    due = began + clocks.start if pulse.last is None else pulse.last + clocks.idle
    if total <= due:
        return total, "total"
    return due, "start" if pulse.last is None else "idle"
