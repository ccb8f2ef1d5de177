"""Outside text made fit to be kept and to be shown.

**Invariant:** what `printable` returns cannot move a cursor, hide, reorder or forge text on a terminal;
what `decode` returns can always be encoded again.
"""

import re
from collections.abc import Callable

# Control characters but tab and newline, format characters (bidi, zero width, tags), invisible fillers,
# line separators, lone surrogates and noncharacters.
_DANGEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# More marks on one letter than any script uses would paint over the lines above.
_MARKS = 4
_CANDIDATES = re.compile("[\u0300-\u036f\u0483-\U0010ffff]{5,}")  # below them Unicode has no marks
# Neither marks nor what has no shape: spaces, controls, private and unassigned characters.
_UNSEEN = frozenset({"Mn", "Me", "Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})
_EMPTY = frozenset(
    "\u2800\ufffc\U0001d159"
)  # a blank pattern of Braille, an object's place, a note without a head


def visible(text: str) -> bool:
    """Whether a reader would see anything of it: a text of blanks and invisible characters says nothing."""
    return any(_has_shape(char) for char in _DANGEROUS.sub("", text))


def _has_shape(char: str) -> bool:
    if char.isascii():
        return not char.isspace()
    import unicodedata  # only for text in other scripts

    return unicodedata.category(char) not in _UNSEEN and char not in _EMPTY


def printable(text: str) -> str:
    """The text with everything a terminal would obey written out, such as `\\x1b`."""
    return _with(text, _written)


def count_of(count: int, noun: str) -> str:
    """A number with its noun: `1 test`, `2 tests`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def one_line(text: str) -> str:
    """The same on one line: nothing in it can pose as the next line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def printable_json(document: str) -> str:
    """JSON with everything a terminal would obey as an escape of JSON: the same value, safe to look at."""
    return _with(document, _escaped)


def _with(text: str, write: Callable[[str], str]) -> str:
    calm = _DANGEROUS.sub(lambda m: write(m[0]), text)
    return calm if calm.isascii() else _CANDIDATES.sub(lambda m: _calmed(m[0], write), calm)


def _calmed(run: str, write: Callable[[str], str]) -> str:
    import unicodedata  # only for text in other scripts

    told, marks = [], 0
    for char in run:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        told.append(char if marks <= _MARKS else write(char))
    return "".join(told)


def _written(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _escaped(char: str) -> str:
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def clip(text: str, limit: int) -> str:
    """At most `limit` characters; a cut is shown by an ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def clip_between_words(text: str, limit: int) -> str:
    """The same, without the word that the cut tears: redaction would not know half of a secret."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return cut[: max(cut.rfind(sign) for sign in " \n\"'") + 1] + "…"


def decode(data: bytes) -> str:
    """Bytes from outside as text; what is not UTF-8 is written out, such as `\\xff`."""
    return data.decode("utf-8", "backslashreplace")


def well_formed(text: str) -> str:
    """The text with lone surrogates (as in undecodable file names) written out."""
    return text.encode("utf-8", "backslashreplace").decode()
