"""YAML as plain strings, lists and mappings, with the line of every value.

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
_MAX_COUNTED_LEVELS = 1000  # levels that are still counted

YamlPath = tuple[str | int, ...]
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainYaml(NamedTuple):
    """A document, where its parts stand (lines from 1), and which texts were written without quotes."""

    value: Any
    lines: dict[YamlPath, int]
    bare: frozenset[YamlPath] = frozenset()

    def line_of(self, path: YamlPath) -> int:
        """The line of the nearest known place at or above a path."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _YamlProblem(Exception):  # noqa: N818  a reason with a line, turned into a UserError at once
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class YamlTooDeepError(UserError):
    """Nested deeper than anything of ours; `levels` says how deep, `line` where it begins to be."""

    def __init__(self, name: str, line: int, levels: int) -> None:
        from steersman.judges.planning.depth import nesting_depth_message

        super().__init__(f"{name}, line {line}: {nesting_depth_message(levels)}")
        self.line, self.levels = line, levels


class _YamlDepthProblem(_YamlProblem):
    """It cannot be held any more; how deep it goes is for whoever counts the rest."""


class _OpenCollection:
    """A list or mapping whose end has not come yet."""

    def __init__(self, value: Any, path: YamlPath) -> None:
        self.value, self.path = value, path
        self.key: str | None = None


def read_plain_yaml(data: bytes, name: str) -> PlainYaml:
    """The one document in `data`; a UserError names file, line and reason."""
    events = _parse_yaml_events(data)
    try:
        return _YamlBuilder().build(events)
    except _YamlDepthProblem as deep:
        raise YamlTooDeepError(name, deep.line, _count_yaml_levels(events)) from None
    except _YamlProblem as broken:
        raise UserError(f"{name}, line {broken.line}: {broken}") from None


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


def _count_yaml_levels(events: Iterator[Any]) -> int:
    """How deep a document goes that has just gone too deep; beyond what can be read, and a thousand, nobody counts."""
    deepest = depth = MAX_JSON_DEPTH + 1
    with contextlib.suppress(_YamlProblem):
        for event in events:
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            deepest = max(deepest, depth)
            if deepest == _MAX_COUNTED_LEVELS:
                break
    return deepest


class _YamlBuilder:
    """Turns events into values without recursion."""

    def __init__(self) -> None:
        self._stack: list[_OpenCollection] = []
        self._root: list[Any] = []
        self._lines: dict[YamlPath, int] = {}
        self._bare: set[YamlPath] = set()

    def build(self, events: Iterator[Any]) -> PlainYaml:
        for event in events:
            line = event.start_mark.line + 1
            match event:
                case yaml.AliasEvent():
                    raise _YamlProblem(line, "aliases (*name) are not allowed; write the value out")
                case yaml.NodeEvent():
                    self._node(event, line)
                case yaml.CollectionEndEvent():
                    self._stack.pop()
                case yaml.DocumentStartEvent() if self._root:
                    raise _YamlProblem(line, "more than one document")
                case _:
                    pass
        if not self._root:
            raise _YamlProblem(1, "is empty")
        return PlainYaml(self._root[0], self._lines, frozenset(self._bare))

    def _node(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            raise _YamlProblem(line, "anchors (&name) are not allowed; write the value out")
        if event.tag is not None:
            raise _YamlProblem(line, f"tags ({printable_text(event.tag)}) are not allowed")
        match event:
            case yaml.ScalarEvent():
                self._scalar(event.value, line, bare=event.implicit[0])
            case yaml.SequenceStartEvent():
                self._begin([], line)
            case _:
                self._begin({}, line)

    def _scalar(self, text: str, line: int, *, bare: bool) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent is None or isinstance(parent.value, list) or parent.key is not None:
            path = self._place(text, line)
            if bare:
                self._bare.add(path)
            return
        if text in parent.value:
            raise _YamlProblem(line, f"{printable_text(text)!r} is given twice")
        parent.key = text
        self._lines[*parent.path, text] = line

    def _begin(self, value: Any, line: int) -> None:
        if len(self._stack) >= MAX_JSON_DEPTH:
            raise _YamlDepthProblem(line, "")
        self._stack.append(_OpenCollection(value, self._place(value, line)))

    def _place(self, value: Any, line: int) -> YamlPath:
        """Puts a value where it belongs and returns its path."""
        if not self._stack:
            self._root.append(value)
            return ()
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            path = (*parent.path, len(parent.value))
            parent.value.append(value)
        elif parent.key is None:
            raise _YamlProblem(line, "a key has to be a word")
        else:
            path = (*parent.path, parent.key)
            parent.value[parent.key] = value
            parent.key = None
        self._lines.setdefault(path, line)
        return path
