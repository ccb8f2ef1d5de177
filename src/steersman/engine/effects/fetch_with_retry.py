"""Things that somebody else has, asked for: what came, or why nothing did. **Invariant:** a bounded number of times."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from steersman.errors import SteersmanError
from steersman.judges.text import clip_text, printable_text


class FetchResult(NamedTuple):
    """An answer, or why there is none and what would mend it, where somebody knows."""

    what: Any
    why: str = ""
    fix: str = ""


def fetch_with_retry(fetch: Callable[[], Any], retries: int = 0) -> FetchResult:
    """What is asked for; where it cannot be had it is asked for again, so many times, and the last reason is told."""
    while True:
        try:
            return FetchResult(fetch())
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            if retries <= 0:
                texts = (str(error), getattr(error, "fix", ""))
                return FetchResult(None, *(clip_text(printable_text(text), 1000) for text in texts))
            retries -= 1
