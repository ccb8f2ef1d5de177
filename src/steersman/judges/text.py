"""Outside text made fit to be kept and to be shown.

**Invariant:** what `printable` returns cannot move a cursor, hide, reorder or forge text on a terminal;
what `decode` returns can always be encoded again.
"""

import re
from collections.abc import Callable

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
