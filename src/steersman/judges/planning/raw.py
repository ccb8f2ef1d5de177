"""Looking into a document that may be anything: what is there in the right form, and nothing otherwise.

**Invariant:** total; a form that does not fit is never repaired, only not seen.
"""

from collections.abc import Iterator
from typing import Any

from steersman.judges.planning.places import Path


def at(value: Any, path: Path) -> Any:
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


def text(value: Any, *path: str | int) -> str:
    """The text at a path; empty where there is none."""
    found = at(value, path)
    return found if isinstance(found, str) else ""


def each(value: Any, *path: str | int) -> Iterator[tuple[Path, Any]]:
    """The items of the list at a path, each with its own path."""
    found = at(value, path)
    if isinstance(found, list):
        yield from (((*path, n), item) for n, item in enumerate(found))


def texts(value: Any, *path: str | int) -> Iterator[tuple[Path, str]]:
    """The same, of those that are text."""
    yield from ((where, item) for where, item in each(value, *path) if isinstance(item, str))


def every_text(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every text of a document with its path, in its order."""
    match value:
        case str():
            yield path, value
        case dict():
            for key, item in value.items():
                yield from every_text(item, (*path, key))
        case list():
            for n, item in enumerate(value):
                yield from every_text(item, (*path, n))
