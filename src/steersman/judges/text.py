"""Outside text made fit to be kept and to be shown.

**Invariant:** what `printable` returns cannot move a cursor, hide, reorder or forge text on a terminal;
what `decode` returns can always be encoded again.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, cast

# Control characters but tab and newline, format characters (bidi, zero width, tags), invisible fillers,
# line separators, lone surrogates and noncharacters.
_DANGEROUS_CHARACTER = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# More marks on one letter than any script uses would paint over the lines above.
_MAX_MARKS_PER_LETTER = 4
_MARK_RUN = re.compile("[\u0300-\u036f\u0483-\U0010ffff]{5,}")  # below them Unicode has no marks
# Neither marks nor what has no shape: spaces, controls, private and unassigned characters.
_UNSEEN_CATEGORIES = frozenset({"Mn", "Me", "Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
# A blank pattern of Braille, an object's place, a note without a head.
_EMPTY_SYMBOLS = frozenset("\u2800\ufffc\U0001d159")


def has_visible_text(text: str) -> bool:
    """Whether a reader would see anything of it: a text of blanks and invisible characters says nothing."""
    return any(_has_visible_shape(char) for char in _DANGEROUS_CHARACTER.sub("", text))


def _has_visible_shape(char: str) -> bool:
    if char.isascii():
        return not char.isspace()
    import unicodedata  # only for text in other scripts

    return unicodedata.category(char) not in _UNSEEN_CATEGORIES and char not in _EMPTY_SYMBOLS


def printable_text(text: str) -> str:
    """The text with everything a terminal would obey written out, such as `\\x1b`."""
    return _escape_dangerous(text, _python_escape)


def count_with_noun(count: int, noun: str) -> str:
    """A number with its noun: `1 test`, `2 tests`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def printable_line(text: str) -> str:
    """The same on one line: nothing in it can pose as the next line."""
    return printable_text(text).replace("\n", "\\n").replace("\t", "\\t")


def printable_json(document: str) -> str:
    """JSON with everything a terminal would obey as an escape of JSON: the same value, safe to look at."""
    return _escape_dangerous(document, _json_escape)


def _escape_dangerous(text: str, write: Callable[[str], str]) -> str:
    escaped = _DANGEROUS_CHARACTER.sub(lambda match: write(match[0]), text)
    return (
        escaped if escaped.isascii() else _MARK_RUN.sub(lambda match: _limit_marks(match[0], write), escaped)
    )


def _limit_marks(characters: str, write: Callable[[str], str]) -> str:
    import unicodedata  # only for text in other scripts

    pieces, marks = [], 0
    for char in characters:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        pieces.append(char if marks <= _MAX_MARKS_PER_LETTER else write(char))
    return "".join(pieces)


def _python_escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def clip_text(text: str, limit: int) -> str:
    """At most `limit` characters; a cut is shown by an ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def decode_outside_bytes(data: bytes) -> str:
    """Bytes from outside as text; what is not UTF-8 is written out, such as `\\xff`."""
    return data.decode("utf-8", "backslashreplace")


def escape_surrogates(text: str) -> str:
    """The text with lone surrogates (as in undecodable file names) written out."""
    return text.encode("utf-8", "backslashreplace").decode()


# ── patterns ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Patterns that are compiled when they are first asked: all of them together cost more than most commands do.
#
# **Invariant:** what is asked of one is answered by the compiled pattern itself.


_PATTERN_METHODS = ("search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")


class _LazyPattern:
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """Only reached for what is not there yet."""
        if name not in _PATTERN_METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        vars(self).update({method: getattr(compiled, method) for method in _PATTERN_METHODS})
        return vars(self)[name]


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, compiled when it is first asked."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))


# ── text projection ─────────────────────────────────────────────────────────────────────────────────────────────────────

# A text without what hides inside it: colours, invisible letters, line breaks; and the way back to its own places.
#
# **Invariant:** looks only: what is found in a projection is taken out of the text itself.


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
