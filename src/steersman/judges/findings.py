"""Stable names for a reviewer's findings, so that a loop knows "same finding, still open".

**Invariant:** an id depends on the words alone: not on case, spacing, punctuation, round or order.
"""

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence

import msgspec


class Compared(msgspec.Struct, frozen=True):
    """What a round changed: ids that are new, that stayed, and that are gone."""

    opened: tuple[str, ...]
    still: tuple[str, ...]
    fixed: tuple[str, ...]


def finding_id(text: str) -> str:
    """The id of a finding: `f-` and ten hex digits."""
    words = _words(text)
    return "f-" + hashlib.sha256(words.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def compare(open_before: Mapping[str, object], now: Sequence[str]) -> Compared:
    """Sorts this round's ids against those open before it, each id once."""
    present = tuple(dict.fromkeys(now))
    return Compared(
        opened=tuple(i for i in present if i not in open_before),
        still=tuple(i for i in present if i in open_before),
        fixed=tuple(i for i in open_before if i not in present),
    )


def _words(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = "".join(" " if _is_noise(c) else c for c in folded)
    # A finding of punctuation alone ("???") still has a name of its own.
    return " ".join(kept.split()) or " ".join(folded.split())


def _is_noise(char: str) -> bool:
    """Spaces, controls, punctuation and accents standing alone (a backtick is one); not symbols such as `<`."""
    category = unicodedata.category(char)
    return category[0] in "PZC" or category == "Sk"
