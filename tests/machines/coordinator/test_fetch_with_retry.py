"""A look at what somebody else has, tried as often as a policy says (001 §3, `max_retries`)."""

import pytest
from tests.support.cases import for_each_case

from steersman.errors import MemoryUnavailable
from steersman.machines.coordinator.effects.planning import fetch_with_retry


class Busy:
    """Something that cannot be had the first few times."""

    def __init__(self, times):
        self.times, self.asked = times, 0

    def __call__(self):
        self.asked += 1
        if self.asked <= self.times:
            raise OSError(f"busy, the {self.asked}. time")
        return "here"


@for_each_case(
    ("fails", "again", "what", "why", "asked"),
    [
        (0, 0, "here", "", 1),
        (1, 0, None, "busy, the 1. time", 1),
        (1, 1, "here", "", 2),
        (3, 2, None, "busy, the 3. time", 3),
        (9, 10, "here", "", 10),
    ],
)
def test_what_cannot_be_had_is_asked_for_again(fails, again, what, why, asked):
    """As often as may be, and not once more; the last reason is told."""
    busy = Busy(fails)
    assert (fetch_with_retry(busy, again), busy.asked) == ((what, why, ""), asked)


def test_what_would_mend_it_is_told_too():
    """An error that knows a way out brings it along; one that is ours is not caught."""

    def damaged():
        error = MemoryUnavailable("the memories are damaged")
        error.fix = "restore them"
        raise error

    assert fetch_with_retry(damaged)[1:] == ("the memories are damaged", "restore them")
    with pytest.raises(ZeroDivisionError):
        fetch_with_retry(lambda: 1 // 0, 3)
