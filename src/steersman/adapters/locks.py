"""One lock a run, by flock: it dies with its process, however that ends."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from steersman.errors import StoreFull

GLANCE = 0.002  # seconds: whoever asks for the owner shares the lock for an instant
LOOKED_AT = 10.0  # seconds; on a busy machine an instant may be long
ENDING = 0.02  # seconds for what a killed owner was just starting, which has its lock until it is executed


class FileLock:
    """A lock that is ours."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            fcntl.flock(
                self._fd, fcntl.LOCK_UN
            )  # closing is not enough while a child is between fork and exec
            os.close(self._fd)
            self._fd = -1


class FileLocks:
    """Implements ports.ownership.Locks in a directory; `kind` is shown to whoever finds a run taken."""

    def __init__(self, folder: Path, kind: str = "driver") -> None:
        self._folder, self._kind = folder, kind

    def acquire(self, run: str, *, take_over: bool = False) -> FileLock | None:
        """The lock, or None. Taking over replaces the file: the old owner keeps a lock that no one looks at any more."""
        path = self._folder / f"{run}.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if take_over:
                path.unlink(missing_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreFull(
                f"{path} cannot be written ({error.strerror}): free some room there, or make its disk writable"
            ) from error
        if not _locked(fd) or not _still(fd, path):
            os.close(fd)
            return None
        os.ftruncate(fd, 0)
        with suppress(OSError):  # a full disk: the lock holds without a name in it
            os.pwrite(fd, f"{self._kind} {os.getpid()}".encode(), 0)
        return FileLock(fd)

    def owner(self, run: str) -> str | None:
        """Who holds the lock now."""
        try:
            fd = os.open(self._folder / f"{run}.lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            told = os.pread(fd, 100, 0).decode("utf-8", "replace").split()
            return f"{told[0]} (process {told[1]})" if len(told) == 2 else "another process"
        finally:
            os.close(fd)
        return None


def _locked(fd: int) -> bool:
    """Takes the lock unless another owns it; one that is only shared is being looked at, and is waited for."""
    began = time.monotonic()
    while not _try_flock(fd, fcntl.LOCK_EX):
        shared = _try_flock(fd, fcntl.LOCK_SH)
        if time.monotonic() - began > (LOOKED_AT if shared else ENDING):
            return False
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(GLANCE)
    return True


def _try_flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _still(fd: int, path: Path) -> bool:
    """Is this the file that others look at? It may have been replaced while we took it."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
