"""JSON Schemas of files that people write, where a field is left out rather than null.

**Invariant:** only the form changes: what a schema accepts from a file without nulls stays the same.
"""

from typing import Any

NULL_SCHEMA = {"type": "null"}


def drop_null_types(schema: Any) -> Any:
    """The schema with every `X or null` written as `X`, and without defaults: it then complains about X."""
    match schema:
        case {"anyOf": [only, second], **rest} if second == NULL_SCHEMA:
            return {**drop_null_types(rest), **drop_null_types(only)}
        case dict():
            return {key: drop_null_types(item) for key, item in schema.items() if key != "default"}
        case list():
            return [drop_null_types(item) for item in schema]
        case _:
            return schema
