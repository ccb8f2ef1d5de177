"""Judges names of files in a plan: relative, inside the project, not reserved, and what a name covers.

**Invariant:** only names are judged, and no file is opened. A name has one spelling. Every caller that accepts a name of a
file asks this module: for an intent, an answer, or the bounds of a plan.
"""

import re
import unicodedata
from collections.abc import Iterable

WHOLE_PROJECT_TARGETS = (".",)  # the whole project

_PATH_SEPARATORS = re.compile(r"[/\\]")
_GIT_DIRECTORY_NAMES = frozenset({".git", "git~1"})  # the second is how some file systems shorten the first
_STEERSMAN_DIRECTORY = ".steersman"
_STEERSMAN_FILES = frozenset({"steersman.toml", "steersman.db"})


def is_outside_project(name: str) -> bool:
    """Whether a name leads out of the project, or is none."""
    parts = [part.strip() for part in _PATH_SEPARATORS.split(name)]
    return (
        not name.strip()
        or not parts[0]
        or parts[0].startswith("~")
        or ":" in parts[0]
        or ".." in parts
        or "\0" in name
    )


def reserved_path_reason(name: str) -> str:
    """Why a plan may not write a file with this name: it belongs to git or steersman. Empty where it belongs to neither."""
    parts = [part for part in map(_fold_path_part, _PATH_SEPARATORS.split(name)) if part]
    if not _GIT_DIRECTORY_NAMES.isdisjoint(parts):
        return "is in a folder that is git's, not the repository's"
    if _STEERSMAN_DIRECTORY in parts:
        return "is in a folder that is steersman's, not the repository's"
    return "is steersman's own" if parts and parts[0] in _STEERSMAN_FILES else ""


def outside_plan_reason(name: str, within: Iterable[str] = WHOLE_PROJECT_TARGETS) -> str:
    """Why a plan that stays within some files and directories may not have this name; empty where it may."""
    if is_outside_project(name):
        return "leaves the repository"
    if reason := reserved_path_reason(name):
        return reason
    within = tuple(within)
    return (
        ""
        if any(covers_path(top, strip_directory_mark(name)) for top in within)
        else f"lies outside of {describe_region(within)}"
    )


def path_spelling_problem(name: str) -> str:
    """Why a name says something else than it seems to: it is written otherwise than everybody else writes it, or has a
    `*`, which stands for nothing but a whole directory at the end."""
    if "*" in strip_directory_mark(name):
        return "has a `*` that stands for no file: name files, or a directory with a slash at its end"
    normal_name = normalize_plan_path(name)
    return f"is another way to write {normal_name}: write it so" if name != normal_name else ""


def normalize_plan_path(name: str) -> str:
    """The one way to write a name: slashes between its parts, none of them empty or a dot; `.` is the whole project."""
    *above, last = _PATH_SEPARATORS.split(name.strip())
    parts = [part for part in above if part not in ("", ".")]
    return "/".join((*parts, "" if last == "." else last)) or "."


def module_name_problem(name: str) -> str:
    """Why a name is no module's, dotted or slashed; empty where it may be one."""
    parts = _PATH_SEPARATORS.split(name.strip())
    if ".." in parts or not parts[0] or parts[0].startswith("~"):
        return "leaves the repository"
    return "" if any(part.strip(". ") for part in parts) else "names no module"


def describe_region(within: Iterable[str]) -> str:
    """Some files and directories in words."""
    names = tuple(within)
    covers_all = any(covers_path(top, ".") for top in names)
    return "the project" if covers_all else ", ".join(names) or "nothing"


def intersect_paths(root: str, paths: Iterable[str]) -> tuple[str, ...]:
    """What a directory and some files and directories have in common, sorted."""
    shared = {
        path if covers_path(root, strip_directory_mark(path)) else root
        for path in paths
        if _overlaps_path(root, path)
    }
    return tuple(sorted(shared))


def _overlaps_path(path: str, other_path: str) -> bool:
    return covers_path(path, strip_directory_mark(other_path)) or covers_path(
        other_path, strip_directory_mark(path)
    )


def covers_path(target: str, file: str) -> bool:
    """Whether a target is this file or a directory above it; `**` at the end says the same as the slash before it."""
    top = strip_directory_mark(target)
    return top in ("", ".") or file == top or file.startswith(f"{top}/")


def strip_directory_mark(target: str) -> str:
    """A target without what only says that it is a directory."""
    return target.strip().removesuffix("**").rstrip("/").removeprefix("./")


def is_whole_project(target: str) -> bool:
    """Whether a target is everything there is, however it is written."""
    return all(part in ("", ".", "**") for part in _PATH_SEPARATORS.split(target.strip()))


def is_directory_target(target: str, files: Iterable[str] = ()) -> bool:
    """Whether a target is a directory: it says so, or one of some known files lies in it."""
    last = _PATH_SEPARATORS.split(target.strip())[-1]
    top = strip_directory_mark(target)
    return last in ("", ".", "**") or any(file.startswith(f"{top}/") for file in files)


def is_in_module(module: str, file: str) -> bool:
    """Whether a file belongs to a module: its dotted or slashed name are directories on the way, or the file itself."""
    module_parts = [part for part in module.strip().replace(".", "/").split("/") if part]
    parts = file.split("/")
    parts[-1] = parts[-1].partition(".")[0]
    offsets = range(len(parts) - len(module_parts) + 1)
    return bool(module_parts) and any(parts[n : n + len(module_parts)] == module_parts for n in offsets)


def _fold_path_part(part: str) -> str:
    """A part of a name as file systems may take it: no case, nothing unseen, no stream, no dots or spaces at its end."""
    visible = "".join(c for c in unicodedata.normalize("NFKC", part) if unicodedata.category(c)[0] != "C")
    return visible.casefold().partition(":")[0].strip().rstrip(". ")
