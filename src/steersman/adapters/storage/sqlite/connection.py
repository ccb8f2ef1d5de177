"""Opening a store: pragmas, schema, migrations, errors in our own words."""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import apsw

from steersman.adapters.storage.durable_files import create_file
from steersman.errors import JournalError, StoreBroken, StoreFull

# ── write turns ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Turns at the write lock, fair between processes.
#
# A writer that has to wait says so with a shared lock on a small file beside the store; a writer that has held the
# store for 5 ms looks there and pauses when another waits. A process that has waited for 8 ms takes a second file's lock for
# itself: while that is held no other begins, so the store is free for it after the commit under way.
# Without all this an occasional writer beside two busy ones is starved for seconds: SQLite's own back-off sleeps longer
# each time, and the lock is free for microseconds only.


LOCK_HOLD_SECONDS = 0.005  # seconds of holding the lock before others are looked for
LOCK_REST_SECONDS = 0.002  # longer than a waiting writer's poll
LOCK_POLL_SECONDS = 0.0007
LOCK_URGENT_SECONDS = 0.008
LOCK_YIELD_SECONDS = 0.1  # the longest pause: the process that asked for it may have been stopped
LOCK_PATIENCE_SECONDS = 30.0


def poll_while_busy(tries: int) -> bool:
    """The busy handler of a reader: the same poll, without asking others to make room."""
    time.sleep(LOCK_POLL_SECONDS)
    return tries * LOCK_POLL_SECONDS < LOCK_PATIENCE_SECONDS


class WriteFairness:
    """One writer's manners."""

    def __init__(self, store: str) -> None:
        self._waiting = _open_fairness_file(f"{store}-waiting")
        self._urgent = _open_fairness_file(f"{store}-urgent")
        self._since = 0.0
        self._waits = self._pressed = False
        self._held = 0.0
        self._began = 0.0

    def make_room(self) -> None:
        """Before we begin: lets a process go first that has waited for long."""
        if _is_fairness_lock_held(self._urgent):
            self._yield_turn()

    def _yield_turn(self) -> None:
        deadline = time.monotonic() + LOCK_YIELD_SECONDS
        while time.monotonic() < deadline:
            time.sleep(LOCK_POLL_SECONDS)
            if not _is_fairness_lock_held(self._urgent):
                return

    def handle_busy(self, tries: int) -> bool:
        """SQLite's busy handler: a short, steady poll; False gives up."""
        now = time.monotonic()
        if tries == 0:
            self._since = now
            self._waits = True
            fcntl.flock(self._waiting, fcntl.LOCK_SH)
        if now - self._since > LOCK_PATIENCE_SECONDS:
            return False
        if now - self._since > LOCK_URGENT_SECONDS and not self._pressed:
            self._pressed = _try_fairness_lock(self._urgent, fcntl.LOCK_EX)
        time.sleep(LOCK_POLL_SECONDS)
        if not self._pressed:
            self.make_room()
        return True

    def note_lock_taken(self) -> None:
        """The lock is ours."""
        self.note_wait_over()
        self._began = time.monotonic()

    def note_wait_over(self) -> None:
        """The wait is over, well or badly: no other has to make room for us."""
        if self._pressed:
            self._pressed = False
            fcntl.flock(self._urgent, fcntl.LOCK_UN)
        if self._waits:
            self._waits = False
            fcntl.flock(self._waiting, fcntl.LOCK_UN)

    def note_lock_released(self) -> None:
        """The lock is released; after every 5 ms of holding it, a waiting process goes first."""
        self._held += time.monotonic() - self._began
        if self._held < LOCK_HOLD_SECONDS:
            return
        self._held = 0.0
        if _is_fairness_lock_held(self._waiting, fcntl.LOCK_EX):
            time.sleep(LOCK_REST_SECONDS)

    def close(self) -> None:
        for fd in {self._waiting, self._urgent} - {-1}:
            os.close(fd)
        self._waiting = self._urgent = -1


def _open_fairness_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_fairness_lock(fd: int, operation: int) -> bool:
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_fairness_lock_held(fd: int, operation: int = fcntl.LOCK_SH) -> bool:
    """Whether another process holds it."""
    if _try_fairness_lock(fd, operation):
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
    return True


# ── connection ────────────────────────────────────────────────────────────────────────────────


