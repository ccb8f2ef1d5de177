"""JSON Schemas of files that people write, where a field is left out rather than null.

**Invariant:** only the form changes: what a schema accepts from a file without nulls stays the same.
"""

from typing import Any

NULL = {"type": "null"}


def without_null(schema: Any) -> Any:
    """The schema with every `X or null` written as `X`, and without defaults: it then complains about X."""
    match schema:
        case {"anyOf": [only, other], **rest} if other == NULL:
            return {**without_null(rest), **without_null(only)}
        case dict():
            return {key: without_null(item) for key, item in schema.items() if key != "default"}
        case list():
            return [without_null(item) for item in schema]
        case _:
            return schema
