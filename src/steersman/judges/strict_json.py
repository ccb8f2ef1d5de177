"""Exactly one JSON object out of an agent's answer, or every reason why not.

**Invariant:** never "first wins" or "last wins"; linear in the length of the text; never raises.
"""

import json
import math
import re
from functools import partial
from typing import Any

import msgspec

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
MAX_MEMBERS = 2_000
LARGEST = 2**53 - 1
TOO_DEEP = f"reply: nested deeper than {MAX_DEPTH} levels"

_BLANK = " \t\r\n"
_FENCE = re.compile(r"```(?ia:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL)
# Strings are stepped over whole; a quote left over has no end, which the decoder will say.
_MARKS = re.compile(r'"(?:[^"\\]++|(?:\\.)++)*+"|["{}\[\],]', re.DOTALL)


class Refused(msgspec.Struct, frozen=True):
    """Not accepted; `problems` holds all that was found, each naming the place and what is wrong."""

    problems: tuple[str, ...]


class Found(msgspec.Struct, frozen=True):
    """The one object, as values and as the JSON text it was read from."""

    value: dict[str, Any]
    body: str


class Reading(msgspec.Struct, frozen=True):
    """What could be read, and what is wrong with it; a value with problems is only good for finding more of them."""

    value: dict[str, Any] | None
    body: str
    problems: tuple[str, ...]


def read_object(text: str, limit: int = MAX_BYTES) -> Found | Refused:
    """The one object that is the whole text, optionally in one code fence."""
    reading = read(text, limit)
    if reading.value is None or reading.problems:
        return Refused(reading.problems)
    return Found(reading.value, reading.body)


def read(text: str, limit: int = MAX_BYTES, members: int = MAX_MEMBERS) -> Reading:
    """The same, with the value also where something is wrong with it, so that all the rest can be said too."""
    if (bad := _unfit(text, limit)) is not None:
        return Reading(None, "", (bad,))
    body = _unfenced(text.strip(_BLANK))
    if (bad := _oversized(body, members)) is not None:
        return Reading(None, body, (bad,))
    return _decoded(body)


def _unfit(text: str, limit: int) -> str | None:
    if len(text) > limit:
        return f"reply: longer than {limit} bytes"
    if not _is_unicode(text):
        return "reply: holds text that is not Unicode (a lone surrogate)"
    if len(text.encode()) > limit:
        return f"reply: longer than {limit} bytes"
    if not text.strip(_BLANK):
        return "reply: is empty; answer with one JSON object"
    return None


def _unfenced(text: str) -> str:
    fenced = _FENCE.fullmatch(text)
    return fenced[1].strip(_BLANK) if fenced else text


def _oversized(body: str, most: int) -> str | None:
    """Counts before the decoder runs, so that it is never asked to recurse deeply or to fill memory."""
    depth = members = strings = 0
    for mark in _MARKS.finditer(body):
        match mark[0]:
            case "{" | "[":
                depth += 1
                members += 1
            case "}" | "]":
                depth -= 1
            case ",":
                members += 1
            case '"':
                break
            case _:
                strings += 1
        if depth > MAX_DEPTH:
            return TOO_DEEP
        if members > most or strings > 2 * most:
            return f"reply: more than {most} members"
    return None


def _decoded(body: str) -> Reading:
    problems: list[str] = []
    decoder = json.JSONDecoder(
        object_pairs_hook=partial(_object, problems),
        parse_int=partial(_integer, problems),
        parse_float=partial(_float, problems),
        parse_constant=partial(_constant, problems),
    )
    try:
        value, end = decoder.raw_decode(body)
    except ValueError as error:
        return Reading(None, body, (*problems, f"reply: is not one JSON object: {error}"))
    if end != len(body):
        problems.append(f"reply: more text after the first value, at character {end + 1}")
    if not isinstance(value, dict):
        return Reading(None, body, (*problems, "reply: is not a JSON object"))
    bad = tuple(_bad_text(value, ""))  # nothing can be asked of such a value: it cannot even be encoded
    return Reading(None if bad else value, body, (*problems, *bad))


def _object(problems: list[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            problems.append(f"{_shown(key)}: duplicate key")
        value[key] = item
    return value


def _integer(problems: list[str], digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > LARGEST:  # the length first: long digits are slow to read
        problems.append(f"number {digits[:20]}…: beyond 2^53")
        return 0
    if digits == "-0":
        problems.append("number -0: write 0")
    return int(digits)


def _float(problems: list[str], digits: str) -> float:
    number = float(digits) if len(digits) <= 400 else math.inf
    if not math.isfinite(number) or (number == 0 and digits.startswith("-")):
        problems.append(f"number {digits[:20]}: not a finite number, or a negative zero")
        return 0.0
    return number


def _constant(problems: list[str], word: str) -> None:
    problems.append(f"number {word}: is not JSON")


def _bad_text(value: Any, where: str) -> list[str]:
    """Strings that only an escape can smuggle in: lone surrogates and NUL."""
    match value:
        case str() if "\0" in value or not _is_unicode(value):
            return [f"{where}: holds a NUL character or a lone surrogate"]
        case list():
            return [p for n, item in enumerate(value) for p in _bad_text(item, f"{where}[{n}]")]
        case dict():
            return [p for key, item in value.items() for p in _bad_member(key, item, where)]
        case _:
            return []


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _bad_member(key: str, item: Any, where: str) -> list[str]:
    name = f"{where}.{_shown(key)}".removeprefix(".")
    return [*_bad_text(key, f"key {name}"), *_bad_text(item, name)]


def _shown(key: str) -> str:
    return key[:60].encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
