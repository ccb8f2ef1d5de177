"""The three clocks of a program: until its first output, between two outputs, in total.

**Invariant:** only looks at the time; the caller stops the program.
"""

import asyncio
import math
import time
from typing import Any, Literal, NamedTuple

from steersman.adapters.process.output import OutputActivity

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
