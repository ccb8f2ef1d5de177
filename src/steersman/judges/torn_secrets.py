"""Secrets that a cut has torn: what is left of them on either side of the place where output was left out.

**Invariant:** looks only beside such a place, and at the lines above the end of a private key.
"""

import re
from collections.abc import Iterator

from steersman.judges.patterns import later
from steersman.judges.secret_shapes import KEYS, Span

_GAP = later(r"[ \n]?\[\.\.\. [0-9]{1,20} bytes (?:of this line )?left out \.\.\.\]\n?")
TRACES = ("[... ", "-----END ")  # where neither stands nothing is torn
_SHORTEST = 4  # letters of a known value that give it away
_FAR = 8192
_WORD = later(r"[^\s\"'`,;()<>]{0,512}")
_PREFIXES = tuple(shape.words[0] for shape in KEYS)
_END = later(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_LINE = later(r"[ \t+>#|*\"'-]{0,16}[A-Za-z0-9+/=]{16,}[\"'\\nr ,]{0,8}")


def torn(text: str, known: tuple[str, ...]) -> Iterator[tuple[Span, str]]:
    """Each remainder, with the value it belongs to where that is known."""
    if not any(trace in text for trace in TRACES):
        return
    for gap in _GAP.finditer(text):
        yield from _known(text, gap.start(), gap.end(), known)
        yield from _keys(text, gap.start(), gap.end())
    for end in _END.finditer(text):
        yield from _key_lines(text, end)


def _known(text: str, start: int, end: int, known: tuple[str, ...]) -> Iterator[tuple[Span, str]]:
    before, after = text[max(0, start - _FAR) : start], text[end : end + _FAR]
    for value in known:
        size = _overlap(before, value)
        if size:
            yield Span(start - size, start, "known"), value
        size = _overlap(value, after)
        if size:
            yield Span(end, end + size, "known"), value


def _overlap(left: str, right: str) -> int:
    """How many letters at the end of one text are the beginning of the other; the most there are."""
    for size in range(min(len(left), len(right)), _SHORTEST - 1, -1):
        if left.endswith(right[:size]):
            return size
    return 0


def _keys(text: str, start: int, end: int) -> Iterator[tuple[Span, str]]:
    """A word that begins like a key and runs into the gap, and what goes on behind it."""
    word = re.split(r"[\s\"'`,;()<>=:]", text[max(0, start - 512) : start])[-1]
    if word.startswith(_PREFIXES) and len(word) >= 8:
        yield Span(start - len(word), start, "api_key"), word
        rest = _WORD.match(text, end)
        if rest is not None and rest[0]:
            yield Span(end, rest.end(), "api_key"), rest[0]


def _key_lines(text: str, end: re.Match[str]) -> Iterator[tuple[Span, str]]:
    """The lines above the end of a key whose beginning was cut off."""
    first = at = text.rfind("\n", 0, end.start())
    while at >= 0:
        line = text.rfind("\n", 0, at) + 1
        if _KEY_LINE.fullmatch(text, line, at) is None:
            break
        first, at = line, line - 1
    if first < text.rfind("\n", 0, end.start()):
        yield Span(first, end.end(), "private_key"), text[first : end.end()]
