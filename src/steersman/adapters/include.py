"""Copies files that git does not keep (`.env.test`, local settings) from the user's checkout into a working tree.

Which ones, `[worktree] include` of steersman.toml and `.worktreeinclude` of that checkout say.
**Invariant:** nothing is read from outside the checkout or written outside the tree, whatever links say; a file that
is already there is never replaced; `.git` is never touched.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from steersman.errors import UserError

LISTED = ".worktreeinclude"
_LONGEST = 64 << 10


def checked_patterns(patterns: tuple[str, ...], where: str = "[worktree] include") -> tuple[str, ...]:
    """The patterns, if each is a relative glob that stays inside the repository."""
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if not parts or pattern.startswith("/") or ".." in parts or "\0" in pattern:
            raise UserError(f"{where}: {pattern!r} has to be a relative path or glob inside the repository")
    return patterns


def listed_patterns(top: Path) -> tuple[str, ...]:
    """The patterns of a checkout's own list: one a line, `#` begins a comment, a leading slash means the top."""
    try:
        fd = os.open(top / LISTED, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ()
    with open(fd, "rb") as file:
        words = file.read(_LONGEST) if os.path.isfile(fd) else b""
    lines = [line.strip() for line in words.decode("utf-8", "replace").splitlines()]
    wanted = tuple(line.removeprefix("/") for line in lines if line and not line.startswith("#"))
    if refused := next((line for line in wanted if line.startswith("!")), None):
        raise UserError(
            f"{LISTED}: {refused!r} takes something out again, which is not done here: take the line out"
        )
    return checked_patterns(wanted, LISTED)


def copy_included(top: Path, tree: Path, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Copies what matches and is not there yet; returns the copied paths, sorted."""
    top, tree = top.resolve(), tree.resolve()
    found = {path for pattern in patterns for match in top.glob(pattern) for path in _files(match)}
    names = sorted(path.relative_to(top).as_posix() for path in found)
    return tuple(name for name in names if _copied(top, tree, name))


def _files(match: Path) -> Iterator[Path]:
    """The match itself, or everything below it when it is a directory."""
    if not match.is_dir() or match.is_symlink():
        yield match
        return
    for directory, _, names in os.walk(match, followlinks=False):
        yield from (Path(directory, name) for name in names)


def _copied(top: Path, tree: Path, name: str) -> bool:
    source, goal = (top / name).resolve(), tree / name
    inside = source.is_relative_to(top) and source.is_file() and ".git" not in source.relative_to(top).parts
    # A directory of the tree may be a link that leads out of it.
    if not inside or os.path.lexists(goal) or not goal.parent.resolve().is_relative_to(tree):
        return False
    goal.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, goal)
    return True
