"""Where a name leads on this disk: whether it stays in its folder, and whether a file there is what it seems.

**Invariant:** nothing is opened for reading or writing, and no link is followed to find out.
"""

import os
import stat
from contextlib import suppress

from steersman.judges.artifact_names import collision


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
