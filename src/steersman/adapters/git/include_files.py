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

INCLUDE_FILE_NAME = ".worktreeinclude"
_MAX_INCLUDE_BYTES = 64 << 10


def check_include_patterns(patterns: tuple[str, ...], source: str = "[worktree] include") -> tuple[str, ...]:
    """The patterns, if each is a relative glob that stays inside the repository."""
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if not parts or pattern.startswith("/") or ".." in parts or "\0" in pattern:
            raise UserError(f"{source}: {pattern!r} has to be a relative path or glob inside the repository")
    return patterns


def read_include_patterns(top: Path) -> tuple[str, ...]:
    """The patterns of a checkout's own list: one a line, `#` begins a comment, a leading slash means the top."""
    try:
        fd = os.open(top / INCLUDE_FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ()
    with open(fd, "rb") as file:
        data = file.read(_MAX_INCLUDE_BYTES) if os.path.isfile(fd) else b""
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    patterns = tuple(line.removeprefix("/") for line in lines if line and not line.startswith("#"))
    if negated := next((line for line in patterns if line.startswith("!")), None):
        raise UserError(
            f"{INCLUDE_FILE_NAME}: {negated!r} takes something out again, which is not done here: take the line out"
        )
    return check_include_patterns(patterns, INCLUDE_FILE_NAME)


def copy_included_files(top: Path, tree: Path, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Copies what matches and is not there yet; returns the copied paths, sorted."""
    top, tree = top.resolve(), tree.resolve()
    paths = {
        path for pattern in patterns for match in top.glob(pattern) for path in _expand_include_match(match)
    }
    names = sorted(path.relative_to(top).as_posix() for path in paths)
    return tuple(name for name in names if _copy_included_file(top, tree, name))


def _expand_include_match(match: Path) -> Iterator[Path]:
    """The match itself, or everything below it when it is a directory."""
    if not match.is_dir() or match.is_symlink():
        yield match
        return
    for directory, _, names in os.walk(match, followlinks=False):
        yield from (Path(directory, name) for name in names)


def _copy_included_file(top: Path, tree: Path, name: str) -> bool:
    source, target = (top / name).resolve(), tree / name
    inside = source.is_relative_to(top) and source.is_file() and ".git" not in source.relative_to(top).parts
    # A directory of the tree may be a link that leads out of it.
    if not inside or os.path.lexists(target) or not target.parent.resolve().is_relative_to(tree):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    return True
