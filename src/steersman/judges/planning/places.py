"""Where in a document something is wrong, as people find it: field and line.

**Invariant:** a problem always fits its contract, whatever the document holds.
"""

from collections.abc import Mapping
from types import MappingProxyType

from steersman.contracts.planning.decisions import Problem
from steersman.judges.problems import field
from steersman.judges.text import clip, printable

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]  # of the file that a document was read from, from 1

NO_LINES: Lines = MappingProxyType({})


def problem(path: Path, message: str, fix: str = "", lines: Lines = NO_LINES) -> Problem:
    """One thing that is wrong, at the line of the nearest field that the file has."""
    return Problem(
        field=field_of(path),
        message=clip(printable(message), 1000),
        fix=clip(printable(fix), 1000),
        line=line_of(path, lines),
    )


def field_of(path: Path) -> str:
    """A path as people write it."""
    return clip(field(path) if path else "document", 400)


def line_of(path: Path, lines: Lines) -> int:
    """Of the field itself, else of the nearest one around it; 0 where no lines are known."""
    return next((lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in lines), 0)
