"""Every way in which a plain value breaks a JSON Schema, in words that name the field.

**Invariant:** a problem never repeats a long value back; it says where and what is wrong.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from steersman.judges.text import clip, printable

_SHOWN = "<value>"  # stands in for the value in the library's own messages
_SHOW_AT_MOST = 60
_SAY_AT_MOST = 400
_MOST = 300


class Problem(msgspec.Struct, frozen=True):
    """Where a value is wrong, and how."""

    path: tuple[str | int, ...]
    what: str

    def __str__(self) -> str:
        return f"{field(self.path)}: {self.what}"


def field(path: Sequence[str | int]) -> str:
    """A path as people write it: `roles.coder.setup[1][0]`."""
    parts = [f"[{p}]" if isinstance(p, int) else f".{printable(clip(p, _SHOW_AT_MOST))}" for p in path]
    return "".join(parts).removeprefix(".") or "reply"


def problems_of(value: Any, schema: dict[str, Any]) -> tuple[Problem, ...]:
    """All problems of a value, in the order of the schema, up to more than anybody reads; empty when it fits."""
    return tuple(p for error in errors_of(value, validator_of(schema)) for p in _spelled(error))


def validator_of(schema: dict[str, Any]) -> Any:
    """What holds values against a schema; worth keeping where there are many."""
    import jsonschema_rs  # costs 28 ms, and most values fit

    return jsonschema_rs.validator_for(schema, mask=_SHOWN, retriever=_nothing_from_elsewhere)


def errors_of(value: Any, validator: Any) -> Iterator[Any]:
    """The problems as the library has them (`kind`, `instance_path`, `instance`), for who has words of its own."""
    return islice(validator.iter_errors(value), _MOST)


def _nothing_from_elsewhere(uri: str) -> Any:
    raise ValueError(f"{clip(uri, _SHOW_AT_MOST)} is elsewhere: a schema holds all it refers to")


def _spelled(error: Any) -> Iterator[Problem]:
    path = tuple(error.instance_path)
    match error.kind.name:
        case "required":
            yield Problem((*path, error.kind.property), "is missing")
        case "additionalProperties":
            yield from (Problem((*path, name), "is not a known field") for name in error.kind.unexpected)
        case _:
            said = error.message.replace(_SHOWN, _shown(error.instance))
            yield Problem(path, clip(printable(said), _SAY_AT_MOST))


def _shown(value: Any) -> str:
    if isinstance(value, str | int | None):
        said = msgspec.json.encode(value).decode()
        if len(said) <= _SHOW_AT_MOST:
            return said
    return "the value"
