"""Stable names for a reviewer's findings, so that a loop knows "same finding, still open".

**Invariant:** the id of a new finding depends on the words alone: not on case, spacing, punctuation, round or order.
"""

import hashlib
import re
import unicodedata
from collections.abc import Mapping

from steersman.contracts.replies import ReviewerReply

_LEADING_FINDING_ID = re.compile(r"\s*\[?(?P<id>f-[0-9a-f]{10})\]?[\s:.,–-]*")


def finding_id(text: str) -> str:
    """The id of a finding: `f-` and ten hex digits."""
    words = _normalize_finding_words(text)
    return "f-" + hashlib.sha256(words.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def identify_finding(text: str, open_before: Mapping[str, object]) -> tuple[str, str]:
    """The id of a finding and its words: a text that begins with the id of an open one speaks of that one."""
    match = _LEADING_FINDING_ID.match(text)
    if match is not None and match["id"] in open_before:
        return match["id"], text[match.end() :].strip()
    return finding_id(text), text


def find_unfounded_fixes(reply: ReviewerReply, open_before: Mapping[str, object]) -> tuple[str, ...]:
    """What a reviewer says of findings that cannot be: fixed without having been open, or fixed and to be fixed."""
    unknown_ids = [finding for finding in dict.fromkeys(reply.fixed) if finding not in open_before]
    fix_ids = {identify_finding(text, open_before)[0] for text in reply.must_fix}
    ids = [finding for finding in dict.fromkeys(reply.fixed) if finding in fix_ids and finding in open_before]
    open_ids = ", ".join(open_before) or "none"
    return (
        *(f"fixed: {finding} is not an open finding; open are {open_ids}" for finding in unknown_ids),
        *(f"fixed: {finding} is in must_fix too; say one of both" for finding in ids),
    )


def _normalize_finding_words(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = "".join(" " if _is_noise_character(char) else char for char in folded)
    # A finding of punctuation alone ("???") still has a name of its own.
    return " ".join(spaced.split()) or " ".join(folded.split())


def _is_noise_character(char: str) -> bool:
    """Spaces, controls, punctuation and accents standing alone (a backtick is one); not symbols such as `<`."""
    category = unicodedata.category(char)
    return category[0] in "PZC" or category == "Sk"
