"""A document's JSON Schema as a map: which part of it speaks about which field.

**Invariant:** where the schema says nothing, nothing is guessed.
"""

import re
from collections.abc import Collection
from typing import Any

from steersman.judges.planning.places import Path
from steersman.judges.strict_json import MAX_DEPTH

Schema = dict[str, Any]

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,15})")
_WORDS = {"true": True, "false": False}


def part(schema: Schema, path: Path) -> Schema:
    """What a schema says about the field at a path; empty where it says nothing."""
    here = _resolved(schema, schema)
    for name in path:
        here = _resolved(schema, _below(here, name))
    return here


def _below(here: Schema, name: str | int) -> Schema:
    found = here.get("items", {}) if isinstance(name, int) else here.get("properties", {}).get(name, {})
    return found if isinstance(found, dict) else {}


def _resolved(schema: Schema, here: Schema) -> Schema:
    while "$ref" in here:
        here = schema["$defs"][here["$ref"].removeprefix("#/$defs/")]
    return here


def typed(value: Any, schema: Schema, bare: Collection[Path], path: Path = ()) -> Any:
    """Text that was written without quotes, as a number or true or false exactly where the schema wants one."""
    match value:
        case dict() | list() if (
            len(path) >= MAX_DEPTH
        ):  # no schema reaches there, and whoever judges it says so
            return value
        case dict():
            return {key: typed(item, schema, bare, (*path, key)) for key, item in value.items()}
        case list():
            return [typed(item, schema, bare, (*path, n)) for n, item in enumerate(value)]
        case str() if path in bare:
            return _scalar(value, part(schema, path))
        case _:
            return value


def _scalar(text: str, wanted: Schema) -> Any:
    if wanted.get("type") == "integer" and _WHOLE.fullmatch(text):
        return int(text)
    flag = wanted.get("type") == "boolean" or wanted.get("enum") == [True]
    return _WORDS.get(text, text) if flag else text
