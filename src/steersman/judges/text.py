"""Outside text made fit to be kept and to be shown.

**Invariant:** what `printable` returns cannot move a cursor, hide, reorder or forge text on a terminal;
what `decode` returns can always be encoded again.
"""

import re

# Control characters but tab and newline, format characters (bidi, zero width, tags), invisible fillers,
# line separators, lone surrogates and noncharacters.
_DANGEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# More marks on one letter than any script uses would paint over the lines above.
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
_STORM = re.compile(f"({_MARK}{{4}})({_MARK}+)")


def printable(text: str) -> str:
    """The text with everything a terminal would obey written out, such as `\\x1b`."""
    calm = _DANGEROUS.sub(lambda m: _written(m[0]), text)
    return _STORM.sub(lambda m: m[1] + "".join(map(_written, m[2])), calm)


def _written(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clip(text: str, limit: int) -> str:
    """At most `limit` characters; a cut is shown by an ellipsis."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def decode(data: bytes) -> str:
    """Bytes from outside as text; what is not UTF-8 is written out, such as `\\xff`."""
    return data.decode("utf-8", "backslashreplace")


def well_formed(text: str) -> str:
    """The text with lone surrogates (as in undecodable file names) written out."""
    return text.encode("utf-8", "backslashreplace").decode()
