"""Names of files in the plan of a task: one spelling for each, and why one is not fit to be in a scope.

**Invariant:** names only; no file is ever looked at.
"""

from steersman.judges.planning.paths import leaves, why_kept
from steersman.judges.text import printable


def normal(name: str) -> str:
    """A name without what changes nothing (`./`, `//`, `**` at the end); a folder keeps its slash."""
    bare = name.removesuffix("**")
    parts = [part for part in bare.split("/") if part not in ("", ".")]
    folder = parts and (bare.endswith(("/", "/.")))
    return "/".join(parts) + ("/" if folder else "")


def unfit(name: str) -> str | None:
    """Why a scope may not have this name, or None."""
    if leaves(name):
        return "leads out of the repository"
    plain = normal(name)
    if not plain:
        return "is the whole repository: name files or folders"
    if printable(plain) != plain or "\n" in plain or "\t" in plain:
        return "has a control or invisible character"
    if "*" in plain or "?" in plain:
        return "is a pattern: name the file, or its folder with a slash at the end"
    return why_kept(plain) or None
