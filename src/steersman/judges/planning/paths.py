"""Names of files in a plan: relative, inside the project, nobody else's, and what one of them covers.

**Invariant:** names only; no file is ever looked at; there is one way to write a name. Whoever takes a name of a file
asks here: an intent, an answer, a plan's bounds.
"""

import re
import unicodedata
from collections.abc import Iterable

ANYWHERE = (".",)  # the whole project

_SEPARATORS = re.compile(r"[/\\]")
_GIT = frozenset({".git", "git~1"})  # the second is how some file systems shorten the first
_OURS = ".steersman"
_OURS_AT_THE_TOP = frozenset({"steersman.toml", "steersman.db"})


def leaves(name: str) -> bool:
    """Whether a name leads out of the project, or is none."""
    parts = [part.strip() for part in _SEPARATORS.split(name)]
    return (
        not name.strip()
        or not parts[0]
        or parts[0].startswith("~")
        or ":" in parts[0]
        or ".." in parts
        or "\0" in name
    )


def why_kept(name: str) -> str:
    """Why nobody but its owner writes what has this name: it is git's or steersman's; empty where it is neither."""
    parts = [part for part in map(_folded, _SEPARATORS.split(name)) if part]
    if not _GIT.isdisjoint(parts):
        return "is in a folder that is git's, not the repository's"
    if _OURS in parts:
        return "is in a folder that is steersman's, not the repository's"
    return "is steersman's own" if parts and parts[0] in _OURS_AT_THE_TOP else ""


def why_outside(name: str, within: Iterable[str] = ANYWHERE) -> str:
    """Why a plan that stays within some files and directories may not have this name; empty where it may."""
    if leaves(name):
        return "leaves the repository"
    if kept := why_kept(name):
        return kept
    within = tuple(within)
    return "" if any(covers(top, plain(name)) for top in within) else f"lies outside of {region(within)}"


def why_pattern(name: str) -> str:
    """Why a name says something else than it seems to: it is written otherwise than everybody else writes it, or has a
    `*`, which stands for nothing but a whole directory at the end."""
    if "*" in plain(name):
        return "has a `*` that stands for no file: name files, or a directory with a slash at its end"
    written = normal(name)
    return f"is another way to write {written}: write it so" if name != written else ""


def normal(name: str) -> str:
    """The one way to write a name: slashes between its parts, none of them empty or a dot; `.` is the whole project."""
    *above, last = _SEPARATORS.split(name.strip())
    parts = [part for part in above if part not in ("", ".")]
    return "/".join((*parts, "" if last == "." else last)) or "."


def why_no_module(name: str) -> str:
    """Why a name is no module's, dotted or slashed; empty where it may be one."""
    parts = _SEPARATORS.split(name.strip())
    if ".." in parts or not parts[0] or parts[0].startswith("~"):
        return "leaves the repository"
    return "" if any(part.strip(". ") for part in parts) else "names no module"


def region(within: Iterable[str]) -> str:
    """Some files and directories in words."""
    named = tuple(within)
    whole = any(covers(top, ".") for top in named)
    return "the project" if whole else ", ".join(named) or "nothing"


def common(root: str, paths: Iterable[str]) -> tuple[str, ...]:
    """What a directory and some files and directories have in common, sorted."""
    found = {path if covers(root, plain(path)) else root for path in paths if _meet(root, path)}
    return tuple(sorted(found))


def _meet(one: str, other: str) -> bool:
    return covers(one, plain(other)) or covers(other, plain(one))


def covers(target: str, file: str) -> bool:
    """Whether a target is this file or a directory above it; `**` at the end says the same as the slash before it."""
    top = plain(target)
    return top in ("", ".") or file == top or file.startswith(f"{top}/")


def plain(target: str) -> str:
    """A target without what only says that it is a directory."""
    return target.strip().removesuffix("**").rstrip("/").removeprefix("./")


def whole(target: str) -> bool:
    """Whether a target is everything there is, however it is written."""
    return all(part in ("", ".", "**") for part in _SEPARATORS.split(target.strip()))


def folder(target: str, files: Iterable[str] = ()) -> bool:
    """Whether a target is a directory: it says so, or one of some known files lies in it."""
    last = _SEPARATORS.split(target.strip())[-1]
    top = plain(target)
    return last in ("", ".", "**") or any(file.startswith(f"{top}/") for file in files)


def in_module(module: str, file: str) -> bool:
    """Whether a file belongs to a module: its dotted or slashed name are directories on the way, or the file itself."""
    wanted = [part for part in module.strip().replace(".", "/").split("/") if part]
    parts = file.split("/")
    parts[-1] = parts[-1].partition(".")[0]
    spots = range(len(parts) - len(wanted) + 1)
    return bool(wanted) and any(parts[n : n + len(wanted)] == wanted for n in spots)


def _folded(part: str) -> str:
    """A part of a name as file systems may take it: no case, nothing unseen, no stream, no dots or spaces at its end."""
    seen = "".join(c for c in unicodedata.normalize("NFKC", part) if unicodedata.category(c)[0] != "C")
    return seen.casefold().partition(":")[0].strip().rstrip(". ")
