"""Folders for one box: made for it, gone after it, also those that a killed steersman has left.

**Invariant:** only folders of this user, of this name, old enough and locked by nobody are swept; links are not followed.
"""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from steersman.adapters.removal import delete
from steersman.errors import WorkspaceError

NAME = "steersman-box-"
OLD = 60.0  # seconds: a younger one may not have its lock yet
_LONGEST = 70  # characters of the place: a socket's path inside has to stay short


@contextmanager
def scratch() -> Iterator[str]:
    """A folder that nobody else may enter; whatever is done to it, nothing of it stays."""
    place = tempfile.gettempdir() if len(tempfile.gettempdir()) < _LONGEST else "/tmp"  # noqa: S108  a folder of ours in it
    _sweep(place)
    folder = tempfile.mkdtemp(prefix=NAME, dir=place)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(held)
        _removed(folder)


def _sweep(place: str) -> None:
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(NAME) and _left(entry):
                _removed(entry.path)


def _left(entry: os.DirEntry[str]) -> bool:
    """Whether somebody who is gone has left this one here."""
    try:
        found = entry.stat(follow_symlinks=False)
        if (
            not stat.S_ISDIR(found.st_mode)
            or found.st_uid != os.getuid()
            or time.time() - found.st_mtime < OLD
        ):
            return False
        held = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def _removed(folder: str) -> None:
    with suppress(WorkspaceError):  # what stays is a copy that nobody reads
        delete(Path(folder))
