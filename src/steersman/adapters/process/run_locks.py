"""The lock file that keeps two drivers of one run apart. The kernel drops the lock (flock) when its process ends."""

import contextlib
import fcntl
import os
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from steersman.errors import StoreFull

RUN_LOCK_POLL_SECONDS = 0.002  # seconds: a process that asks for the owner shares the lock for an instant
SHARED_LOCK_SECONDS = 10.0  # seconds; on a busy machine an instant may be long
# Seconds for what a killed owner was just starting, which has its lock until it is executed.
DYING_OWNER_SECONDS = 0.02


class HeldFileLock:
    """A lock that is ours."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            # Closing is not enough while a child is between fork and exec.
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = -1


class FileLocks:
    """Implements ports.ownership.Locks with one file for each run; another command shows `kind` as the owner."""

    def __init__(self, directory: Path, kind: str = "driver") -> None:
        self._folder, self._kind = directory, kind

    def acquire(self, run: str, *, take_over: bool = False) -> HeldFileLock | None:
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
        if not _take_run_lock(fd) or not _is_current_lock_file(fd, path):
            os.close(fd)
            return None
        os.ftruncate(fd, 0)
        with suppress(OSError):  # a full disk: the lock holds without a name in it
            os.pwrite(fd, f"{self._kind} {os.getpid()}".encode(), 0)
        return HeldFileLock(fd)

    def owner(self, run: str) -> str | None:
        """Who holds the lock now."""
        try:
            fd = os.open(self._folder / f"{run}.lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            words = os.pread(fd, 100, 0).decode("utf-8", "replace").split()
            return f"{words[0]} (process {words[1]})" if len(words) == 2 else "another process"
        finally:
            os.close(fd)
        return None


def _take_run_lock(fd: int) -> bool:
    """Takes the lock unless another owns it; one that is only shared is being looked at, and is waited for."""
    began = time.monotonic()
    while not _try_flock(fd, fcntl.LOCK_EX):
        is_shared = _try_flock(fd, fcntl.LOCK_SH)
        if time.monotonic() - began > (SHARED_LOCK_SECONDS if is_shared else DYING_OWNER_SECONDS):
            return False
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(RUN_LOCK_POLL_SECONDS)
    return True


def _try_flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_current_lock_file(fd: int, path: Path) -> bool:
    """Is this the file that others look at? It may have been replaced while we took it."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


# ── wakeup ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Wake-ups between processes: a datagram to every listener's socket. A lost one costs a poll interval, nothing else.


class WakeupSockets:
    """Implements ports.ownership.DriverWakeup; `listen` is for drivers."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory

    def notify(self) -> None:
        try:
            listeners = list(self._folder.iterdir())
        except OSError:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            for path in listeners:
                try:
                    sock.sendto(b"!", str(path))
                except ConnectionRefusedError:
                    path.unlink(missing_ok=True)  # its process is gone
                except OSError:
                    continue  # full: it is awake already

    def listen(self) -> socket.socket | None:
        """A socket that becomes readable at a wake-up; None where the path is too long for one."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{os.getpid()}.{os.urandom(3).hex()}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sock.setblocking(False)
        try:
            sock.bind(str(path))
        except OSError:
            sock.close()
            return None
        return sock

    def stop_listening(self, sock: socket.socket) -> None:
        """Stops listening."""
        path = sock.getsockname()
        sock.close()
        with contextlib.suppress(OSError):
            os.unlink(path)


# ── clock ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

# The system's clocks and its chance.


RUN_ID_CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: ids are read aloud


class SystemClock:
    """Implements ports.clock.Clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks(self) -> int:
        return time.monotonic_ns() // 1_000


class SystemChance:
    """Implements ports.clock.Chance."""

    def run_id(self) -> str:
        day = datetime.now(UTC).strftime("%y%m%d")
        return f"{day}-" + "".join(RUN_ID_CHARACTERS[b % 32] for b in os.urandom(6))

    def nonce(self) -> str:
        return os.urandom(12).hex()

    def key(self) -> bytes:
        return os.urandom(32)