STORE_APPLICATION_ID = 0x57EE5
STORE_SCHEMA_VERSION = 3
RESTORE_STORE_ADVICE = "restore it from a backup, together with its -wal, or move it away to start again"
MIN_DATABASE_BYTES = 512  # bytes: no database has a smaller page
# What each version of the schema has brought.
SCHEMA_TABLES = {
    1: {"head", "entry", "snapshot", "payload", "payload_key", "definition", "inbox", "gate", "budget"},
    2: {"quarantine"},
    3: {"chat_thread", "chat_message", "chat_ask"},
}
MIN_FREE_STORE_BYTES = 64 * 1024  # bytes: where less is free, a write that failed found no room
WAL_PAGES = 1_000  # in the WAL before it is written back
# The WAL is grown once and then recycled: a commit's sync has no metadata to write.
GROWN_WAL_BYTES = (WAL_PAGES + 200) * 4_120


def open_store(
    path: str,
    busy: Callable[[int], bool],
    *,
    create: bool = True,
    reading: bool = False,
    vfs: str | None = None,
) -> apsw.Connection:
    """A connection to the store, its schema current; raises JournalError with the next step."""
    with StoreErrorTranslator(path):
        if create and not os.path.lexists(path):
            _create_store_file(path)
        _refuse_missing_store(path)
        db = _connect_store(path, busy, reading, vfs)
        current = _read_store_version(db, path) == STORE_SCHEMA_VERSION
        if reading:
            db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a reader leaves the WAL as it is
        else:
            _keep_wal_file(db)
            _grow_wal_file(db, path)
        # The last to write: it restarts the grown WAL, and the next process has little to recover.
        if not current:
            _migrate_store_schema(db, path)
        return db


def _connect_store(path: str, busy: Callable[[int], bool], reading: bool, vfs: str | None) -> apsw.Connection:
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        _configure_store_connection(db, busy)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
        db.close()
        if not reading or (os.access(os.path.dirname(path) or ".", os.W_OK) and not _is_disk_full(path)):
            raise
        return _connect_store_read_only(path)
    return db


def _connect_store_read_only(path: str) -> apsw.Connection:
    """For reading where the file that readers and writers share cannot be made: no process can write there either."""
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs="unix-none")
    db.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()  # the index of the WAL is kept in memory
    db.execute("PRAGMA query_only=ON").fetchall()
    return db


def _create_store_file(path: str) -> None:
    """A new store appears whole, with its header: an empty file is therefore never one that is being made."""
    with suppress(FileExistsError):  # another process was quicker
        create_file(path, _blank_store_bytes(), 0o644)


def _blank_store_bytes() -> bytes:
    """A store without a table."""
    db = apsw.Connection(":memory:")
    try:
        db.execute(f"PRAGMA application_id={STORE_APPLICATION_ID}")
        return db.serialize("main")
    finally:
        db.close()


def _refuse_missing_store(path: str) -> None:
    """SQLite takes an empty file for a new database and deletes its WAL: what was there would be gone without a word."""
    if not os.path.exists(path):
        raise StoreBroken(f"{path} is not there: nothing has been run here yet; start with `steersman run`")
    if not os.path.isfile(path):
        return  # SQLite says why not
    # By its size alone: closing a file that this process has open elsewhere would drop SQLite's locks on it.
    size = os.path.getsize(path)
    if size == 0:
        raise StoreBroken(
            f"{path} was cut to nothing: restore it from a backup, together with {path}-wal, or move it away to start again"
        )
    if size < MIN_DATABASE_BYTES:
        raise StoreBroken(
            f"{path} cannot be read (it has {size} bytes): run `steersman doctor`, or restore it from a backup"
        )


def _configure_store_connection(db: apsw.Connection, busy: Callable[[int], bool]) -> None:
    db.set_busy_handler(busy)
    enable_wal(db)
    for pragma in (
        f"wal_autocheckpoint={WAL_PAGES}",
        "synchronous=FULL",
        "fullfsync=ON",  # macOS: a sync that reaches the disk, not only its cache
        "foreign_keys=OFF",
        "trusted_schema=OFF",
        "temp_store=MEMORY",
    ):
        db.execute(f"PRAGMA {pragma}").fetchall()


def enable_wal(db: apsw.Connection) -> None:
    """SQLite does not ask the busy handler when two processes make a new file at the same time."""
    deadline = time.monotonic() + LOCK_PATIENCE_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL").fetchall()
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOCK_POLL_SECONDS)
        else:
            return


def _keep_wal_file(db: apsw.Connection) -> None:
    from array import array  # not needed by who only reads

    on = array("i", [1])
    db.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, on.buffer_info()[0])


def _migrate_store_schema(db: apsw.Connection, path: str) -> None:
    from importlib.resources import files  # slow to import, and needed once a store

    with hold_write_transaction(db):
        for step in range(_read_store_version(db, path) + 1, STORE_SCHEMA_VERSION + 1):
            db.execute(files("steersman.adapters.storage.sqlite").joinpath(f"sql/{step:03}.sql").read_text())
            db.execute(f"PRAGMA user_version={step}")
        db.execute(f"PRAGMA application_id={STORE_APPLICATION_ID}")


