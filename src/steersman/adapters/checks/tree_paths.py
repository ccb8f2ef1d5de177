"""Where a name leads on this disk: whether it stays in its folder, and whether a file there is what it seems.

**Invariant:** nothing is opened for reading or writing, and no link is followed to find out.
"""

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from steersman.contracts.grammars import GrammarSet
from steersman.judges.artifact_names import find_name_collision
from steersman.judges.commands.tester_commands import CommandReach
from steersman.judges.commands.value_kinds import WILDCARD_PATTERN
from steersman.judges.redaction.named_secrets import is_secret_file_name

MAX_SEARCHED_NAMES = 20_000  # names below the folders that a command searches


class TooManyNamesError(Exception):
    """More names than are looked at."""


def find_reach_problem(root: str, reach: CommandReach, *, running: bool) -> str | None:
    """Why a command may not touch what it names here, or None; what has to be there is asked for when it is `running`."""
    try:
        return next(_find_reach_problems(root, reach, running=running), None)
    except TooManyNamesError:
        return f"it looks at more than {MAX_SEARCHED_NAMES} files: name a folder with fewer"


def _find_reach_problems(root: str, reach: CommandReach, *, running: bool) -> Iterator[str]:
    top = os.path.realpath(root)
    for path in reach.paths:
        if (problem := path_escape_problem(root, path)) is not None:
            yield problem
        real = os.path.realpath(os.path.join(top, path))
        if os.path.isfile(real) and is_secret_file_name(os.path.relpath(real, top)):
            yield f"{path!r} looks like a file that keeps secrets"
    for path in reach.there if running else ():
        if not any(
            os.path.exists(os.path.join(top, prefix, path + suffix))
            for prefix in ("", "src")
            for suffix in ("", ".py")
        ):
            yield f"{path!r} is not in the tree, and would be looked for elsewhere"
    for glob in reach.globs:
        directory = WILDCARD_PATTERN.split(glob, maxsplit=1)[0].rpartition("/")[0] or "."
        for name, is_link in _walk_tree_names(os.path.join(top, directory)):
            if is_link and (problem := path_escape_problem(root, f"{directory}/{name}")) is not None:
                yield problem
            if is_secret_file_name(name) and fnmatchcase(name.rpartition("/")[2], glob.rpartition("/")[2]):
                yield f"{glob!r} would open {name!r}, which looks like a file that keeps secrets"
    for directory in reach.searched:
        for name, is_link in _walk_tree_names(os.path.join(top, directory)):
            if not is_link and is_secret_file_name(f"{directory}/{name}"):
                yield f"the search would read {name!r}, which looks like a file that keeps secrets: name folders without one"


def _walk_tree_names(top: str) -> Iterator[tuple[str, bool]]:
    """Every file and link below a folder, by its name there; git's own folders left out."""
    scanned, pending = 0, [""]
    while pending:
        prefix = pending.pop()
        try:
            entries = list(os.scandir(os.path.join(top, prefix)))
        except OSError:  # no folder, or none that the command could read either
            continue
        scanned += len(entries)
        if scanned > MAX_SEARCHED_NAMES:
            raise TooManyNamesError
        for entry in entries:
            name = f"{prefix}/{entry.name}".removeprefix("/")
            if not entry.is_dir(follow_symlinks=False):
                yield name, entry.is_symlink()
            elif entry.name != ".git":
                pending.append(name)


def path_escape_problem(root: str, path: str) -> str | None:
    """Why a path that a command names leaves the tree, or is neither file nor folder; None where it stays or is absent."""
    top = os.path.realpath(root)
    try:
        real = os.path.realpath(os.path.join(top, path))
        if real != top and not real.startswith(top.rstrip("/") + "/"):
            return f"{path!r} leads out of the tree through a link"
        mode = os.lstat(real).st_mode
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{path!r} cannot be looked at: {error}"
    if stat.S_ISLNK(mode):
        return f"{path!r} is a link that leads nowhere"
    return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else f"{path!r} is neither a file nor a folder"


def new_file_problem(root: str, name: str) -> str | None:
    """Why a file of this name must not be written below a folder as it is now: links, devices, a second spelling."""
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None  # nothing is there yet that could be in the way
    except OSError as error:
        return f"{root!r} cannot be looked at: {error.strerror}"
    parts = name.split("/")
    try:
        for number, part in enumerate(parts):
            if (problem := _path_part_problem(fd, part, last=number == len(parts) - 1)) is not None:
                return problem
            inner_fd = _open_path_part(fd, part)
            if inner_fd is None:
                return None
            os.close(fd)
            fd = inner_fd
    finally:
        os.close(fd)
    return None


def _path_part_problem(fd: int, part: str, *, last: bool) -> str | None:
    colliding_name = find_name_collision(part, os.listdir(fd))
    if colliding_name is not None:
        return f"{part!r} is {colliding_name!r} to some file systems, and that is there already"
    try:
        status = os.stat(part, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{part!r} cannot be looked at: {error}"
    if stat.S_ISLNK(status.st_mode):
        return f"{part!r} is a link"
    if last and stat.S_ISREG(status.st_mode):
        return f"{part!r} has a second name elsewhere (a hard link)" if status.st_nlink > 1 else None
    if last or not stat.S_ISDIR(status.st_mode):
        return f"{part!r} is not a {'file' if last else 'folder'}"
    return None


def _open_path_part(fd: int, part: str) -> int | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    return None


# ── command grammars ────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads the command grammars that ship with steersman.


@cache
def load_command_grammars() -> Mapping[str, GrammarSet]:
    """The sets by name, each with its grammars, in the form that a project's own have."""
    text = Path(__file__).with_name("command_grammars.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, GrammarSet])
