"""How much a program in a sandbox may write: to disk by a limit, to the memory file systems of its sandbox by their size.

Once a second the free space is asked, which costs next to nothing. Other programs use the same disk, so the files
written since are counted when it fell by more than the limit, and now and then in any case. **Invariant:** measures; deletes nothing that
is to be kept, and ends nothing itself.
"""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from steersman.adapters.storage.durable_files import delete_path
from steersman.errors import WorkspaceError

MIN_FREE_DISK_BYTES = 1 << 30  # bytes that a program leaves free on the disk, or half of what it found
FILE_TIME_CLOCK = 5  # CLOCK_REALTIME_COARSE of Linux: a file has its dates from it
_FULL_SHARE = 0.02  # the share of a memory file system that is left when it counts as full


class SpaceLimit:
    """The limit of one command: `places` are its directories on disk, `memory` the memory file systems of its sandbox."""

    def __init__(
        self, places: Iterable[str], limit: int, memory: tuple[str, ...] = (), every: float = 10
    ) -> None:
        self._places = tuple(dict.fromkeys(path for path in places if os.path.isdir(path)))
        self._limit, self._memory = limit, memory
        self._began = time.clock_gettime_ns(FILE_TIME_CLOCK)
        self._every, self._due = every, time.monotonic() + every
        self._free = {os.stat(path).st_dev: (path, _free_bytes(path)) for path in self._places}

    def find_excess(self, pid: int = 0) -> str:
        """Why the program has to end, or nothing; `pid` is its first process, through which its sandbox can be seen."""
        return self._full_memory(pid) or self._full_disk()

    def delete_written(self, keep: Collection[str] = ()) -> None:
        """Deletes the files that were written since the beginning, but for those in `keep`."""
        for path, _ in _list_written_files(self._places, self._began):
            if path not in keep:
                delete_path(Path(path))

    def _full_memory(self, pid: int) -> str:
        for path in self._memory if pid else ():
            try:
                usage = os.statvfs(f"/proc/{pid}/root{path}")
            except OSError:  # it has just ended
                return ""
            if usage.f_blocks and usage.f_bavail < usage.f_blocks * _FULL_SHARE:
                size = _format_size(usage.f_blocks * usage.f_frsize)
                return f"it filled {path} of its sandbox: {size}, a part of [sandbox] memory_gb"
        return ""

    def _full_disk(self) -> str:
        free_now = {device: _free_bytes(path) for device, (path, _) in self._free.items()}
        shrunk_by = sum(max(free - free_now[device], 0) for device, (_, free) in self._free.items())
        is_short = any(
            free_now[device] < min(MIN_FREE_DISK_BYTES, free // 2) for device, (_, free) in self._free.items()
        )
        if (
            shrunk_by >= self._limit or is_short or time.monotonic() >= self._due
        ) and self._count_written_bytes() >= self._limit:
            return f"it wrote more than {_format_size(self._limit)} to disk: [sandbox] disk_gb"
        return "it left hardly any space on the disk" if is_short else ""

    def _count_written_bytes(self) -> int:
        """Bytes of files that were written; takes a twentieth of the time at most."""
        began = time.monotonic()
        size = sum(size for _, size in _list_written_files(self._places, self._began))
        elapsed = time.monotonic() - began
        self._due = began + elapsed + max(self._every, 20 * elapsed)
        return size


def _free_bytes(path: str) -> int:
    usage = os.statvfs(path)
    return usage.f_bavail * usage.f_frsize


def _list_written_files(places: Iterable[str], since: int) -> Iterator[tuple[str, int]]:
    """Each plain file below the places that was written since, and the bytes it takes on disk."""
    pending = list(places)
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                pending.append(entry.path)
            elif stat.S_ISREG(status.st_mode) and status.st_ctime_ns >= since:
                yield entry.path, status.st_blocks * 512


def _format_size(size: int) -> str:
    return f"{size / (1 << 30):.3g} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"


# ── scratch ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Folders for one sandbox: made for it, gone after it, also those that a killed steersman has left.
#
# **Invariant:** only folders of this user, of this name, old enough and without a lock are removed; links are not followed.


SCRATCH_PREFIX = "steersman-box-"
STALE_SCRATCH_SECONDS = 60.0  # seconds: a younger one may not have its lock yet
_MAX_PARENT_LENGTH = 70  # characters of the place: a socket's path inside has to stay short


@contextmanager
def scratch_directory() -> Iterator[str]:
    """A private directory that is removed afterwards, whatever was done to it."""
    parent = tempfile.gettempdir() if len(tempfile.gettempdir()) < _MAX_PARENT_LENGTH else "/tmp"  # noqa: S108  steersman makes a folder in it
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
