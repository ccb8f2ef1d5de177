"""In which blocks a place of a text stands, in languages that write blocks with braces.

Roughly: texts and comments are passed over, what a language writes in no other's way is not known. A brace in the
first column closes everything, so that one mistake does not reach far.
**Invariant:** pure; linear in the text, and every text gets an answer.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

BRACED = frozenset({"js", "go", "rust", "jvm", "net", "php", "c", "swift", "dart"})
_LINE = 200  # characters of a line that are looked at
_ABOVE = 400  # characters above a brace in which its head may begin
_KEPT = 10  # blocks from outside and from inside
_COMMON = r"//[^\n]*|/\*(?:.*?\*/|.*)|\"(?:\\.|[^\"\\\n])*\"?|`(?:\\.|[^`\\])*`?|[{}]"
_TEXTS = re.compile(rf"{_COMMON}|'(?:\\.|[^'\\\n])*'?", re.DOTALL)
_LETTERS = re.compile(rf"{_COMMON}|'(?:\\[^'\n]{{1,10}}|[^'\\\n])'", re.DOTALL)  # `'a` is a lifetime in Rust


class Block(NamedTuple):
    """What stands between two braces, and the words in front of it."""

    begin: int
    end: int
    head: str


def around(text: str, language: str, places: Iterable[int]) -> dict[int, tuple[Block, ...]]:
    """The blocks around each place, the outermost first."""
    ends: dict[int, int] = {}
    found: dict[int, list[int]] = {}
    opened: list[int] = []
    waiting = sorted(set(places), reverse=True)
    pattern = _TEXTS if language in ("js", "php", "dart", "swift") else _LETTERS
    for token in pattern.finditer(text):
        at = token.start()
        while waiting and waiting[-1] <= at:
            found[waiting.pop()] = _some(opened)
        if token[0] == "{":
            opened.append(at)
        elif token[0] == "}":
            closed = opened if _first(text, at) else opened[-1:]
            ends.update(dict.fromkeys(closed, at))
            del opened[len(opened) - len(closed) :]
    found.update({place: _some(opened) for place in waiting})
    heads = {begin: _head(text, begin) for begins in found.values() for begin in begins}
    return {
        place: tuple(Block(b, ends.get(b, len(text)), heads[b]) for b in begins)
        for place, begins in found.items()
    }


def _some(opened: list[int]) -> list[int]:
    return list(opened) if len(opened) <= 2 * _KEPT else opened[:_KEPT] + opened[-_KEPT:]


def _first(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _head(text: str, begin: int) -> str:
    """The line of a brace; with those above it where it only closes a list of parameters, or says nothing."""
    lines = text[max(0, begin - _ABOVE) : begin].split("\n")
    own = lines.pop()[-_LINE:]
    if own.strip() and not own.lstrip().startswith(")"):
        return own
    depth = len(own) - len(own.lstrip())
    above = [own]
    while lines:
        line = lines.pop()[-_LINE:]
        above.append(line)
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
    return " ".join(reversed(above))
