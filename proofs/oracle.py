"""What a verdict is, written a second time and in another way: one character after another, with no library but
Unicode's own table of marks.

Nothing of steersman is used here, nor its JSON readers, patterns or schemas: where the two disagree, one is wrong.
"""

from unicodedata import category

BLANK = " \t\r\n"
WRONG = object()


def accepts(text: str) -> dict | None:
    """The verdict in a text that is exactly one, optionally in one fence; None for anything else."""
    if size(text) > 1024 * 1024:
        return None
    body = strip(text)
    if body.startswith("```"):
        body = unfenced(body)
        if body is None:
            return None
    value, at = read_value(body, 0, 1)
    if value is WRONG or at != len(body) or type(value) is not dict:
        return None
    return value if fits(value) else None


def size(text: str) -> int:
    """The length in UTF-8, counted; what cannot be written in it has no length."""
    total = 0
    for char in text:
        code = ord(char)
        if 0xD800 <= code <= 0xDFFF:
            return 2**62
        total += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return total


def strip(text: str) -> str:
    first, last = 0, len(text)
    while first < last and text[first] in BLANK:
        first += 1
    while last > first and text[last - 1] in BLANK:
        last -= 1
    return text[first:last]


def unfenced(body: str) -> str | None:
    """What is between a first line ``` or ```json and a last line ```; None where it is not like that."""
    lines = body.split("\n")
    if len(lines) < 3:
        return None
    opening = lines[0].removesuffix("\r")
    while opening.endswith((" ", "\t")):
        opening = opening[:-1]
    closing = lines[-1]
    while closing.startswith((" ", "\t")):
        closing = closing[1:]
    if opening.lower() not in ("```", "```json") or closing != "```":
        return None
    return strip("\n".join(lines[1:-1]))


def fits(verdict: dict) -> bool:
    if set(verdict) != {"decision", "summary", "must_fix"}:
        return False
    decision, summary, wanted = verdict["decision"], verdict["summary"], verdict["must_fix"]
    if type(summary) is not str or not 1 <= len(summary) <= 4000 or blank(summary):
        return False
    if type(wanted) is not list or len(wanted) > 200:
        return False
    if any(type(item) is not str or not item or blank(item) for item in wanted):
        return False
    if type(decision) is not str:
        return False
    return (decision == "approve" and wanted == []) or (decision == "changes_requested" and wanted != [])


FILLERS = (0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0xFFFC, 0x1D159)  # letters and signs without a shape


def blank(text: str) -> bool:
    """Nothing but what leaves no trace on a page: white space, what cannot be printed, fillers, marks on nothing."""
    for char in text:
        unseen = char.isspace() or not char.isprintable() or ord(char) in FILLERS
        if not unseen and category(char) not in ("Mn", "Me"):
            return False
    return True


# ── JSON, RFC 8259 ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_value(text: str, at: int, depth: int):
    at = skip(text, at)
    char = text[at : at + 1]
    if char == "{":
        return read_object(text, at + 1, depth)
    if char == "[":
        return read_list(text, at + 1, depth)
    if char == '"':
        return read_string(text, at + 1)
    for word, value in (("true", True), ("false", False), ("null", None)):
        if text[at : at + len(word)] == word:
            return value, at + len(word)
    return read_number(text, at)


def skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANK:
        at += 1
    return at


def read_object(text: str, at: int, depth: int):
    found: dict = {}
    at = skip(text, at)
    if depth > 32:
        return WRONG, at
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        at = skip(text, at)
        if text[at : at + 1] != '"':
            return WRONG, at
        key, at = read_string(text, at + 1)
        at = skip(text, at)
        if key is WRONG or key in found or text[at : at + 1] != ":":
            return WRONG, at
        value, at = read_value(text, at + 1, depth + 1)
        if value is WRONG:
            return WRONG, at
        found[key] = value
        at = skip(text, at)
        char = text[at : at + 1]
        at += 1
        if char == "}":
            return found, at
        if char != ",":
            return WRONG, at


def read_list(text: str, at: int, depth: int):
    found: list = []
    at = skip(text, at)
    if depth > 32:
        return WRONG, at
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = read_value(text, at, depth + 1)
        if value is WRONG:
            return WRONG, at
        found.append(value)
        at = skip(text, at)
        char = text[at : at + 1]
        at += 1
        if char == "]":
            return found, at
        if char != ",":
            return WRONG, at


SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = "0123456789abcdefABCDEF"


def read_string(text: str, at: int):
    """Behind the opening quote; a NUL or half a pair is no text."""
    units: list[int] = []
    while at < len(text):
        char = text[at]
        if char == '"':
            return joined(units), at + 1
        if ord(char) < 0x20:
            return WRONG, at
        if char != "\\":
            units.append(ord(char))
            at += 1
            continue
        kind = text[at + 1 : at + 2]
        if kind in SIMPLE and kind:
            units.append(ord(SIMPLE[kind]))
            at += 2
        elif kind == "u":
            digits = text[at + 2 : at + 6]
            if len(digits) != 4 or any(d not in HEX for d in digits):
                return WRONG, at
            units.append(-int(digits, 16))  # below nothing: it came from an escape
            at += 6
        else:
            return WRONG, at
    return WRONG, at


def joined(units: list[int]):
    out: list[str] = []
    number = 0
    while number < len(units):
        unit = units[number]
        code = -unit if unit <= 0 else unit
        following = -units[number + 1] if number + 1 < len(units) and units[number + 1] <= 0 else -1
        if unit <= 0 and 0xD800 <= code <= 0xDBFF and 0xDC00 <= following <= 0xDFFF:
            code = 0x10000 + (code - 0xD800) * 0x400 + (following - 0xDC00)
            number += 1
        elif code == 0 or 0xD800 <= code <= 0xDFFF:
            return WRONG
        out.append(chr(code))
        number += 1
    return "".join(out)


def read_number(text: str, at: int):
    """Digits where JSON wants them; its worth does not matter: no field of a verdict is a number."""
    start = at
    if text[at : at + 1] == "-":
        at += 1
    whole = digits_at(text, at)
    if whole == at or (text[at] == "0" and whole > at + 1):
        return WRONG, at
    at = whole
    if text[at : at + 1] == ".":
        end = digits_at(text, at + 1)
        if end == at + 1:
            return WRONG, at
        at = end
    if text[at : at + 1] in ("e", "E"):
        sign = at + 2 if text[at + 1 : at + 2] in ("+", "-") else at + 1
        end = digits_at(text, sign)
        if end == sign:
            return WRONG, at
        at = end
    return len(text[start:at]), at


def digits_at(text: str, at: int) -> int:
    while at < len(text) and text[at] in "0123456789":
        at += 1
    return at
