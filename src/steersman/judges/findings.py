"""Stable names for a reviewer's findings, so that a loop knows "same finding, still open".

**Invariant:** the id of a new finding depends on the words alone: not on case, spacing, punctuation, round or order.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence

import msgspec

from steersman.contracts.replies import ReviewerReply

_TOLD = re.compile(r"\s*\[?(?P<id>f-[0-9a-f]{10})\]?[\s:.,–-]*")


class Compared(msgspec.Struct, frozen=True):
    """What a round changed: ids that are new, that stayed, and that are gone."""

    opened: tuple[str, ...]
    still: tuple[str, ...]
    fixed: tuple[str, ...]


def finding_id(text: str) -> str:
    """The id of a finding: `f-` and ten hex digits."""
    words = _words(text)
    return "f-" + hashlib.sha256(words.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def named_finding(text: str, open_before: Mapping[str, object]) -> tuple[str, str]:
    """The id of a finding and its words: a text that begins with the id of an open one speaks of that one."""
    told = _TOLD.match(text)
    if told is not None and told["id"] in open_before:
        return told["id"], text[told.end() :].strip()
    return finding_id(text), text


def unfounded(reply: ReviewerReply, open_before: Mapping[str, object]) -> tuple[str, ...]:
    """What a reviewer says of findings that cannot be: fixed without having been open, or fixed and to be fixed."""
    strange = [i for i in dict.fromkeys(reply.fixed) if i not in open_before]
    named = {named_finding(text, open_before)[0] for text in reply.must_fix}
    both = [i for i in dict.fromkeys(reply.fixed) if i in named and i in open_before]
    known = ", ".join(open_before) or "none"
    return (
        *(f"fixed: {i} is not an open finding; open are {known}" for i in strange),
        *(f"fixed: {i} is in must_fix too; say one of both" for i in both),
    )


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
