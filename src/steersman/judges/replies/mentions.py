"""Finds the names that a text mentions with `@name`.

A name may be in any script and need not end at a space; the longest name that fits counts. Code and e-mail addresses
mention no one.
**Invariant:** only letters are judged. The caller passes the known names.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

_CODE_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_BACKTICK_RUN = re.compile(r"`+")
# Behind a letter of an address, a path or another @ it is none.
_MENTION_SIGN = re.compile(r"(?<![A-Za-z0-9._%+/@\\-])@(?=[^\s@])")
_ASCII_WORD_CHARACTER = re.compile(r"[A-Za-z0-9_]")
_MENTION_WORD = re.compile(r"[\w.-]{1,64}")


class Mentions(NamedTuple):
    """The known names that a text mentions, in order and once each, and the unknown ones."""

    names: tuple[str, ...]
    unknown: tuple[str, ...]


def find_mentions(text: str, known: Mapping[str, str]) -> Mentions:
    """`known` gives for each name and alias, folded, the name it stands for."""
    prose = remove_markdown_code(unicodedata.normalize("NFKC", text))
    longest_first = sorted((name for name in known if name), key=lambda name: (-len(name), name))
    names: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for sign in _MENTION_SIGN.finditer(prose):
        rest = fold_mention_name(prose[sign.end() : sign.end() + 200])
        name = next((c for c in longest_first if rest.startswith(c) and _ends_mention(c, rest)), None)
        word = _MENTION_WORD.match(prose, sign.end())
        if name is not None:
            names[known[name]] = None
        elif word is not None and not _is_address_or_path(prose, word.end()):
            unknown[word[0].rstrip(".-")] = None
    return Mentions(tuple(names), tuple(unknown))


def fold_mention_name(name: str) -> str:
    """A name as it is compared: whatever its width and its capitals."""
    return unicodedata.normalize("NFKC", name).casefold()


def remove_markdown_code(text: str) -> str:
    """The text with its code blocks and code spans left out."""
    return _remove_code_spans("\n".join(_list_prose_lines(text.split("\n"))))


def _list_prose_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are in no block, neither a fenced nor an indented one."""
    fence, indentable = "", True
    for line in lines:
        fence_match = _CODE_FENCE.match(line)
        if fence:
            closes = fence_match is not None and fence_match[1].startswith(fence) and not line.strip(" `~\t")
            fence = "" if closes else fence
        elif fence_match is not None:
            fence = fence_match[1]
        elif not (indentable and line.startswith(("    ", "\t"))):
            indentable = not line.strip()
            yield line


def _remove_code_spans(text: str) -> str:
    """A span ends with as many ticks as it began with; ticks without an end are letters."""
    runs = [(match.start(), match.end()) for match in _BACKTICK_RUN.finditer(text)]
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


def _ends_mention(name: str, rest: str) -> bool:
    """Whether a name is over here: a Latin one is not while its word goes on, or becomes an address or a path."""
    after = rest[len(name) : len(name) + 2]
    if not _ASCII_WORD_CHARACTER.match(name[-1]) or not after:
        return True
    if _ASCII_WORD_CHARACTER.match(after[0]) or after[0] in "/@":
        return False
    return not (after[0] in ".-" and len(after) == 2 and _ASCII_WORD_CHARACTER.match(after[1]) is not None)


def _is_address_or_path(text: str, end: int) -> bool:
    return text[end : end + 1] in ("/", "@", "(")
