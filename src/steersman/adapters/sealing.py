"""New references and a new checksum in the text of an intent, the rest of it left as its author wrote it.

**Invariant:** an edit of text only: whether the result reads as it should is for whoever reads it again.
"""

import re
from collections.abc import Iterator
from typing import Any

from steersman.ports.documents import Written

_CHECKSUM = re.compile(r"""(\s*["']?checksum["']?\s*:)\s*[^\s#]*(\s+#.*|\s*)""")
_ITEM = re.compile(r"(\s*-\s+)\S.*")
_INDENT = re.compile(r"\s*")

Edit = tuple[int, int, list[str]]  # from which line, how many of them, what instead


def resealed(was: Written, value: Any) -> str:
    """The YAML text with the references and the checksum of `value`, as far as both stand on lines of their own."""
    lines = was.text.split("\n")
    edits = (*_checksum(lines, was, value), *_refs(lines, was, value))
    for first, count, instead in sorted(edits, reverse=True):  # from below, so that lines keep their numbers
        lines[first : first + count] = instead
    return "\n".join(lines)


def _checksum(lines: list[str], was: Written, value: Any) -> Iterator[Edit]:
    now = value["audit"]["checksum"]
    at = was.lines.get(("audit", "checksum"))
    if at is not None:
        found = _CHECKSUM.fullmatch(lines[at - 1])
        if found:
            yield at - 1, 1, [f"{found[1]} {now}{found[2]}"]
        return
    members = [n for path, n in was.lines.items() if len(path) == 2 and path[0] == "audit"]
    if members:
        first = min(members) - 1
        indent = _INDENT.match(lines[first])
        yield first, 0, [f"{indent[0] if indent else ''}checksum: {now}{_end(lines[first])}"]


def _refs(lines: list[str], was: Written, value: Any) -> Iterator[Edit]:
    old, new = was.value["evidence_refs"], value["evidence_refs"]
    at = [was.lines[("evidence_refs", n)] - 1 for n in range(len(old))]
    yield from ((line, 1, []) for line, ref in zip(at, old, strict=True) if ref not in new)
    item = _ITEM.fullmatch(lines[at[-1]]) if at else None
    if item:
        end = _end(lines[at[-1]])
        yield at[-1] + 1, 0, [f"{item[1]}{ref}{end}" for ref in new if ref not in old]


def _end(line: str) -> str:
    """What a line of this file ends with before its newline."""
    return "\r" if line.endswith("\r") else ""
