"""Every way in which a plain value breaks a JSON Schema, in words that name the field.

**Invariant:** a problem never repeats a long value back; it says where and what is wrong.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from steersman.judges.text import clip_text, printable_text

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
