"""A registry file as it was read, plain: the pieces of content in it, or everything that is wrong with them.

**Invariant:** a piece of content is whole or left out, and what is left out is told.
"""

from collections.abc import Collection
from functools import cache
from typing import Any

import msgspec

from steersman.contracts.planning.content import KINDS
from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.documents import document_schema
from steersman.contracts.planning.words import Kind
from steersman.judges.planning.places import Lines, Path
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


class Source(msgspec.Struct, frozen=True):
    """Where something was read: the file, the kind that its folder says, the side it is from."""

    file: str
    kind: Kind
    origin: Origin


class _Part(msgspec.Struct, frozen=True):
    """One piece of a file: where in it, the lines of its fields, and which of them were written without quotes."""

    path: Path
    lines: dict[Path, int]
    bare: set[Path]


def items_of(
    value: Any, lines: Lines, bare: Collection[Path], source: Source
) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """One piece of content, or a list of them."""
    many = isinstance(value, list)
    parts = _parts(len(value) if many else 0, lines, bare) if many else [_Part((), dict(lines), set(bare))]
    read = [_item(one, part, source) for one, part in zip(value if many else [value], parts, strict=True)]
    items = tuple(one for one in read if isinstance(one, Item))
    return items, tuple(problem for one in read if not isinstance(one, Item) for problem in one)


def _parts(count: int, lines: Lines, bare: Collection[Path]) -> list[_Part]:
    parts: dict[Path, _Part] = {(n,): _Part((n,), {}, set()) for n in range(count)}
    for at, line in lines.items():
        if at[:1] in parts:
            parts[at[:1]].lines[at[1:]] = line
    for at in bare:
        parts[at[:1]].bare.add(at[1:])
    return list(parts.values())


def _item(value: Any, part: _Part, source: Source) -> Item | tuple[Problem, ...]:
    raw = typed(value, _schema(source.kind), part.bare)
    problems = schema_problems(raw, part.lines, source.kind)
    if not problems:
        return Item(msgspec.convert(raw, KINDS[source.kind]), source.origin, source.file, part.lines)
    return tuple(_placed(p, value, part, source) for p in problems)


@cache
def _schema(kind: Kind) -> Schema:
    return document_schema(kind)


def _placed(told: Problem, value: Any, part: _Part, source: Source) -> Problem:
    """The same with the file, and with the id where there is one."""
    id_ = value.get("id") if isinstance(value, dict) else None
    name = f"{clip(id_, 80)}." if isinstance(id_, str) else "".join(f"[{n}]." for n in part.path)
    return msgspec.structs.replace(told, field=clip(f"{source.file}: {name}{told.field}", 400))
