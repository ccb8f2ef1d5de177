"""Folders for one sandbox: made for it, gone after it, also those that a killed steersman has left.

**Invariant:** only folders of this user, of this name, old enough and without a lock are removed; links are not followed.
"""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from steersman.adapters.storage.remove_directory import delete_path
from steersman.errors import WorkspaceError

SCRATCH_PREFIX = "steersman-box-"
STALE_SCRATCH_SECONDS = 60.0  # seconds: a younger one may not have its lock yet
_MAX_PARENT_LENGTH = 70  # characters of the place: a socket's path inside has to stay short


@contextmanager
def scratch_directory() -> Iterator[str]:
    """A private directory that is removed afterwards, whatever was done to it."""
    parent = tempfile.gettempdir() if len(tempfile.gettempdir()) < _MAX_PARENT_LENGTH else "/tmp"  # noqa: S108  a folder of ours in it
    _remove_stale_scratch(parent)
    directory = tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=parent)
    lock_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX)
        yield directory
    finally:
        os.close(lock_fd)
        _remove_scratch(directory)


def _remove_stale_scratch(parent: str) -> None:
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(SCRATCH_PREFIX) and _is_stale_scratch(entry):
                _remove_scratch(entry.path)


def _is_stale_scratch(entry: os.DirEntry[str]) -> bool:
    """Whether a process that has ended left this one here."""
    try:
        status = entry.stat(follow_symlinks=False)
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.getuid()
            or time.time() - status.st_mtime < STALE_SCRATCH_SECONDS
        ):
            return False
        lock_fd = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock_fd)
    return True


def _remove_scratch(directory: str) -> None:
    with suppress(WorkspaceError):  # what stays is a copy that nothing reads
        delete_path(Path(directory))
