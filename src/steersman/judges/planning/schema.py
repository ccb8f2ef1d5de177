"""A document's JSON Schema as a map: which part of it speaks about which field.

**Invariant:** where the schema says nothing, nothing is guessed.
"""

import re
from collections.abc import Collection
from typing import Any

from steersman.judges.planning.places import FieldPath
from steersman.judges.replies.strict_json import MAX_JSON_DEPTH

JsonSchema = dict[str, Any]

_INTEGER_TEXT = re.compile(r"-?(0|[1-9][0-9]{0,15})")
_BOOLEAN_TEXTS = {"true": True, "false": False}


def find_schema_part(schema: JsonSchema, path: FieldPath) -> JsonSchema:
    """What a schema says about the field at a path; empty where it says nothing."""
    node = _resolve_schema_ref(schema, schema)
    for name in path:
        node = _resolve_schema_ref(schema, _child_schema(node, name))
    return node


def _child_schema(node: JsonSchema, name: str | int) -> JsonSchema:
    child = node.get("items", {}) if isinstance(name, int) else node.get("properties", {}).get(name, {})
    return child if isinstance(child, dict) else {}


def _resolve_schema_ref(schema: JsonSchema, node: JsonSchema) -> JsonSchema:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
    return node


def convert_bare_scalars(
    value: Any, schema: JsonSchema, bare: Collection[FieldPath], path: FieldPath = ()
) -> Any:
    """Text that was written without quotes, as a number or true or false exactly where the schema wants one."""
    match value:
        case dict() | list() if (
            len(path) >= MAX_JSON_DEPTH
        ):  # no schema reaches there, and whoever judges it says so
            return value
        case dict():
            return {
                key: convert_bare_scalars(item, schema, bare, (*path, key)) for key, item in value.items()
            }
        case list():
            return [convert_bare_scalars(item, schema, bare, (*path, n)) for n, item in enumerate(value)]
        case str() if path in bare:
            return _convert_scalar(value, find_schema_part(schema, path))
        case _:
            return value


def _convert_scalar(text: str, field_schema: JsonSchema) -> Any:
    if field_schema.get("type") == "integer" and _INTEGER_TEXT.fullmatch(text):
        return int(text)
    is_boolean = field_schema.get("type") == "boolean" or field_schema.get("enum") == [True]
    return _BOOLEAN_TEXTS.get(text, text) if is_boolean else text
