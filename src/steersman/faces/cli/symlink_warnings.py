"""Names in an intent that lead through links of the repository: what a plan names is not what would be changed."""

import os
from typing import TYPE_CHECKING, Any

from steersman.faces.cli.context import CommandContext

if TYPE_CHECKING:
    from steersman.contracts.planning.decisions import DocumentProblem
    from steersman.judges.planning.places import FieldLines


def find_symlinked_targets(
    context: CommandContext, value: Any, lines: "FieldLines | None" = None
) -> "list[DocumentProblem]":
    """Remarks on files in scope that are links, or that lie behind one."""
    from steersman.judges.planning.paths import outside_plan_reason, strip_directory_mark
    from steersman.judges.planning.places import NO_FIELD_LINES, document_problem, iter_texts_at

    remarks = []
    for path, name in iter_texts_at(value, "scope", "targets", "files"):
        link = (
            ""
            if outside_plan_reason(name)
            else _find_first_symlink(str(context.project_root), strip_directory_mark(name))
        )
        if link:
            remark_text = f"{name} leads through {link}, which is a link: no scan follows it, and what is changed may lie elsewhere"
            remarks.append(
                document_problem(path, remark_text, "name the files themselves", lines or NO_FIELD_LINES)
            )
    return remarks


def _find_first_symlink(root: str, name: str) -> str:
    """The first part of a name that is a link; empty where none is."""
    prefix = ""
    for part in name.split("/"):
        prefix = f"{prefix}/{part}" if prefix else part
        if os.path.islink(os.path.join(root, prefix)):
            return prefix
    return ""
