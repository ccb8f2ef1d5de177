"""New references and a new checksum in the text of an intent, the rest of it left as its author wrote it.

**Invariant:** an edit of text only: whether the result reads as it should is for whoever reads it again.
"""

import re
from collections.abc import Iterator
from typing import Any

from steersman.ports.documents import ParsedDocument

_CHECKSUM_LINE = re.compile(r"""(\s*["']?checksum["']?\s*:)\s*[^\s#]*(\s+#.*|\s*)""")
_LIST_ITEM_LINE = re.compile(r"(\s*-\s+)\S.*")
_LEADING_SPACE = re.compile(r"\s*")

LineEdit = tuple[int, int, list[str]]  # from which line, how many of them, what instead


def reseal_intent_text(original: ParsedDocument, value: Any) -> str:
    """The YAML text with the references and the checksum of `value`, as far as both stand on lines of their own."""
    lines = original.text.split("\n")
    edits = (*_checksum_edits(lines, original, value), *_evidence_ref_edits(lines, original, value))
    for start, count, replacement in sorted(
        edits, reverse=True
    ):  # from below, so that lines keep their numbers
        lines[start : start + count] = replacement
    return "\n".join(lines)


def _checksum_edits(lines: list[str], original: ParsedDocument, value: Any) -> Iterator[LineEdit]:
    checksum = value["audit"]["checksum"]
    line_number = original.lines.get(("audit", "checksum"))
    if line_number is not None:
        match = _CHECKSUM_LINE.fullmatch(lines[line_number - 1])
        if match:
            yield line_number - 1, 1, [f"{match[1]} {checksum}{match[2]}"]
        return
    members = [number for path, number in original.lines.items() if len(path) == 2 and path[0] == "audit"]
    if members:
        first_member = min(members) - 1
        indent = _LEADING_SPACE.match(lines[first_member])
        yield (
            first_member,
            0,
            [f"{indent[0] if indent else ''}checksum: {checksum}{_line_ending(lines[first_member])}"],
        )


def _evidence_ref_edits(lines: list[str], original: ParsedDocument, value: Any) -> Iterator[LineEdit]:
    old, new = original.value["evidence_refs"], value["evidence_refs"]
    ref_lines = [original.lines[("evidence_refs", n)] - 1 for n in range(len(old))]
    yield from ((line, 1, []) for line, ref in zip(ref_lines, old, strict=True) if ref not in new)
    item = _LIST_ITEM_LINE.fullmatch(lines[ref_lines[-1]]) if ref_lines else None
    if item:
        end = _line_ending(lines[ref_lines[-1]])
        yield ref_lines[-1] + 1, 0, [f"{item[1]}{ref}{end}" for ref in new if ref not in old]


def _line_ending(line: str) -> str:
    """What a line of this file ends with before its newline."""
    return "\r" if line.endswith("\r") else ""
