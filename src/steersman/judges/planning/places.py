"""Finds places in a document of any form: the value at a path, and the field and line of a problem.

**Invariant:** total. A value of the wrong form is skipped and never repaired, and every problem fits its contract.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.judges.replies.strict_json import render_field_path
from steersman.judges.text import clip_text, printable_text

FieldPath = tuple[str | int, ...]
FieldLines = Mapping[FieldPath, int]  # of the file that a document was read from, from 1

NO_FIELD_LINES: FieldLines = MappingProxyType({})


def document_problem(
    path: FieldPath, message: str, fix: str = "", lines: FieldLines = NO_FIELD_LINES
) -> DocumentProblem:
    """One thing that is wrong, at the line of the nearest field that the file has."""
    return DocumentProblem(
        field=format_field_path(path),
        message=clip_text(printable_text(message), 1000),
        fix=clip_text(printable_text(fix), 1000),
        line=find_field_line(path, lines),
    )


def format_field_path(path: FieldPath) -> str:
    """A path as people write it."""
    return clip_text(render_field_path(path) if path else "document", 400)


def find_field_line(path: FieldPath, lines: FieldLines) -> int:
    """Of the field itself, else of the nearest one around it; 0 where no lines are known."""
    return next((lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in lines), 0)


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
