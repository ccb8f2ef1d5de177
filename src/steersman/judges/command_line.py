"""A command as one text, split into words; and what every word of a proposed command has to be.

Quotes are understood and nothing else of a shell: whatever one would expand, join, redirect or run is refused.
**Invariant:** what is split here gives, in a shell, the same words; linear in the length of the text; never raises.
"""

import re
import unicodedata
from collections.abc import Sequence

import msgspec

from steersman.contracts.commands import Argv
from steersman.judges.text import clip, printable

LONGEST_TEXT = 8192
LONGEST_WORD = 2000
MOST_WORDS = 64

NOT_A_COMMAND = "not a command: give one line of text, or a list of words that starts with a program"

# One word: plain characters, or `--name=` and then quotes, or quotes alone. Inside double quotes a shell still
# looks for $, `, \ and !. A ~ or # means something at the beginning of a word, and a ~ behind = or : too.
_PLAIN = r"(?:[^\s'\"\\$`|&;<>(){}\[\]*?!#~^]|(?<=[^\s=:])[~#])"
_QUOTED = r"'[^']*+'|\"[^\"\\$`!]*+\""
_WORD = re.compile(rf"(?:{_QUOTED}|{_PLAIN}++(?:(?<==)(?:{_QUOTED}))?)(?=[ \t]|\Z)")
_CHARACTER = re.compile(_PLAIN)
_ASSIGNMENT = re.compile(r"\w+\+?=")
_QUOTES = re.compile(r"'([^']*+)'|\"([^\"]*+)\"")


class NotSplit(msgspec.Struct, frozen=True):
    """Not a plain line of words, and why."""

    reason: str


def split(text: str) -> Argv | NotSplit:
    """The words of a command line; NotSplit where a shell would do more than split and unquote."""
    if len(text) > LONGEST_TEXT:
        return NotSplit(f"not a command: longer than {LONGEST_TEXT} characters")
    if not _is_clean(text.replace("\t", " ")):
        return NotSplit("not a command: has a line break, a control or an invisible character")
    words, at = [], _skip(text, 0)
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            return NotSplit(_special(text, at))
        words.append(_QUOTES.sub(lambda q: q[1] if q[1] is not None else q[2], found[0]))
        at = _skip(text, found.end())
    if words and _ASSIGNMENT.match(words[0]):
        return NotSplit(
            "not a command: an assignment in front of a program; the environment is not the tester's to set"
        )
    return tuple(words)


def words_of(proposal: object) -> Argv | NotSplit:
    """The argv of a proposal that is a line or a list of words; nothing else is one, whatever else it says."""
    match proposal:
        case str():
            words = split(proposal)
        case list() | tuple() if all(isinstance(word, str) for word in proposal[: MOST_WORDS + 1]):
            words = tuple(proposal[: MOST_WORDS + 1])
        case dict():
            return NotSplit("not a command: where, how long and with what it runs is not the tester's to say")
        case _:
            return NotSplit(NOT_A_COMMAND)
    if isinstance(words, NotSplit):
        return words
    trouble = _argv_problem(words)
    return words if trouble is None else NotSplit(trouble)


def word_problem(word: str) -> str | None:
    """What is wrong with a word of a proposed command, whatever the program; or None."""
    if not word:
        return "is empty"
    if len(word) > LONGEST_WORD:
        return f"is longer than {LONGEST_WORD} characters"
    if not _is_clean(word):
        return "has a control or invisible character"
    if unicodedata.normalize("NFKC", word) != word:
        return "is written with look-alike or composed characters"
    return None


def shown(words: Sequence[str]) -> str:
    """A command for a message: short, on one line, with nothing a terminal would obey."""
    return clip(" ".join(printable(clip(w, 80)) for w in words[:20]), 160)


def _argv_problem(words: Argv) -> str | None:
    if not words:
        return NOT_A_COMMAND
    if len(words) > MOST_WORDS:
        return f"not a command: more than {MOST_WORDS} words"
    for number, word in enumerate(words, 1):
        if (trouble := word_problem(word)) is not None:
            return f"not a command: word {number} {trouble}"
    return None


def _is_clean(text: str) -> bool:
    return text.isprintable() and printable(text) == text


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _special(text: str, at: int) -> str:
    """Names the first character that stops the line from being plain words."""
    place = at
    while _CHARACTER.match(text, place):
        place += 1
    char = text[place : place + 1]
    if char in ("'", '"'):
        return (
            f"not a command: the quote at character {place + 1} does not enclose a whole word, "
            "or holds something that a shell would expand"
        )
    return f"not a command: {char!r} at character {place + 1} means something to a shell; there is none here"
