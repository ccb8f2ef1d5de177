"""One delivery at a time for a repository, whoever asks for it and from whichever state directory.

The lock is on a file in the directory that all checkouts of the repository share. Every git that is started under it
keeps the file open, so that the lock outlives a killed driver until its last git has ended.
**Invariant:** it is not held while a check runs or a forge is spoken to.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steersman.adapters.git.git_command import inherited_git_fds
from steersman.errors import WorkspaceError

DELIVERY_LOCK_NAME = "steersman-delivery.lock"
DELIVERY_LOCK_SECONDS = 300.0


@contextmanager
def hold_delivery_lock(common: Path) -> Iterator[None]:
    """Waits for its turn; WorkspaceError where another delivery does not end."""
    try:
        fd = os.open(common / DELIVERY_LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise WorkspaceError(
            f"{common / DELIVERY_LOCK_NAME} cannot be opened: {error}; put that right and try again"
        ) from error
    try:
        _wait_for_delivery_lock(fd, common)
        token = inherited_git_fds.set((*inherited_git_fds.get(), fd))
        try:
            yield
        finally:
            inherited_git_fds.reset(token)
    finally:
        os.close(fd)


def _wait_for_delivery_lock(fd: int, common: Path) -> None:
    deadline = time.monotonic() + DELIVERY_LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WorkspaceError(
                    f"another delivery into {common} has been at work for {DELIVERY_LOCK_SECONDS:.0f} s; try again when it has ended"
                ) from None
        time.sleep(0.05)
