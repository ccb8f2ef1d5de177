"""Exactly one JSON object out of an agent's answer, or every reason why not.

**Invariant:** never "first wins" or "last wins"; linear in the length of the text; never raises.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from steersman.judges.text import clip_text, printable_text

MAX_REPLY_BYTES = 1024 * 1024
MAX_JSON_DEPTH = 32
MAX_JSON_MEMBERS = 2_000
LARGEST_SAFE_INTEGER = 2**53 - 1

_JSON_BLANKS = " \t\r\n"
_JSON_FENCE = re.compile(r"```(?ia:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL)
# Strings are stepped over whole; a quote left over has no end, which the decoder will say.
_JSON_MARKS = re.compile(r'"(?:[^"\\]++|(?:\\.)++)*+"|["{}\[\],]', re.DOTALL)


class RefusedReply(msgspec.Struct, frozen=True):
    """Not accepted; `problems` holds all that was found, each naming the place and what is wrong."""

    problems: tuple[str, ...]


class DecodedObject(msgspec.Struct, frozen=True):
    """The one object, as values and as the JSON text it was read from."""

    value: dict[str, Any]
    body: str


class JsonReading(msgspec.Struct, frozen=True):
    """What could be read, and what is wrong with it; a value with problems is only good for finding more of them."""

    value: dict[str, Any] | None
    body: str
    problems: tuple[str, ...]


def read_json_object(text: str) -> DecodedObject | RefusedReply:
    """The one object that is the whole text, optionally in one code fence."""
    reading = read_strict_json(text)
    if reading.value is None or reading.problems:
        return RefusedReply(reading.problems)
    return DecodedObject(reading.value, reading.body)


def read_strict_json(text: str, limit: int = MAX_REPLY_BYTES, members: int = MAX_JSON_MEMBERS) -> JsonReading:
    """The same, with the value also where something is wrong with it, so that all the rest can be said too."""
    if (problem := _find_reply_text_problem(text, limit)) is not None:
        return JsonReading(None, "", (problem,))
    body = _remove_json_fence(text.strip(_JSON_BLANKS))
    if (problem := _find_json_size_problem(body, members)) is not None:
        return JsonReading(None, body, (problem,))
    return _decode_json_body(body)


def _find_reply_text_problem(text: str, limit: int) -> str | None:
    if len(text) > limit:
        return f"reply: longer than {limit} bytes"
    if not _is_valid_unicode(text):
        return "reply: holds text that is not Unicode (a lone surrogate)"
    if len(text.encode()) > limit:
        return f"reply: longer than {limit} bytes"
    if not text.strip(_JSON_BLANKS):
        return "reply: is empty; answer with one JSON object"
    return None


def _remove_json_fence(text: str) -> str:
    fenced = _JSON_FENCE.fullmatch(text)
    return fenced[1].strip(_JSON_BLANKS) if fenced else text


def _find_json_size_problem(body: str, limit: int) -> str | None:
    """Counts before the decoder runs, so that it is never asked to recurse deeply or to fill memory."""
    depth = members = strings = 0
    for mark in _JSON_MARKS.finditer(body):
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
        if depth > MAX_JSON_DEPTH:
            return f"reply: nested deeper than {MAX_JSON_DEPTH} levels"
        if members > limit or strings > 2 * limit:
            return f"reply: more than {limit} members"
    return None


def _decode_json_body(body: str) -> JsonReading:
    problems: list[str] = []
    decoder = json.JSONDecoder(
        object_pairs_hook=partial(_collect_json_pairs, problems),
        parse_int=partial(_parse_json_integer, problems),
        parse_float=partial(_parse_json_float, problems),
        parse_constant=partial(_refuse_json_constant, problems),
    )
    try:
        value, end = decoder.raw_decode(body)
    except ValueError as error:
        return JsonReading(None, body, (*problems, f"reply: is not one JSON object: {error}"))
    if end != len(body):
        problems.append(f"reply: more text after the first value, at character {end + 1}")
    if not isinstance(value, dict):
        return JsonReading(None, body, (*problems, "reply: is not a JSON object"))
    # Nothing can be asked of such a value: it cannot even be encoded.
    text_problems = tuple(_find_bad_json_texts(value, ""))
    return JsonReading(None if text_problems else value, body, (*problems, *text_problems))


def _collect_json_pairs(problems: list[str], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            problems.append(f"{_render_json_key(key)}: duplicate key")
        value[key] = item
    return value


def _parse_json_integer(problems: list[str], digits: str) -> int:
    # The length first: long digits are slow to read.
    if len(digits) > 17 or abs(int(digits)) > LARGEST_SAFE_INTEGER:
        problems.append(f"number {digits[:20]}…: beyond 2^53")
        return 0
    if digits == "-0":
        problems.append("number -0: write 0")
    return int(digits)


def _parse_json_float(problems: list[str], digits: str) -> float:
    number = float(digits) if len(digits) <= 400 else math.inf
    if not math.isfinite(number) or (number == 0 and digits.startswith("-")):
        problems.append(f"number {digits[:20]}: not a finite number, or a negative zero")
        return 0.0
    return number


def _refuse_json_constant(problems: list[str], word: str) -> None:
    problems.append(f"number {word}: is not JSON")


def _find_bad_json_texts(value: Any, where: str) -> list[str]:
    """Strings that only an escape can smuggle in: lone surrogates and NUL."""
    match value:
        case str() if "\0" in value or not _is_valid_unicode(value):
            return [f"{where}: holds a NUL character or a lone surrogate"]
        case list():
            return [
                problem
                for index, item in enumerate(value)
                for problem in _find_bad_json_texts(item, f"{where}[{index}]")
            ]
        case dict():
            return [
                problem
                for key, item in value.items()
                for problem in _find_bad_json_member_texts(key, item, where)
            ]
        case _:
            return []


def _is_valid_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _find_bad_json_member_texts(key: str, item: Any, where: str) -> list[str]:
    name = f"{where}.{_render_json_key(key)}".removeprefix(".")
    return [*_find_bad_json_texts(key, f"key {name}"), *_find_bad_json_texts(item, name)]


def _render_json_key(key: str) -> str:
    return key[:60].encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


# ── schema problems ─────────────────────────────────────────────────────────────────────────────────────────────────────

# Every way in which a plain value breaks a JSON Schema, in words that name the field.
#
# **Invariant:** a problem never repeats a long value back; it says where and what is wrong.


_VALUE_PLACEHOLDER = "<value>"  # stands in for the value in the library's own messages
_MAX_SHOWN_CHARACTERS = 60
_MAX_MESSAGE_CHARACTERS = 400
_MAX_SCHEMA_ERRORS = 300


class SchemaProblem(msgspec.Struct, frozen=True):
    """Where a value is wrong, and how."""

    path: tuple[str | int, ...]
    what: str

    def __str__(self) -> str:
        return f"{render_field_path(self.path)}: {self.what}"


def render_field_path(path: Sequence[str | int]) -> str:
    """A path as people write it: `roles.coder.setup[1][0]`."""
    parts = [
        f"[{part}]" if isinstance(part, int) else f".{printable_text(clip_text(part, _MAX_SHOWN_CHARACTERS))}"
        for part in path
    ]
    return "".join(parts).removeprefix(".") or "reply"


def find_json_schema_problems(value: Any, schema: dict[str, Any]) -> tuple[SchemaProblem, ...]:
    """All problems of a value, in the order of the schema, up to a limit that no reader reaches; empty when it fits."""
    return tuple(
        problem
        for error in find_schema_errors(value, build_schema_validator(schema))
        for problem in spell_schema_error(error)
    )


def build_schema_validator(schema: dict[str, Any]) -> Any:
    """What holds values against a schema; worth keeping where there are many."""
    import jsonschema_rs  # costs 28 ms, and most values fit

    return jsonschema_rs.validator_for(schema, mask=_VALUE_PLACEHOLDER, retriever=_refuse_remote_schema)


def find_schema_errors(value: Any, validator: Any) -> Iterator[Any]:
    """The problems as the library has them (`kind`, `instance_path`, `instance`)."""
    return islice(validator.iter_errors(value), _MAX_SCHEMA_ERRORS)


def _refuse_remote_schema(uri: str) -> Any:
    raise ValueError(f"{clip_text(uri, _MAX_SHOWN_CHARACTERS)} is elsewhere: a schema holds all it refers to")


def spell_schema_error(error: Any) -> Iterator[SchemaProblem]:
    """One of the library's problems in words; more than one where fields are not known."""
    path = tuple(error.instance_path)
    match error.kind.name:
        case "required":
            yield SchemaProblem((*path, error.kind.property), "is missing")
        case "additionalProperties":
            yield from (
                SchemaProblem((*path, name), "is not a known field") for name in error.kind.unexpected
            )
        case _:
            message = error.message.replace(_VALUE_PLACEHOLDER, _render_schema_value(error.instance))
            yield SchemaProblem(path, clip_text(printable_text(message), _MAX_MESSAGE_CHARACTERS))


def _render_schema_value(value: Any) -> str:
    if isinstance(value, str | int | None):
        encoded = msgspec.json.encode(value).decode()
        if len(encoded) <= _MAX_SHOWN_CHARACTERS:
            return encoded
    return "the value"


def suggest_known_word(word: str, known_words: Collection[str]) -> str:
    """What was probably meant, else what there is."""
    import difflib  # slow to import, and only for what is misspelt

    matches = difflib.get_close_matches(word, list(known_words), 1, 0.6)
    return f"did you mean `{matches[0]}`?" if matches else f"known here are {', '.join(known_words)}"
