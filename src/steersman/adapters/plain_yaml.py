"""YAML as plain strings, lists and mappings, with the line of every value.

**Invariant:** a scalar is the text that was written: no types, tags, anchors or merges; nothing is loaded in part.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from steersman.errors import UserError
from steersman.judges.strict_json import MAX_DEPTH
from steersman.judges.text import printable

MAX_BYTES = 1024 * 1024
_FATHOM = 1000  # levels that are still counted

Path = tuple[str | int, ...]
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainYaml(NamedTuple):
    """A document, where its parts stand (lines from 1), and which texts were written without quotes."""

    value: Any
    lines: dict[Path, int]
    bare: frozenset[Path] = frozenset()

    def line_of(self, path: Path) -> int:
        """The line of the nearest known place at or above a path."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Broken(Exception):  # noqa: N818  a reason with a line, turned into a UserError at once
    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


class TooDeepError(UserError):
    """Nested deeper than anything of ours; `levels` says how deep, `line` where it begins to be."""

    def __init__(self, name: str, line: int, levels: int) -> None:
        from steersman.judges.planning.depth import too_deep

        super().__init__(f"{name}, line {line}: {too_deep(levels)}")
        self.line, self.levels = line, levels


class _Deep(_Broken):
    """It cannot be held any more; how deep it goes is for whoever counts the rest."""


class _Open:
    """A list or mapping whose end has not come yet."""

    def __init__(self, value: Any, path: Path) -> None:
        self.value, self.path = value, path
        self.key: str | None = None


def read_yaml(data: bytes, name: str) -> PlainYaml:
    """The one document in `data`; a UserError names file, line and reason."""
    events = _events(data)
    try:
        return _Builder().build(events)
    except _Deep as deep:
        raise TooDeepError(name, deep.line, _levels(events)) from None
    except _Broken as broken:
        raise UserError(f"{name}, line {broken.line}: {broken}") from None


def _events(data: bytes) -> Iterator[Any]:
    if len(data) > MAX_BYTES:
        raise _Broken(1, f"longer than {MAX_BYTES} bytes")
    try:
        yield from yaml.parse(data.decode(), Loader=_LOADER)
    except UnicodeDecodeError as error:
        raise _Broken(data.count(b"\n", 0, error.start) + 1, "not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _Broken(line, printable(str(error.problem or error.context))) from None
    except yaml.reader.ReaderError as error:  # characters that YAML does not allow
        raise _Broken(data.count(b"\n", 0, error.position) + 1, printable(str(error.reason))) from None


def _levels(rest: Iterator[Any]) -> int:
    """How deep a document goes that has just gone too deep; beyond what can be read, and a thousand, nobody counts."""
    deepest = depth = MAX_DEPTH + 1
    with contextlib.suppress(_Broken):
        for event in rest:
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            deepest = max(deepest, depth)
            if deepest == _FATHOM:
                break
    return deepest


class _Builder:
    """Turns events into values without recursion."""

    def __init__(self) -> None:
        self._stack: list[_Open] = []
        self._root: list[Any] = []
        self._lines: dict[Path, int] = {}
        self._bare: set[Path] = set()

    def build(self, events: Iterator[Any]) -> PlainYaml:
        for event in events:
            line = event.start_mark.line + 1
            match event:
                case yaml.AliasEvent():
                    raise _Broken(line, "aliases (*name) are not allowed; write the value out")
                case yaml.NodeEvent():
                    self._node(event, line)
                case yaml.CollectionEndEvent():
                    self._stack.pop()
                case yaml.DocumentStartEvent() if self._root:
                    raise _Broken(line, "more than one document")
                case _:
                    pass
        if not self._root:
            raise _Broken(1, "is empty")
        return PlainYaml(self._root[0], self._lines, frozenset(self._bare))

    def _node(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            raise _Broken(line, "anchors (&name) are not allowed; write the value out")
        if event.tag is not None:
            raise _Broken(line, f"tags ({printable(event.tag)}) are not allowed")
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
            raise _Broken(line, f"{printable(text)!r} is given twice")
        parent.key = text
        self._lines[*parent.path, text] = line

    def _begin(self, value: Any, line: int) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise _Deep(line, "")
        self._stack.append(_Open(value, self._place(value, line)))

    def _place(self, value: Any, line: int) -> Path:
        """Puts a value where it belongs and returns its path."""
        if not self._stack:
            self._root.append(value)
            return ()
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            path = (*parent.path, len(parent.value))
            parent.value.append(value)
        elif parent.key is None:
            raise _Broken(line, "a key has to be a word")
        else:
            path = (*parent.path, parent.key)
            parent.value[parent.key] = value
            parent.key = None
        self._lines.setdefault(path, line)
        return path
