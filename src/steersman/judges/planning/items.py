"""A registry file as it was read, plain: the pieces of content in it, or everything that is wrong with them.

**Invariant:** a piece of content is whole or left out, and what is left out is told.
"""

from functools import cache
from typing import Any, NamedTuple, cast

import msgspec

from steersman.contracts.planning.content import KINDS, Content
from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.documents import document_schema
from steersman.contracts.planning.words import Kind
from steersman.judges.planning.places import Lines, Path, problem
from steersman.judges.planning.registry import Item, Origin
from steersman.judges.planning.schema import Schema, typed
from steersman.judges.planning.shape import schema_problems
from steersman.judges.text import clip

FOLDERS: dict[str, Kind] = {
    "workflows": "workflow",
    "agents": "agent",
    "commands": "command",
    "rules": "rule",
}


class Source(NamedTuple):
    """Where something was read: the file, the kind that its folder says, and the lines of its parts."""

    file: str
    kind: Kind
    origin: Origin
    lines: Lines


def items_of(value: Any, source: Source) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """One piece of content, or a list of them."""
    if not isinstance(value, list):
        read = _item(value, (), source.lines, source)
        return ((read,), ()) if isinstance(read, Item) else ((), read)
    parts: list[dict[Path, int]] = [{} for _ in value]
    for at, line in source.lines.items():
        if at:
            parts[cast("int", at[0])][at[1:]] = line
    found: list[Item] = []
    problems: list[Problem] = []
    for n, (one, lines) in enumerate(zip(value, parts, strict=True)):
        read = _item(one, (n,), lines, source)
        if isinstance(read, Item):
            found.append(read)
        else:
            problems += read
    return tuple(found), tuple(problems)


def _item(value: Any, path: Path, lines: Lines, source: Source) -> Item | tuple[Problem, ...]:
    raw = typed(value, _schema(source.kind), lines)
    shape: type[Content] = KINDS[source.kind]
    problems = schema_problems(raw, lines, source.kind)
    if not problems:
        return Item(msgspec.convert(raw, shape), source.origin, source.file, lines)
    return tuple(_placed(p, path, value, source) for p in problems)


@cache
def _schema(kind: Kind) -> Schema:
    return document_schema(kind)


def _placed(told: Problem, path: Path, value: Any, source: Source) -> Problem:
    """The same with the file, and with the id where there is one."""
    id_ = value.get("id") if isinstance(value, dict) else None
    name = f"{id_}." if isinstance(id_, str) else f"[{path[0]}]." if path else ""
    line = told.line or problem(path, told.message, "", source.lines).line
    return msgspec.structs.replace(
        told, field=clip(f"{source.file}: {clip(name, 90)}{told.field}", 400), line=line
    )
