"""A command as one text, split into words; and what every word of a proposed command has to be.

Quotes are understood and nothing else of a shell: whatever one would expand, join, redirect or run is refused.
**Invariant:** what is split here gives, in a shell, the same words; linear in the length of the text; never raises.
"""

import re
import unicodedata
from collections.abc import Sequence

import msgspec

from steersman.contracts.commands import Argv
from steersman.judges.text import clip_text, printable_text

MAX_COMMAND_CHARACTERS = 8192
MAX_WORD_CHARACTERS = 2000
MAX_COMMAND_WORDS = 64

NOT_A_COMMAND = "not a command: give one line of text, or a list of words that starts with a program"

# One word: plain characters, or `--name=` and then quotes, or quotes alone. Inside double quotes a shell still
# looks for $, `, \ and !. A ~ or # means something at the beginning of a word, and a ~ behind = or : too.
_PLAIN_CHARACTER = r"(?:[^\s'\"\\$`|&;<>(){}\[\]*?!#~^]|(?<=[^\s=:])[~#])"
_QUOTED_TEXT = r"'[^']*+'|\"[^\"\\$`!]*+\""
_COMMAND_WORD = re.compile(
    rf"(?:{_QUOTED_TEXT}|{_PLAIN_CHARACTER}++(?:(?<==)(?:{_QUOTED_TEXT}))?)(?=[ \t]|\Z)"
)
_PLAIN_CHARACTER_PATTERN = re.compile(_PLAIN_CHARACTER)
_LEADING_ASSIGNMENT = re.compile(r"\w+\+?=")
_SURROUNDING_QUOTES = re.compile(r"'([^']*+)'|\"([^\"]*+)\"")


class UnsplittableCommand(msgspec.Struct, frozen=True):
    """Not a plain line of words, and why."""

    reason: str


def split_command_line(text: str) -> Argv | UnsplittableCommand:
    """The words of a command line; NotSplit where a shell would do more than split and unquote."""
    if len(text) > MAX_COMMAND_CHARACTERS:
        return UnsplittableCommand(f"not a command: longer than {MAX_COMMAND_CHARACTERS} characters")
    if not _is_printable_command(text.replace("\t", " ")):
        return UnsplittableCommand("not a command: has a line break, a control or an invisible character")
    words, at = [], _skip_blanks(text, 0)
    while at < len(text):
        match = _COMMAND_WORD.match(text, at)
        if match is None:
            return UnsplittableCommand(_explain_special_character(text, at))
        words.append(
            _SURROUNDING_QUOTES.sub(
                lambda quoted: quoted[1] if quoted[1] is not None else quoted[2], match[0]
            )
        )
        at = _skip_blanks(text, match.end())
    if words and _LEADING_ASSIGNMENT.match(words[0]):
        return UnsplittableCommand(
            "not a command: an assignment in front of a program; the environment is not the tester's to set"
        )
    return tuple(words)


def parse_proposed_command(proposal: object) -> Argv | UnsplittableCommand:
    """The argv of a proposal that is a line or a list of words; nothing else is one, whatever else it says."""
    match proposal:
        case str():
            words = split_command_line(proposal)
        case list() | tuple() if all(isinstance(word, str) for word in proposal[: MAX_COMMAND_WORDS + 1]):
            words = tuple(proposal[: MAX_COMMAND_WORDS + 1])
        case dict():
            return UnsplittableCommand(
                "not a command: where, how long and with what it runs is not the tester's to say"
            )
        case _:
            return UnsplittableCommand(NOT_A_COMMAND)
    if isinstance(words, UnsplittableCommand):
        return words
    problem = _find_argv_problem(words)
    return words if problem is None else UnsplittableCommand(problem)


def find_command_word_problem(word: str) -> str | None:
    """What is wrong with a word of a proposed command, whatever the program; or None."""
    if not word:
        return "is empty"
    if len(word) > MAX_WORD_CHARACTERS:
        return f"is longer than {MAX_WORD_CHARACTERS} characters"
    if not _is_printable_command(word):
        return "has a control or invisible character"
    if unicodedata.normalize("NFKC", word) != word:
        return "is written with look-alike or composed characters"
    return None


def render_command_words(words: Sequence[str]) -> str:
    """A command for a message: short, on one line, with nothing a terminal would obey."""
    return clip_text(" ".join(printable_text(clip_text(word, 80)) for word in words[:20]), 160)


def _find_argv_problem(words: Argv) -> str | None:
    if not words:
        return NOT_A_COMMAND
    if len(words) > MAX_COMMAND_WORDS:
        return f"not a command: more than {MAX_COMMAND_WORDS} words"
    for number, word in enumerate(words, 1):
        if (problem := find_command_word_problem(word)) is not None:
            return f"not a command: word {number} {problem}"
    return None


def _is_printable_command(text: str) -> bool:
    return text.isprintable() and printable_text(text) == text


def _skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _explain_special_character(text: str, at: int) -> str:
    """Names the first character that stops the line from being plain words."""
    place = at
    while _PLAIN_CHARACTER_PATTERN.match(text, place):
        place += 1
    char = text[place : place + 1]
    if char in ("'", '"'):
        return (
            f"not a command: the quote at character {place + 1} does not enclose a whole word, "
            "or holds something that a shell would expand"
        )
    return f"not a command: {char!r} at character {place + 1} means something to a shell; there is none here"
