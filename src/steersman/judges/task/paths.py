"""Names of files in the plan of a task: one spelling for each, and why one is not fit to be in a scope.

**Invariant:** names only; no file is ever looked at.
"""

from steersman.judges.planning.paths import is_outside_project, reserved_path_reason
from steersman.judges.text import printable_text


def normalize_scope_path(name: str) -> str:
    """A name without what changes nothing (`./`, `//`, `**` at the end); a folder keeps its slash."""
    bare = name.removesuffix("**")
    parts = [part for part in bare.split("/") if part not in ("", ".")]
    is_directory = parts and (bare.endswith(("/", "/.")))
    return "/".join(parts) + ("/" if is_directory else "")


def find_scope_path_problem(name: str) -> str | None:
    """Why a scope may not have this name, or None."""
    if is_outside_project(name):
        return "leads out of the repository"
    plain = normalize_scope_path(name)
    if not plain:
        return "is the whole repository: name files or folders"
    if printable_text(plain) != plain or "\n" in plain or "\t" in plain:
        return "has a control or invisible character"
    if "*" in plain or "?" in plain:
        return "is a pattern: name the file, or its folder with a slash at the end"
    return reserved_path_reason(plain) or None
