"""Things that somebody else has, asked for: what came, or why nothing did. **Invariant:** a bounded number of times."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from steersman.errors import SteersmanError
from steersman.judges.text import clip, printable


class Had(NamedTuple):
    """An answer, or why there is none and what would mend it, where somebody knows."""

    what: Any
    why: str = ""
    fix: str = ""


def had(ask: Callable[[], Any], again: int = 0) -> Had:
    """What is asked for; where it cannot be had it is asked for again, so many times, and the last reason is told."""
    while True:
        try:
            return Had(ask())
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            if again <= 0:
                told = (str(error), getattr(error, "fix", ""))
                return Had(None, *(clip(printable(text), 1000) for text in told))
            again -= 1
