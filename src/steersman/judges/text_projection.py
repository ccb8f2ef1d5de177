"""A text without what hides inside it: colours, invisible letters, line breaks; and the way back to its own places.

**Invariant:** looks only: what is found in a projection is taken out of the text itself.
"""

import re
from bisect import bisect_right
from collections.abc import Callable

from steersman.judges.patterns import lazy_pattern

# Terminal sequences, also written out, and whatever else no one sees.
INVISIBLE_TEXT = lazy_pattern(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]{0,512}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]{0,4}[0-~]"
    r"|\\(?:x1b|u001b|033|e)\[[0-9;]{0,16}[A-Za-z]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_HIDDEN_CHARACTER = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
    r"|\\(?:x1b|u001b|033|e)\["
)
# The break of a line inside a word, with what continues a line in a shell, a diff or a string.
BROKEN_LINE = lazy_pattern(r"(?:\\?\r?\n|\\r\\n|\\n)(?:[ \t]{0,16}[+>-](?=[ \t]*\S))?[ \t]{0,32}")


def has_invisible_text(text: str) -> bool:
    """Whether there is anything invisible in it."""
    return _HIDDEN_CHARACTER.search(text) is not None


def blank_invisible_text(text: str) -> str:
    """The text with a space for every letter of what is invisible: every place stays where it is."""
    return INVISIBLE_TEXT.sub(lambda match: " " * len(match[0]), text)


def remove_filler(text: str, filler: re.Pattern[str]) -> tuple[str, Callable[[int, int], tuple[int, int]]]:
    """The text without what fits `filler`, and where what lies between two places of it is in the text."""
    pieces: list[str] = []
    starts: list[int] = []  # of each piece, in the projection
    origins: list[int] = []  # the same, in the text
    at = length = 0
    for gap in filler.finditer(text):
        if gap.start() > at:
            pieces.append(text[at : gap.start()])
            starts.append(length)
            origins.append(at)
            length += gap.start() - at
        at = gap.end()
    pieces.append(text[at:])
    starts.append(length)
    origins.append(at)

    def restore_index(index: int) -> int:
        piece = bisect_right(starts, index) - 1
        return origins[piece] + index - starts[piece]

    def restore_span(start: int, end: int) -> tuple[int, int]:
        return restore_index(start), restore_index(end - 1) + 1

    return "".join(pieces), restore_span
