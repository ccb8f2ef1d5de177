"""YAML as plain strings, lists and mappings, with the line of every value; and the lines of a JSON text.

**Invariant:** a scalar is the text that was written: no types, tags, anchors or merges; nothing is loaded in part.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from steersman.errors import UserError
from steersman.judges.replies.strict_json import MAX_JSON_DEPTH
from steersman.judges.text import printable_text

MAX_YAML_BYTES = 1024 * 1024

YamlPath = tuple[str | int, ...]
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainYaml(NamedTuple):
    """A document, where its parts stand (lines from 1), and which texts were written without quotes."""

    value: Any
    lines: dict[YamlPath, int]
    unquoted_paths: frozenset[YamlPath] = frozenset()

    def line_of(self, path: YamlPath) -> int:
        """The line of the nearest known place at or above a path."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _YamlProblem(Exception):  # noqa: N818  a reason with a line, turned into a UserError at once
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_plain_yaml(data: bytes, name: str) -> PlainYaml:
    """The one document in `data`; a UserError names file, line and reason."""
    reader = _YamlReader(data)
    try:
        value = reader.read_document()
    except _YamlProblem as broken:
        raise UserError(f"{name}, line {broken.line}: {broken}") from None
    return PlainYaml(value, reader.lines, frozenset(reader.unquoted_paths))


def find_json_lines(text: str) -> dict[YamlPath, int]:
    """The lines of a JSON text, which is YAML too; if YAML reads it differently, only the lines before that point."""
    reader = _YamlReader(text.encode())
    with contextlib.suppress(_YamlProblem):
        reader.read_document()
    return reader.lines


class _YamlReader:
    """Turns events into values; a document that is too deep ends it before the stack does."""

    def __init__(self, data: bytes) -> None:
        self._events = _parse_yaml_events(data)
        self.lines: dict[YamlPath, int] = {}
        self.unquoted_paths: set[YamlPath] = set()

    def read_document(self) -> Any:
        value: list[Any] = []
        for event in self._events:
            if value and isinstance(event, yaml.DocumentStartEvent):
                raise _YamlProblem(_line_of_event(event), "more than one document")
            if isinstance(event, yaml.NodeEvent):
                value.append(self._read_node(event, ()))
        if not value:
            raise _YamlProblem(1, "is empty")
        return value[0]

    def _read_node(self, event: Any, path: YamlPath) -> Any:
        line = _line_of_event(event)
        self._refuse_special_node(event, line)
        self.lines.setdefault(path, line)
        if isinstance(event, yaml.ScalarEvent):
            if event.implicit[0]:
                self.unquoted_paths.add(path)
            return event.value
        if len(path) >= MAX_JSON_DEPTH:
            raise _YamlProblem(line, f"nested deeper than {MAX_JSON_DEPTH} levels; make it flatter")
        is_list = isinstance(event, yaml.SequenceStartEvent)
        return self._read_list(path) if is_list else self._read_mapping(path)

    def _read_list(self, path: YamlPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._read_node(event, (*path, len(items))))
        return items

    def _read_mapping(self, path: YamlPath) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line_of_event(event)
            self._refuse_special_node(event, line)
            if not isinstance(event, yaml.ScalarEvent):
                raise _YamlProblem(line, "a key has to be a word")
            if event.value in members:
                raise _YamlProblem(line, f"{printable_text(event.value)!r} is given twice")
            self.lines[*path, event.value] = line
            members[event.value] = self._read_node(next(self._events), (*path, event.value))
        return members

    def _refuse_special_node(self, event: Any, line: int) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise _YamlProblem(line, "aliases (*name) are not allowed; write the value out")
        if event.anchor is not None:
            raise _YamlProblem(line, "anchors (&name) are not allowed; write the value out")
        if event.tag is not None:
            raise _YamlProblem(line, f"tags ({printable_text(event.tag)}) are not allowed")


def _line_of_event(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


def _parse_yaml_events(data: bytes) -> Iterator[Any]:
    if len(data) > MAX_YAML_BYTES:
        raise _YamlProblem(1, f"longer than {MAX_YAML_BYTES} bytes")
    try:
        yield from yaml.parse(data.decode(), Loader=_YAML_LOADER)
    except UnicodeDecodeError as error:
        raise _YamlProblem(data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _YamlProblem(line, printable_text(str(error.problem or error.context))) from None
    except yaml.reader.ReaderError as error:  # characters that YAML does not allow
        raise _YamlProblem(
            data.count(b"\n", 0, error.position) + 1, printable_text(str(error.reason))
        ) from None
