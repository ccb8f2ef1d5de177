"""The SQLite store: one commit per step, a fence per item, group commit for many at once."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from steersman.adapters.storage.durable_files import replace_file, sync_directory
from steersman.adapters.storage.sqlite.connection import (
    LOCK_HOLD_SECONDS,
    StoreErrorTranslator,
    WriteFairness,
    open_store,
    read_store_identity,
    translate_store_error,
)
from steersman.adapters.storage.sqlite.reader import SqliteJournalReader
from steersman.errors import OverBudget, StaleError, StoreBroken, StoreFull
from steersman.ports.journal import Batch, Head, Spend

if TYPE_CHECKING:
    from pathlib import Path


# ── group commit ────────────────────────────────────────────────────────────────────────────────────────────────────────

# Group commit: one thread that commits what many runs have ready.


CommitCallback = Callable[[BaseException | None], None]


class GroupWriter:
    """Takes batches from any thread; calls each one's `done` after its commit."""

    def __init__(self, commit_together: Callable[[Any, Any], None]) -> None:
        self._together = commit_together
        self._queue: deque[tuple[Batch, CommitCallback]] = deque()
        self._ready = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run_writer, name="steersman-writer", daemon=True)
        self._thread.start()

    def submit(self, batch: Batch, done: CommitCallback) -> None:
        with self._ready:
            self._queue.append((batch, done))
            if len(self._queue) == 1:  # otherwise the thread is awake or will be
                self._ready.notify()

    def close(self) -> None:
        """Commits what is waiting, then ends the thread."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join()

    def _run_writer(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._closing:
                    self._ready.wait()
                if not self._queue:
                    return
            self._commit()

    def _commit(self) -> None:
        outcomes: list[tuple[CommitCallback, BaseException | None]] = []
        callbacks: list[CommitCallback] = []
        started = time.monotonic()

        def take() -> Batch | None:
            if not self._queue or time.monotonic() - started > LOCK_HOLD_SECONDS:
                return None
            batch, done = self._queue.popleft()
            callbacks.append(done)
            return batch

        def report(error: BaseException | None) -> None:
            outcomes.append((callbacks[-1], error))

        failure: BaseException | None = None
        try:
            self._together(take, report)
        except BaseException as error:
            failure = error
        self._report_outcomes(outcomes, callbacks, failure)

    def _report_outcomes(
        self,
        outcomes: list[tuple[CommitCallback, BaseException | None]],
        callbacks: list[CommitCallback],
        failure: BaseException | None,
    ) -> None:
        if failure is None:
            for done, error in outcomes:
                done(error)
            return
        # The transaction could not even begin: the oldest fails, the next is tried.
        if not callbacks and self._queue:
            callbacks.append(self._queue.popleft()[1])
        for done in callbacks:
            done(failure)


# ── store ────────────────────────────────────────────────────────────────────────────────


LARGE_PAYLOAD_BYTES = 64 * 1024  # payloads above are files, synced before the commit that names them

_encode_store_json = msgspec.json.Encoder().encode

INSERT_ENTRY = "INSERT INTO entry(run, seq, hash, body) VALUES(?, ?, ?, ?)"
INSERT_HEAD = "INSERT INTO head VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
STEP_HEAD = "UPDATE head SET state=?, seq=?, hash=?, at=? WHERE run=? AND seq=? AND epoch=?"
INSERT_PAYLOAD = "INSERT OR IGNORE INTO payload VALUES(?, ?, ?, ?)"
# The fence: a writer whose epoch or position is not the stored one changes nothing.
UPDATE_HEAD = (
    "UPDATE head SET definition=?, state=?, status=?, outcome=?, seq=?, hash=?, epoch=?, at=?, due=? "
    "WHERE run=? AND seq=? AND epoch=?"
)


class _JournalTransaction:
    """All of it or nothing; afterwards a waiting process has a turn. A class, because a generator costs each step more."""

    __slots__ = ("_store",)

    def __init__(self, store: "SqliteJournal") -> None:
        self._store = store

    def __enter__(self) -> None:
        self._store._begin_write()  # noqa: SLF001  one thing in two parts

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        error_to_raise = self._store._end_write(error)  # noqa: SLF001  one thing in two parts
        if error_to_raise is None or error_to_raise is error:
            return
        try:
            raise error_to_raise
        finally:
            del error_to_raise, error  # no cycle: an unused store is closed at once


class SqliteJournal(SqliteJournalReader):
    """Implements ports.journal.Journal on one file."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True, vfs: str | None = None) -> None:
        super().__init__(path, only=False, vfs=vfs)
        self._turns = _open_write_fairness(self.path)
        try:
            self._write = open_store(self.path, self._turns.handle_busy, create=create, vfs=vfs)
        except BaseException:
            self._turns.close()
            raise
        self._turns.note_wait_over()
        self._identity = read_store_identity(self.path)
        self._failed: str | None = None
        self._writer: GroupWriter | None = None

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def append(self, batch: Batch) -> None:
        """One commit on the calling thread."""
        self._write_large_payloads(batch.head.root, batch.payloads)
        with self._transaction():
            self._insert_batch(batch)

    def submit(self, batch: Batch, done: Callable[[BaseException | None], None]) -> None:
        """Joins the next group commit."""
        self._write_large_payloads(batch.head.root, batch.payloads)
        if self._writer is None:
            self._writer = GroupWriter(self._commit_group)
        self._writer.submit(batch, done)

    def _commit_group(
        self, take: Callable[[], Batch | None], report: Callable[[BaseException | None], None]
    ) -> None:
        """One transaction for as many batches as `take` gives; one that is stale or cannot be stored fails alone."""
        with self._transaction():
            while (batch := take()) is not None:
                try:
                    self._commit_one(batch)
                except Exception as error:
                    if isinstance(error, apsw.Error) and not isinstance(error, apsw.ConstraintError):
                        raise  # the store is in trouble, not this batch
                    report(error)
                else:
                    report(None)

    def _commit_one(self, batch: Batch) -> None:
        """One item of a group: when it fails, nothing of it stays."""
        if not (batch.taken or batch.spends or batch.expect_seq == 0):
            self._insert_batch(batch)  # only the fence can refuse it, and that comes first
            return
        self._write.execute("SAVEPOINT item")
        try:
            self._insert_batch(batch)
        except Exception:
            self._write.execute("ROLLBACK TO item")
            self._write.execute("RELEASE item")
            raise
        self._write.execute("RELEASE item")

    def writing(self) -> "_JournalTransaction":
        """A transaction for tables that stand beside the tapes in the same file."""
        return _JournalTransaction(self)

    @property
    def connection(self) -> apsw.Connection:
        """What such a transaction writes through."""
        return self._write

    def _transaction(self) -> "_JournalTransaction":
        return _JournalTransaction(self)

    def _begin_write(self) -> None:
        self._lock.acquire()
        try:
            with StoreErrorTranslator(self.path):
                self._begin()
        except BaseException as error:
            self._lock.release()
            self._note_failed_sync(error)
            raise

    def _end_write(self, error: BaseException | None) -> BaseException | None:
        """Commits, or undoes what an error has interrupted; what is to be raised."""
        try:
            if error is not None:
                return self._roll_back(error)
            try:
                self._write.execute("COMMIT")
            except BaseException as commit_error:
                return self._roll_back(commit_error)
            self._turns.note_lock_released()
            return None
        finally:
            self._lock.release()

    def _roll_back(self, error: BaseException) -> BaseException:
        """Nothing of it stays; the error in our words."""
        try:
            if self._write.in_transaction:
                self._write.execute("ROLLBACK")
        except apsw.Error as rollback_error:
            error = rollback_error.with_traceback(None)
        translated = translate_store_error(self.path, error)
        if translated is None:
            return error
        translated.__cause__ = error
        self._note_failed_sync(translated)
        return translated

    def _note_failed_sync(self, error: BaseException) -> None:
        """A failed sync is never retried: what it covered is unknown."""
        if isinstance(error, StoreFull) and isinstance(error.__cause__, apsw.IOError):
            self._failed = str(error)

    def _begin(self) -> None:
        if self._failed:
            raise StoreFull(self._failed)
        if read_store_identity(self.path) != self._identity:
            raise StoreBroken(
                f"{self.path} was deleted or replaced while in use; nothing more is written: restore it, then `steersman resume`"
            )
        self._turns.make_room()
        try:
            self._write.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._turns.note_wait_over()
            raise
        self._turns.note_lock_taken()

    def _insert_batch(self, batch: Batch) -> None:
        head = batch.head
        execute = self._write.execute
        if batch.expect_seq == 0:
            try:
                execute(INSERT_HEAD, _head_values(head))
            except apsw.ConstraintError as error:
                raise StaleError(f"run {head.run} exists already") from error
        else:
            hash_ = bytes.fromhex(head.hash)
            if batch.quiet:
                execute(
                    STEP_HEAD,
                    (head.state, head.seq, hash_, head.at, head.run, batch.expect_seq, batch.expect_epoch),
                )
            else:
                values = (
                    head.definition,
                    head.state,
                    head.status,
                    head.outcome,
                    head.seq,
                    hash_,
                    head.epoch,
                    head.at,
                    head.due,
                )
                execute(UPDATE_HEAD, (*values, head.run, batch.expect_seq, batch.expect_epoch))
            if self._write.changes() != 1:
                raise StaleError(f"run {head.run} has moved on: another driver owns it now")
        for seq, body, entry_hash in batch.entries:
            execute(INSERT_ENTRY, (head.run, seq, bytes.fromhex(entry_hash), body))
        if batch.snapshot is not None:
            execute("INSERT OR REPLACE INTO snapshot VALUES(?, ?, ?)", (head.run, head.seq, batch.snapshot))
        self._put_rest(batch)

    def _put_rest(self, batch: Batch) -> None:
        execute = self._write.execute
        for ref, data in batch.payloads:
            execute(
                INSERT_PAYLOAD,
                (batch.head.root, ref, None if len(data) > LARGE_PAYLOAD_BYTES else data, len(data)),
            )
        for posted, verdict in batch.taken:
            execute(
                "UPDATE inbox SET verdict=? WHERE id=? AND verdict IS NULL",
                (_encode_store_json(verdict), posted),
            )
            if self._write.changes() != 1:
                raise StaleError(f"inbox item {posted} was taken already")
        for gate in batch.gates:
            execute(
                "INSERT OR IGNORE INTO gate VALUES(?, ?, ?, ?, '', '')",
                (gate.id, gate.run, gate.digest, _encode_store_json(gate)),
            )
        for gate in batch.restored:
            row = (gate.id, gate.run, gate.digest, _encode_store_json(gate))
            execute("INSERT OR REPLACE INTO gate VALUES(?, ?, ?, ?, '', '')", row)
        for gate_id in batch.closed:
            execute("DELETE FROM gate WHERE id=?", (gate_id,))
        if batch.definition is not None:
            execute("INSERT OR IGNORE INTO definition VALUES(?, ?)", batch.definition)
        if batch.key is not None:
            execute("INSERT OR IGNORE INTO payload_key VALUES(?, ?)", (batch.head.root, batch.key))
        for target, kind, body in batch.posts:
            execute(
                "INSERT INTO inbox(run, kind, body, at) VALUES(?, ?, ?, ?)",
                (target, kind, _encode_store_json(body), batch.head.at),
            )
        for spend in batch.spends:
            self._insert_spends(spend)

    def _insert_spends(self, spend: Spend) -> None:
        execute = self._write.execute
        execute("INSERT OR IGNORE INTO budget VALUES(?, ?, 0, 0, NULL)", (spend.run, spend.name))
        if spend.limit is not None:
            execute("UPDATE budget SET bound=? WHERE run=? AND name=?", (spend.limit, spend.run, spend.name))
        fits = "AND (bound IS NULL OR spent + reserved + ? <= bound)" if spend.bound else "AND ? IS NOT NULL"
        sql = f"UPDATE budget SET spent=spent+?, reserved=reserved+? WHERE run=? AND name=? {fits}"  # noqa: S608  two constants
        execute(sql, (spend.spent, spend.reserved, spend.run, spend.name, spend.spent + spend.reserved))
        if self._write.changes() != 1:
            raise OverBudget(spend.run, spend.name)

    def store_payloads(self, root: str, payloads: tuple[tuple[str, bytes], ...]) -> None:
        self._write_large_payloads(root, payloads)
        with self._transaction():
            for ref, data in payloads:
                self._write.execute(
                    INSERT_PAYLOAD, (root, ref, None if len(data) > LARGE_PAYLOAD_BYTES else data, len(data))
                )

    def _write_large_payloads(self, root: str, payloads: tuple[tuple[str, bytes], ...]) -> None:
        for ref, data in payloads:
            if len(data) > LARGE_PAYLOAD_BYTES:
                with StoreErrorTranslator(self.path):
                    _write_synced_payload(self._file(root, ref), data)

    # ── inbox and gates ─────────────────────────────────────────────────────────────────────────────────────────────

    def post(self, run: str, kind: str, body: dict[str, Any], at: int) -> int:
        """An external event, durable when this returns."""
        with self._transaction():
            self._write.execute(
                "INSERT INTO inbox(run, kind, body, at) VALUES(?, ?, ?, ?)",
                (run, kind, _encode_store_json(body), at),
            )
            return int(self._write.last_insert_rowid())

    def answer(self, gate: str, digest: str, body: dict[str, Any], at: int) -> int | None:
        """One conditional write: the first answer wins, the loser gets None."""
        with self._transaction():
            values = (body["choice"], body.get("person", ""), gate, digest)
            self._write.execute(
                "UPDATE gate SET answer=?, person=? WHERE id=? AND answer='' AND digest=?", values
            )
            won = self._write.changes() == 1
            if won:
                run_id, body_json = gate.split(":", 1)[0], _encode_store_json({"gate": gate, **body})
                self._write.execute(
                    "INSERT INTO inbox(run, kind, body, at) VALUES(?, 'answer', ?, ?)",
                    (run_id, body_json, at),
                )
            posted = self._write.last_insert_rowid()
        return posted if won else None

    # ── keeping house ───────────────────────────────────────────────────────────────────────────────────────────────

    def prune(self, batch: Batch, root: str) -> int:
        """Payloads and key go in the commit that says so; their files after it."""
        refs = list(self.payload_refs(root))
        with self._transaction():
            self._insert_batch(batch)
            self._write.execute("DELETE FROM payload WHERE root=?", (root,))
            self._write.execute("DELETE FROM payload_key WHERE root=?", (root,))
        self._drop_files(root)
        return len(refs)

    def _drop_files(self, root: str) -> None:
        import shutil  # slow to import

        shutil.rmtree(self._file(root, "x").parent, ignore_errors=True)

    def quarantine(self, run: str, why: str) -> None:
        with self._transaction():
            self._write.execute(
                "INSERT OR REPLACE INTO quarantine VALUES(?, ?, unixepoch() * 1000)", (run, why)
            )

    def lift_quarantine(self, run: str) -> bool:
        if not self._query("SELECT 1 FROM quarantine WHERE run=?", (run,)):
            return False  # the ordinary case costs no commit
        with self._transaction():
            self._write.execute("DELETE FROM quarantine WHERE run=?", (run,))
            return self._write.changes() == 1

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._write.close()
        super().close()
        self._turns.close()


def _open_write_fairness(path: str) -> WriteFairness:
    with StoreErrorTranslator(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return WriteFairness(path)


def _head_values(head: Head) -> tuple[Any, ...]:
    return (
        head.run,
        head.root,
        head.parent,
        head.machine,
        head.definition,
        head.title,
        head.state,
        head.status,
        head.outcome,
        head.seq,
        bytes.fromhex(head.hash),
        head.epoch,
        head.created,
        head.at,
        head.due,
    )


def _write_synced_payload(path: "Path", data: bytes) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, data)
    for directory in (path.parent, path.parent.parent, path.parent.parent.parent):  # each may be new
        sync_directory(directory)
