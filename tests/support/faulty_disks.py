"""Disks under SQLite: one that counts its syncs, one that fails when it is told to.

    disk = CountingVFS()                    disk = FailingVFS()
    SqliteJournal(path, vfs=disk.name)      disk.fail("sync", 3, "io")

**Invariant:** what is not counted or failed is done by the system's own VFS; nothing is simulated beyond that.
"""

import time
from collections import Counter
from itertools import count
from typing import Any, Literal

import apsw

DiskOperation = Literal["write", "sync"]
DiskFailure = Literal["full", "io", "readonly"]
DISK_ERRORS = {"full": apsw.FullError, "io": apsw.IOError, "readonly": apsw.ReadOnlyError}
_vfs_numbers = count(1)


class _WatchedFile(apsw.VFSFile):
    """A file of ours: tells its disk before it writes or syncs."""

    def __init__(self, disk: "_WatchedVFS", name: Any, flags: Any) -> None:
        super().__init__(disk.below, name, flags)
        self._disk, self._kind = disk, _open_file_kind(flags[0])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  SQLite's name
        self._disk.before("write", self._kind)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  the same
        self._disk.before("sync", self._kind)
        super().xSync(flags)


class _WatchedVFS(apsw.VFS):
    """Sits between SQLite and the system's VFS under a name of its own."""

    def __init__(self) -> None:
        self.name = f"steersman-testing-{next(_vfs_numbers)}"
        self.below = apsw.vfs_names()[0]
        super().__init__(self.name, self.below)

    def xOpen(self, name: Any, flags: Any) -> _WatchedFile:  # noqa: N802  SQLite's name
        return _WatchedFile(self, name, flags)

    def before(self, deed: DiskOperation, kind: str) -> None:
        """Called before each write and sync of a file: `kind` is main, wal or other."""
        raise NotImplementedError


class CountingVFS(_WatchedVFS):
    """Counts: `deeds` holds (deed, kind of file) → how often; each sync takes at least `sync_seconds`."""

    def __init__(self, sync_seconds: float = 0.0) -> None:
        super().__init__()
        self.deeds: Counter[tuple[str, str]] = Counter()
        self._sync_seconds = sync_seconds

    def before(self, deed: DiskOperation, kind: str) -> None:
        self.deeds[deed, kind] += 1
        if deed == "sync" and self._sync_seconds:
            time.sleep(self._sync_seconds)

    @property
    def syncs(self) -> int:
        """How often anything was synced."""
        return sum(n for (deed, _), n in self.deeds.items() if deed == "sync")


class FailingVFS(CountingVFS):
    """Works until the nth deed of a kind, which fails; so does every later one, until `mend` is called."""

    def __init__(self) -> None:
        super().__init__()
        self._deed: DiskOperation | None = None
        self._left = 0
        self._error: type[Exception] = apsw.IOError
        self.failed = 0

    def fail(self, operation: DiskOperation, nth: int, failure: DiskFailure, *, once: bool = False) -> None:
        """The nth deed from now fails, and unless it is only `once`, those after it too."""
        self._deed, self._left, self._error, self._once = operation, nth, DISK_ERRORS[failure], once

    def mend(self) -> None:
        """The disk is in order again."""
        self._deed = None

    def before(self, deed: DiskOperation, kind: str) -> None:
        super().before(deed, kind)
        if deed != self._deed:
            return
        self._left -= 1
        if self._left <= 0:
            self.failed += 1
            if self._once:
                self._deed = None
            raise self._error("the disk says no")


def _open_file_kind(flags: int) -> str:
    if flags & apsw.SQLITE_OPEN_MAIN_DB:
        return "main"
    return "wal" if flags & apsw.SQLITE_OPEN_WAL else "other"
