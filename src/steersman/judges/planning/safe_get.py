"""Looking into a document that may be anything: what is there in the right form, and nothing otherwise.

**Invariant:** total; a form that does not fit is never repaired, only not seen.
"""

from collections.abc import Iterator
from typing import Any

from steersman.judges.planning.places import FieldPath


def get_value_at(value: Any, path: FieldPath) -> Any:
    """What stands at a path; None where nothing does."""
    for name in path:
        match value:
            case dict() if name in value:
                value = value[name]
            case list() if isinstance(name, int) and name < len(value):
                value = value[name]
            case _:
                return None
    return value


def get_text_at(value: Any, *path: str | int) -> str:
    """The text at a path; empty where there is none."""
    item = get_value_at(value, path)
    return item if isinstance(item, str) else ""


def iter_list_at(value: Any, *path: str | int) -> Iterator[tuple[FieldPath, Any]]:
    """The items of the list at a path, each with its own path."""
    items = get_value_at(value, path)
    if isinstance(items, list):
        yield from (((*path, n), item) for n, item in enumerate(items))


def iter_texts_at(value: Any, *path: str | int) -> Iterator[tuple[FieldPath, str]]:
    """The same, of those that are text."""
    yield from ((item_path, item) for item_path, item in iter_list_at(value, *path) if isinstance(item, str))


def walk_texts(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, str]]:
    """Every text of a document with its path, in its order."""
    match value:
        case str():
            yield path, value
        case dict():
            for key, item in value.items():
                yield from walk_texts(item, (*path, key))
        case list():
            for n, item in enumerate(value):
                yield from walk_texts(item, (*path, n))
