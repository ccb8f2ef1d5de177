"""Opening a store: pragmas, schema, migrations, errors in our own words."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from steersman.adapters.sqlite.turns import PATIENCE
from steersman.errors import JournalError, StoreBroken, StoreFull

APPLICATION = 0x57EE5
SCHEMA = 2
GROWN = 2 << 20  # the WAL is grown once and then recycled: a commit's sync has no metadata to write


def open_store(
    path: str, busy: Callable[[int], bool], *, create: bool = True, reading: bool = False
) -> apsw.Connection:
    """A connection to the store, its schema current; raises JournalError with the next step."""
    new = not os.path.exists(path)
    if new and not create:
        raise StoreBroken(f"{path} is not there: nothing has been run here yet; start with `steersman run`")
    with told(path):
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        db = apsw.Connection(path, flags=flags)
        _configure(db, busy)
        _migrate(db, path)
        if reading:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # whoever only reads leaves the WAL as it is
        else:
            _keep_wal(db)
            _grow(db, path)
        return db


def _configure(db: apsw.Connection, busy: Callable[[int], bool]) -> None:
    db.set_busy_handler(busy)
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=OFF",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()


def _keep_wal(db: apsw.Connection) -> None:
    import ctypes  # slow to import, and not needed by who only reads

    on = ctypes.c_int(1)
    db.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(on))


def _migrate(db: apsw.Connection, path: str) -> None:
    version = db.pragma("user_version")
    if version > SCHEMA:
        raise StoreBroken(
            f"{path} was written by a newer steersman (schema {version}, this one knows {SCHEMA}): upgrade steersman"
        )
    if version == 0 and db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise StoreBroken(
            f"{path} is a database, but not one of steersman's: move it away or choose another state directory"
        )
    if version == SCHEMA:
        return
    from importlib.resources import files  # slow to import, and needed once a store

    with db:
        for step in range(db.pragma("user_version") + 1, SCHEMA + 1):
            db.execute(files("steersman.adapters.sqlite").joinpath(f"sql/{step:03}.sql").read_text())
            db.execute(f"PRAGMA user_version={step}")
        db.execute(f"PRAGMA application_id={APPLICATION}")


def _grow(db: apsw.Connection, path: str) -> None:
    wal = f"{path}-wal"
    if os.path.exists(wal) and os.path.getsize(wal) >= GROWN:
        return
    with db:
        db.execute("CREATE TABLE growth(filler)")
        db.execute("INSERT INTO growth VALUES(zeroblob(?))", (GROWN,))
        db.execute("DROP TABLE growth")
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)


@contextmanager
def told(path: str) -> Iterator[None]:
    """SQLite's errors in our words, each with the next step."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError) as error:
        raise StoreBroken(
            f"{path} cannot be read ({error}): run `steersman doctor`, or restore it from a backup"
        ) from error
    except apsw.FullError as error:
        raise StoreFull(
            f"{path}: the disk is full; free some room, then `steersman resume`; nothing half-written was kept"
        ) from error
    except (
        apsw.ReadOnlyError,
        apsw.PermissionsError,
        apsw.CantOpenError,
        PermissionError,
        apsw.AuthError,
    ) as error:
        raise StoreFull(
            f"{path} cannot be written ({error}): check who owns it and whether the disk is read-only"
        ) from error
    except (apsw.IOError, OSError) as error:
        raise StoreFull(
            f"{path}: the disk failed ({error}); steersman writes no more: check the disk, then `steersman resume`"
        ) from error
    except apsw.BusyError as error:
        raise JournalError(
            f"{path} was busy for {PATIENCE:.0f} s: another program holds it; see `steersman doctor`"
        ) from error


def identity(path: str) -> tuple[int, int]:
    """Which file this is, so that a deleted or replaced store is noticed."""
    found = os.stat(path)
    return found.st_dev, found.st_ino
