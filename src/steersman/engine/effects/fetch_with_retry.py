"""Calls a port with up to `retries` retries and returns the value or the last error."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from steersman.errors import SteersmanError
from steersman.judges.text import clip_text, printable_text


class FetchResult(NamedTuple):
    """A value, or why there is none and how to fix that, where known."""

    what: Any
    why: str = ""
    fix: str = ""


def fetch_with_retry(fetch: Callable[[], Any], retries: int = 0) -> FetchResult:
    """Calls `fetch` until it returns, at most `retries` times more; returns its value or the last error."""
    while True:
        try:
            return FetchResult(fetch())
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            if retries <= 0:
                texts = (str(error), getattr(error, "fix", ""))
                return FetchResult(None, *(clip_text(printable_text(text), 1000) for text in texts))
            retries -= 1
