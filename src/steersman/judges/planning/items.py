"""Turns a registry file, already read, into content items or into a list of everything that is wrong with them.

**Invariant:** an item is whole or left out, and every item that is left out is reported.
"""

from collections.abc import Collection
from typing import Any

import msgspec

from steersman.contracts.planning.content import CONTENT_TYPES
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.documents import planning_document_schema
from steersman.contracts.planning.words import ContentKind
from steersman.judges.planning.places import FieldLines, FieldPath
from steersman.judges.planning.registry import ContentOrigin, RegistryItem
from steersman.judges.planning.schema_errors import convert_unquoted_scalars, find_schema_problems
from steersman.judges.text import clip_text

KIND_DIRECTORIES: dict[str, ContentKind] = {
    "workflows": "workflow",
    "agents": "agent",
    "commands": "command",
    "rules": "rule",
}


class ContentSource(msgspec.Struct, frozen=True):
    """Where something was read: the file, the kind that its folder says, the side it is from."""

    file: str
    kind: ContentKind
    origin: ContentOrigin


class _ContentPart(msgspec.Struct, frozen=True):
    """One piece of a file: where in it, the lines of its fields, and which of them were written without quotes."""

    path: FieldPath
    lines: dict[FieldPath, int]
    unquoted_paths: set[FieldPath]


def parse_registry_items(
    value: Any, lines: FieldLines, unquoted_paths: Collection[FieldPath], source: ContentSource
) -> tuple[tuple[RegistryItem, ...], tuple[DocumentProblem, ...]]:
    """One piece of content, or a list of them."""
    is_list = isinstance(value, list)
    parts = (
        _split_content_parts(len(value) if is_list else 0, lines, unquoted_paths)
        if is_list
        else [_ContentPart((), dict(lines), set(unquoted_paths))]
    )
    results = [
        _parse_registry_item(entry, part, source)
        for entry, part in zip(value if is_list else [value], parts, strict=True)
    ]
    items = tuple(entry for entry in results if isinstance(entry, RegistryItem))
    return items, tuple(
        problem for entry in results if not isinstance(entry, RegistryItem) for problem in entry
    )


def _split_content_parts(
    count: int, lines: FieldLines, unquoted_paths: Collection[FieldPath]
) -> list[_ContentPart]:
    parts: dict[FieldPath, _ContentPart] = {(n,): _ContentPart((n,), {}, set()) for n in range(count)}
    for path, line in lines.items():
        if path[:1] in parts:
            parts[path[:1]].lines[path[1:]] = line
    for path in unquoted_paths:
        parts[path[:1]].unquoted_paths.add(path[1:])
    return list(parts.values())


def _parse_registry_item(
    value: Any, part: _ContentPart, source: ContentSource
) -> RegistryItem | tuple[DocumentProblem, ...]:
    raw = convert_unquoted_scalars(value, planning_document_schema(source.kind), part.unquoted_paths)
    problems = find_schema_problems(raw, part.lines, source.kind)
    if not problems:
        return RegistryItem(
            msgspec.convert(raw, CONTENT_TYPES[source.kind]), source.origin, source.file, part.lines
        )
    return tuple(_add_problem_source(p, value, part, source) for p in problems)


def _add_problem_source(
    problem: DocumentProblem, value: Any, part: _ContentPart, source: ContentSource
) -> DocumentProblem:
    """The same with the file, and with the id where there is one."""
    id_ = value.get("id") if isinstance(value, dict) else None
    name = f"{clip_text(id_, 80)}." if isinstance(id_, str) else "".join(f"[{n}]." for n in part.path)
    return msgspec.structs.replace(problem, field=clip_text(f"{source.file}: {name}{problem.field}", 400))
