"""Where in a document something is wrong, as people find it: field and line.

**Invariant:** a problem always fits its contract, whatever the document holds.
"""

from collections.abc import Mapping
from types import MappingProxyType

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.judges.replies.schema_problems import render_field_path
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
