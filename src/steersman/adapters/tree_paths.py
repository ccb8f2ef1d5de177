"""Where a name leads on this disk: whether it stays in its folder, and whether a file there is what it seems.

**Invariant:** nothing is opened for reading or writing, and no link is followed to find out.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase

from steersman.judges.artifact_names import collision
from steersman.judges.command_grammar import Reach
from steersman.judges.secret_names import keeps_secrets
from steersman.judges.value_kinds import WILDCARDS

MOST = 20_000  # names below the folders that a command searches


class TooManyError(Exception):
    """More names than are looked at."""


def out_of_bounds(root: str, reach: Reach, *, running: bool) -> str | None:
    """Why a command may not touch what it names here, or None; what has to be there is asked for when it is `running`."""
    try:
        return next(_troubles(root, reach, running=running), None)
    except TooManyError:
        return f"it looks at more than {MOST} files: name a folder with fewer"


def _troubles(root: str, reach: Reach, *, running: bool) -> Iterator[str]:
    top = os.path.realpath(root)
    for path in reach.paths:
        if (trouble := leads_out(root, path)) is not None:
            yield trouble
        real = os.path.realpath(os.path.join(top, path))
        if os.path.isfile(real) and keeps_secrets(os.path.relpath(real, top)):
            yield f"{path!r} looks like a file that keeps secrets"
    for path in reach.there if running else ():
        if not any(
            os.path.exists(os.path.join(top, at, path + end)) for at in ("", "src") for end in ("", ".py")
        ):
            yield f"{path!r} is not in the tree, and would be looked for elsewhere"
    for glob in reach.globs:
        folder = WILDCARDS.split(glob, maxsplit=1)[0].rpartition("/")[0] or "."
        for name, is_link in _below(os.path.join(top, folder)):
            if is_link and (trouble := leads_out(root, f"{folder}/{name}")) is not None:
                yield trouble
            if keeps_secrets(name) and fnmatchcase(name.rpartition("/")[2], glob.rpartition("/")[2]):
                yield f"{glob!r} would open {name!r}, which looks like a file that keeps secrets"
    for folder in reach.searched:
        for name, is_link in _below(os.path.join(top, folder)):
            if not is_link and keeps_secrets(f"{folder}/{name}"):
                yield f"the search would read {name!r}, which looks like a file that keeps secrets: name folders without one"


def _below(top: str) -> Iterator[tuple[str, bool]]:
    """Every file and link below a folder, by its name there; git's own folders left out."""
    seen, left = 0, [""]
    while left:
        within = left.pop()
        try:
            entries = list(os.scandir(os.path.join(top, within)))
        except OSError:  # no folder, or none that the command could read either
            continue
        seen += len(entries)
        if seen > MOST:
            raise TooManyError
        for entry in entries:
            name = f"{within}/{entry.name}".removeprefix("/")
            if not entry.is_dir(follow_symlinks=False):
                yield name, entry.is_symlink()
            elif entry.name != ".git":
                left.append(name)


def leads_out(root: str, path: str) -> str | None:
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


def cannot_hold(root: str, name: str) -> str | None:
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
            if (trouble := _in_the_way(fd, part, last=number == len(parts) - 1)) is not None:
                return trouble
            inner = _into(fd, part)
            if inner is None:
                return None
            os.close(fd)
            fd = inner
    finally:
        os.close(fd)
    return None


def _in_the_way(fd: int, part: str, *, last: bool) -> str | None:
    other = collision(part, os.listdir(fd))
    if other is not None:
        return f"{part!r} is {other!r} to some file systems, and that is there already"
    try:
        found = os.stat(part, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{part!r} cannot be looked at: {error}"
    if stat.S_ISLNK(found.st_mode):
        return f"{part!r} is a link"
    if last and stat.S_ISREG(found.st_mode):
        return f"{part!r} has a second name elsewhere (a hard link)" if found.st_nlink > 1 else None
    if last or not stat.S_ISDIR(found.st_mode):
        return f"{part!r} is not a {'file' if last else 'folder'}"
    return None


def _into(fd: int, part: str) -> int | None:
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    return None
