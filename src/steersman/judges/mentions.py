"""Who is meant by the `@name` in a text.

A name may be in any script and need not end at a space: of several that fit, the longest is meant. Code and e-mail
addresses mention nobody.
**Invariant:** looks at letters only; who answers to a name is data.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_TICKS = re.compile(r"`+")
# Behind a letter of an address, a path or another @ it is none.
_AT = re.compile(r"(?<![A-Za-z0-9._%+/@\\-])@(?=[^\s@])")
_ASCII = re.compile(r"[A-Za-z0-9_]")
_WORD = re.compile(r"[\w.-]{1,64}")


class Mentions(NamedTuple):
    """Whom a text calls, in order and once each, and the names nobody has."""

    names: tuple[str, ...]
    unknown: tuple[str, ...]


def mentions(text: str, known: Mapping[str, str]) -> Mentions:
    """`known` gives for each name and alias, folded, the name it stands for."""
    prose = without_code(unicodedata.normalize("NFKC", text))
    longest_first = sorted((name for name in known if name), key=lambda name: (-len(name), name))
    found: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for at in _AT.finditer(prose):
        rest = folded(prose[at.end() : at.end() + 200])
        name = next((n for n in longest_first if rest.startswith(n) and _ends(n, rest)), None)
        word = _WORD.match(prose, at.end())
        if name is not None:
            found[known[name]] = None
        elif word is not None and not _an_address(prose, word.end()):
            unknown[word[0].rstrip(".-")] = None
    return Mentions(tuple(found), tuple(unknown))


def folded(name: str) -> str:
    """A name as it is compared: whatever its width and its capitals."""
    return unicodedata.normalize("NFKC", name).casefold()


def without_code(text: str) -> str:
    """The text with its code blocks and code spans left out."""
    return _without_spans("\n".join(_prose(text.split("\n"))))


def _prose(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are in no block, neither a fenced nor an indented one."""
    fence, indentable = "", True
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            closes = mark is not None and mark[1].startswith(fence) and not line.strip(" `~\t")
            fence = "" if closes else fence
        elif mark is not None:
            fence = mark[1]
        elif not (indentable and line.startswith(("    ", "\t"))):
            indentable = not line.strip()
            yield line


def _without_spans(text: str) -> str:
    """A span ends with as many ticks as it began with; ticks without an end are letters."""
    runs = [(match.start(), match.end()) for match in _TICKS.finditer(text)]
    ends: dict[int, list[int]] = {}  # length of a run -> the runs of this length, the last one first
    for n in range(len(runs) - 1, -1, -1):
        ends.setdefault(runs[n][1] - runs[n][0], []).append(n)
    pieces, at, n = [], 0, 0
    while n < len(runs):
        start, stop = runs[n]
        same = ends[stop - start]
        while same and same[-1] <= n:
            same.pop()
        if same:
            pieces += [text[at:start], " "]
            n = same[-1]
            at = runs[n][1]
        n += 1
    return "".join((*pieces, text[at:]))


def _ends(name: str, rest: str) -> bool:
    """Whether a name is over here: a Latin one is not while its word goes on, or becomes an address or a path."""
    after = rest[len(name) : len(name) + 2]
    if not _ASCII.match(name[-1]) or not after:
        return True
    if _ASCII.match(after[0]) or after[0] in "/@":
        return False
    return not (after[0] in ".-" and len(after) == 2 and _ASCII.match(after[1]) is not None)


def _an_address(text: str, end: int) -> bool:
    return text[end : end + 1] in ("/", "@", "(")
