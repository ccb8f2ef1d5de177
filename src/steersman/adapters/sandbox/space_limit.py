"""How much a program in a sandbox may write: to disk by a limit, to the memory file systems of its sandbox by their size.

Once a second the free space is asked, which costs next to nothing. Other programs use the same disk, so the files
written since are counted when it fell by more than the limit, and now and then in any case. **Invariant:** measures; deletes nothing that
is to be kept, and ends nothing itself.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from steersman.adapters.storage.remove_directory import delete_path

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