def _read_store_version(db: apsw.Connection, path: str) -> int:
    """The schema's version; a StoreBroken for a file that is not ours to touch."""
    sql = "SELECT user_version, application_id, (SELECT group_concat(name) FROM sqlite_schema WHERE type='table') FROM pragma_user_version, pragma_application_id"
    version, application, names = next(db.execute(sql))
    tables = set((names or "").split(","))
    if application != STORE_APPLICATION_ID and (application or version or names):
        raise StoreBroken(
            f"{path} is a database, but not one of steersman's: move it away or choose another state directory"
        )
    if version > STORE_SCHEMA_VERSION:
        raise StoreBroken(
            f"{path} was written by a newer steersman (schema {version}, this one knows {STORE_SCHEMA_VERSION}): upgrade steersman"
        )
    for step, step_tables in SCHEMA_TABLES.items():
        wrong_tables = step_tables - tables if step <= version else step_tables & tables
        if wrong_tables:
            problem = f"says schema {version}, but {', '.join(sorted(wrong_tables))} {'is missing' if step <= version else 'is there'}"
            raise StoreBroken(f"{path} {problem}: {RESTORE_STORE_ADVICE}")
    return int(version)


def _grow_wal_file(db: apsw.Connection, path: str) -> None:
    wal = f"{path}-wal"
    if os.path.exists(wal) and os.path.getsize(wal) >= GROWN_WAL_BYTES:
        return
    with hold_write_transaction(db):
        db.execute("CREATE TABLE growth(filler)")
        db.execute("INSERT INTO growth VALUES(zeroblob(?))", (GROWN_WAL_BYTES,))
        db.execute("DROP TABLE growth")
    with suppress(apsw.BusyError):  # another process is at it
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


@contextmanager
def hold_write_transaction(db: apsw.Connection) -> Iterator[None]:
    """The lock from the beginning: one that is taken in the middle fails at once when another was quicker."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class StoreErrorTranslator:
    """SQLite's errors in our words, each with the next step."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or (translated := translate_store_error(self._path, error)) is None:
            return
        try:
            raise translated from error
        finally:
            del translated, error  # no cycle: an unused store is closed at once


def translate_store_error(path: str, error: BaseException) -> JournalError | None:
    """What an error of SQLite or the system means for the store; None for any other."""
    match error:
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StoreBroken(
                f"{path} cannot be read ({error}): run `steersman doctor`, or restore it from a backup"
            )
        case apsw.SQLError():
            return StoreBroken(f"{path} does not hold the tables it should ({error}): {RESTORE_STORE_ADVICE}")
        case UnicodeDecodeError():
            return StoreBroken(f"{path} holds text that is none ({error}): {RESTORE_STORE_ADVICE}")
        case apsw.FullError():
            return StoreFull(_disk_full_message(path))
        case apsw.Error() | OSError() if not isinstance(error, apsw.BusyError) and _is_disk_read_only(path):
            return StoreFull(
                f"{path} is read-only: nothing can be written here, only looked at; make its disk writable, or set XDG_STATE_HOME"
            )
        case (
            apsw.ReadOnlyError()
            | apsw.PermissionsError()
            | apsw.CantOpenError()
            | PermissionError()
            | apsw.AuthError()
        ):
            return StoreFull(
                f"{path} cannot be written ({error}): check who owns it and whether the disk is read-only"
            )
        case apsw.IOError() | OSError():
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or _is_disk_full(path):
                return StoreFull(_disk_full_message(path))
            return StoreFull(
                f"{path}: the disk failed ({error}); steersman writes no more: check the disk, then `steersman resume`"
            )
        case apsw.BusyError():
            return JournalError(
                f"{path} was busy for {LOCK_PATIENCE_SECONDS:.0f} s: another program holds it; see `steersman doctor`"
            )
        case _:
            return None


def _disk_full_message(path: str) -> str:
    return f"{path}: the disk is full; free some room, then `steersman resume`; nothing half-written was kept"


def _is_disk_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(os.path.dirname(path) or ".").f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _is_disk_full(path: str) -> bool:
    """Whether the disk is full: SQLite calls it a failed disk when the file that it shares with others cannot grow."""
    try:
        disk = os.statvfs(os.path.dirname(path) or ".")
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < MIN_FREE_STORE_BYTES


def read_store_identity(path: str) -> tuple[int, int]:
    """Which file this is, so that a deleted or replaced store is noticed."""
    try:
        file_stat = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return file_stat.st_dev, file_stat.st_ino
