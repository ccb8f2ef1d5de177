"""Names of files in a plan: relative, inside the project, and what one of them covers.

**Invariant:** names only; no file is ever looked at.
"""


def leaves(name: str) -> bool:
    """Whether a name leads out of the project, or is none."""
    parts = name.replace("\\", "/").split("/")
    return (
        name.startswith(("/", "\\", "~"))
        or ":" in parts[0]
        or ".." in parts
        or "\0" in name
        or not name.strip()
    )


def covers(target: str, file: str) -> bool:
    """Whether a target is this file or a directory above it; `**` at the end says the same as the slash before it."""
    top = plain(target)
    return top in ("", ".") or file == top or file.startswith(f"{top}/")


def plain(target: str) -> str:
    """A target without what only says that it is a directory."""
    return target.strip().removesuffix("**").rstrip("/").removeprefix("./")


def in_module(module: str, file: str) -> bool:
    """Whether a file belongs to a module: its dotted or slashed name are directories on the way, or the file itself."""
    wanted = [part for part in module.strip().replace(".", "/").split("/") if part]
    parts = file.split("/")
    parts[-1] = parts[-1].partition(".")[0]
    spots = range(len(parts) - len(wanted) + 1)
    return bool(wanted) and any(parts[n : n + len(wanted)] == wanted for n in spots)
