"""The SQLite store: one commit per step, a fence per item, group commit for many at once."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from steersman.adapters.sqlite.connection import identity, open_store, told
from steersman.adapters.sqlite.turns import Turns
from steersman.adapters.sqlite.writer import GroupWriter
from steersman.errors import OverBudget, StaleError, StoreBroken, StoreFull
from steersman.ports.journal import Batch, BudgetRow, Gate, Head, Posted, Spend

LARGE = 64 * 1024  # payloads above are files, synced before the commit that names them

_json = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode
_read_gate = msgspec.json.Decoder(Gate).decode

INSERT_ENTRY = "INSERT INTO entry(run, seq, hash, body) VALUES(?, ?, ?, ?)"
INSERT_HEAD = "INSERT INTO head VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_PAYLOAD = "INSERT OR IGNORE INTO payload VALUES(?, ?, ?, ?)"
# The fence: a writer whose epoch or position is not the stored one changes nothing.
UPDATE_HEAD = (
    "UPDATE head SET definition=?, state=?, status=?, outcome=?, seq=?, hash=?, epoch=?, at=?, due=? "
    "WHERE run=? AND seq=? AND epoch=?"
)
COLUMNS = "run, root, parent, machine, definition, title, state, status, outcome, seq, hash, epoch, created, at, due"
OPEN = "status IN ('working', 'waiting for you', 'waiting until')"


class SqliteJournal:
    """Implements ports.journal.Journal on one file."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = Path(path)
        self._turns = _turns(self.path)
        try:
            self._write = open_store(self.path, self._turns.busy, create=create)
        except BaseException:
            self._turns.close()
            raise
        self._lock = threading.RLock()
        self._identity = identity(self.path)
        self._reads: apsw.Connection | None = None
        self._failed: str | None = None
        self._writer: GroupWriter | None = None

    @property
    def _reader(self) -> apsw.Connection:
        if self._reads is None:
            with told(self.path):
                self._reads = open_store(self.path, self._turns.busy, create=False)
        return self._reads

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def append(self, batch: Batch) -> None:
        """One commit on the calling thread."""
        self._large(batch.head.root, batch.payloads)
        with self._transaction():
            self._put(batch)

    def submit(self, batch: Batch, done: Callable[[BaseException | None], None]) -> None:
        """Joins the next group commit."""
        self._large(batch.head.root, batch.payloads)
        if self._writer is None:
            self._writer = GroupWriter(self._together)
        self._writer.submit(batch, done)

    def _together(
        self, take: Callable[[], Batch | None], report: Callable[[BaseException | None], None]
    ) -> None:
        """One transaction for as many batches as `take` gives; a stale one fails alone."""
        with self._transaction():
            while (batch := take()) is not None:
                self._write.execute("SAVEPOINT item")
                try:
                    self._put(batch)
                except (StaleError, OverBudget) as error:
                    self._write.execute("ROLLBACK TO item")
                    report(error)
                else:
                    report(None)
                self._write.execute("RELEASE item")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it or nothing; afterwards whoever waits has a turn."""
        with self._lock:
            try:
                with told(self.path):
                    self._begin()
                    try:
                        yield
                        self._write.execute("COMMIT")
                    except BaseException:
                        self._undo()
                        raise
            except StoreFull as error:
                if isinstance(error.__cause__, apsw.IOError):
                    self._failed = str(error)  # a failed sync is never retried: what it covered is unknown
                raise
            self._turns.ended()

    def _begin(self) -> None:
        if self._failed:
            raise StoreFull(self._failed)
        if not self.path.exists() or identity(self.path) != self._identity:
            raise StoreBroken(
                f"{self.path} was deleted or replaced while in use; nothing more is written: restore it, then `steersman resume`"
            )
        self._write.execute("BEGIN IMMEDIATE")
        self._turns.began()

    def _undo(self) -> None:
        if self._write.in_transaction:
            self._write.execute("ROLLBACK")

    def _put(self, b: Batch) -> None:
        h = b.head
        run = self._write.execute
        if b.expect_seq == 0:
            try:
                run(INSERT_HEAD, _head_values(h))
            except apsw.ConstraintError as error:
                raise StaleError(f"run {h.run} exists already") from error
        else:
            values = (
                h.definition,
                h.state,
                h.status,
                h.outcome,
                h.seq,
                bytes.fromhex(h.hash),
                h.epoch,
                h.at,
                h.due,
            )
            run(UPDATE_HEAD, (*values, h.run, b.expect_seq, b.expect_epoch))
            if self._write.changes() != 1:
                raise StaleError(f"run {h.run} has moved on: another driver owns it now")
        for seq, body, hash_ in b.entries:
            run(INSERT_ENTRY, (h.run, seq, bytes.fromhex(hash_), body))
        if b.snapshot is not None:
            run("INSERT OR REPLACE INTO snapshot VALUES(?, ?, ?)", (h.run, h.seq, b.snapshot))
        self._put_rest(b)

    def _put_rest(self, b: Batch) -> None:
        run = self._write.execute
        for ref, data in b.payloads:
            run(INSERT_PAYLOAD, (b.head.root, ref, None if len(data) > LARGE else data, len(data)))
        for posted, verdict in b.taken:
            run("UPDATE inbox SET verdict=? WHERE id=? AND verdict IS NULL", (_json(verdict), posted))
            if self._write.changes() != 1:
                raise StaleError(f"inbox item {posted} was taken already")
        for gate in b.gates:
            run(
                "INSERT OR IGNORE INTO gate VALUES(?, ?, ?, ?, '', '')",
                (gate.id, gate.run, gate.digest, _json(gate)),
            )
        for gate_id in b.closed:
            run("DELETE FROM gate WHERE id=?", (gate_id,))
        if b.definition is not None:
            run("INSERT OR IGNORE INTO definition VALUES(?, ?)", b.definition)
        if b.key is not None:
            run("INSERT OR IGNORE INTO payload_key VALUES(?, ?)", (b.head.root, b.key))
        for target, kind, body in b.posts:
            run(
                "INSERT INTO inbox(run, kind, body, at) VALUES(?, ?, ?, ?)",
                (target, kind, _json(body), b.head.at),
            )
        for spend in b.spends:
            self._spend(spend)

    def _spend(self, s: Spend) -> None:
        run = self._write.execute
        run("INSERT OR IGNORE INTO budget VALUES(?, ?, 0, 0, NULL)", (s.run, s.name))
        if s.limit is not None:
            run("UPDATE budget SET bound=? WHERE run=? AND name=?", (s.limit, s.run, s.name))
        fits = "AND (bound IS NULL OR spent + reserved + ? <= bound)" if s.bound else "AND ? IS NOT NULL"
        sql = f"UPDATE budget SET spent=spent+?, reserved=reserved+? WHERE run=? AND name=? {fits}"  # noqa: S608  two constants
        run(sql, (s.spent, s.reserved, s.run, s.name, s.spent + s.reserved))
        if self._write.changes() != 1:
            raise OverBudget(s.run, s.name)

    def keep(self, root: str, payloads: tuple[tuple[str, bytes], ...]) -> None:
        self._large(root, payloads)
        with self._transaction():
            for ref, data in payloads:
                self._write.execute(
                    INSERT_PAYLOAD, (root, ref, None if len(data) > LARGE else data, len(data))
                )

    def _large(self, root: str, payloads: tuple[tuple[str, bytes], ...]) -> None:
        for ref, data in payloads:
            if len(data) > LARGE:
                with told(self.path):
                    _write_synced(self._file(root, ref), data)

    def _file(self, root: str, ref: str) -> Path:
        return self.path.parent / "payloads" / root / ref

    # ── inbox and gates ─────────────────────────────────────────────────────────────────────────────────────────────

    def post(self, run: str, kind: str, body: dict[str, Any], at: int) -> int:
        """An external event, durable when this returns."""
        with self._transaction():
            self._write.execute(
                "INSERT INTO inbox(run, kind, body, at) VALUES(?, ?, ?, ?)", (run, kind, _json(body), at)
            )
            posted = self._write.last_insert_rowid()
        return posted

    def answer(self, gate: str, digest: str, body: dict[str, Any], at: int) -> int | None:
        """One conditional write: the first answer wins, the loser gets None."""
        with self._transaction():
            values = (body["choice"], body.get("person", ""), gate, digest)
            self._write.execute(
                "UPDATE gate SET answer=?, person=? WHERE id=? AND answer='' AND digest=?", values
            )
            won = self._write.changes() == 1
            if won:
                told_run, said = gate.split(":", 1)[0], _json({"gate": gate, **body})
                self._write.execute(
                    "INSERT INTO inbox(run, kind, body, at) VALUES(?, 'answer', ?, ?)", (told_run, said, at)
                )
            posted = self._write.last_insert_rowid()
        return posted if won else None

    def pending(self, run: str) -> list[Posted]:
        sql = "SELECT id, run, kind, body, at FROM inbox WHERE run=? AND verdict IS NULL ORDER BY id"
        return [Posted(i, r, k, _read(b), at) for i, r, k, b, at in self._query(sql, (run,))]

    def verdict(self, posted: int) -> dict[str, Any] | None:
        rows = self._query("SELECT verdict FROM inbox WHERE id=?", (posted,))
        return _read(rows[0][0]) if rows and rows[0][0] is not None else None

    def gates(self, run: str | None = None) -> list[Gate]:
        where, values = ("WHERE run=?", (run,)) if run else ("", ())
        return [
            _gate(*row)
            for row in self._query(f"SELECT body, answer, person FROM gate {where} ORDER BY id", values)
        ]  # noqa: S608  two constants

    def gate(self, gate: str) -> Gate | None:
        rows = self._query("SELECT body, answer, person FROM gate WHERE id=?", (gate,))
        return _gate(*rows[0]) if rows else None

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def head(self, run: str) -> Head | None:
        rows = self._query(f"SELECT {COLUMNS} FROM head WHERE run=?", (run,))  # noqa: S608  a constant
        return _head(rows[0]) if rows else None

    def heads(self, *, unfinished: bool = False, limit: int = 1000) -> list[Head]:
        where = f"WHERE {OPEN}" if unfinished else ""
        sql = f"SELECT {COLUMNS} FROM head {where} ORDER BY at DESC LIMIT ?"  # noqa: S608  constants
        return [_head(row) for row in self._query(sql, (limit,))]

    def matching(self, prefix: str) -> list[str]:
        sql = "SELECT run FROM head WHERE run >= ? AND run < ? ORDER BY run LIMIT 20"
        return [row[0] for row in self._query(sql, (prefix, prefix + "\U0010ffff"))]

    def children(self, run: str) -> list[Head]:
        sql = f"SELECT {COLUMNS} FROM head WHERE parent=? ORDER BY created, run"  # noqa: S608  a constant
        return [_head(row) for row in self._query(sql, (run,))] if run else []

    def due(self, now: int) -> list[Head]:
        sql = f"SELECT {COLUMNS} FROM head WHERE due IS NOT NULL AND due <= ? ORDER BY due LIMIT 1000"  # noqa: S608  a constant
        return [_head(row) for row in self._query(sql, (now,))]

    def rows(self, run: str, after: int = 0) -> Iterator[tuple[int, bytes, str]]:
        with told(self.path):
            for seq, body, hash_ in self._reader.execute(
                "SELECT seq, body, hash FROM entry WHERE run=? AND seq>? ORDER BY seq", (run, after)
            ):
                yield seq, _bytes(body), _hex(hash_)

    def snapshot(self, run: str) -> tuple[int, bytes] | None:
        rows = self._query("SELECT seq, body FROM snapshot WHERE run=?", (run,))
        return (rows[0][0], _bytes(rows[0][1])) if rows else None

    def payload(self, root: str, ref: str) -> bytes | None:
        rows = self._query("SELECT body FROM payload WHERE root=? AND ref=?", (root, ref))
        if not rows:
            return None
        if rows[0][0] is not None:
            return _bytes(rows[0][0])
        try:
            return self._file(root, ref).read_bytes()
        except FileNotFoundError:
            return None

    def payload_refs(self, root: str) -> list[str]:
        return [row[0] for row in self._query("SELECT ref FROM payload WHERE root=? ORDER BY ref", (root,))]

    def key(self, root: str) -> bytes | None:
        rows = self._query("SELECT key FROM payload_key WHERE root=?", (root,))
        return rows[0][0] if rows else None

    def definition(self, digest: str) -> bytes | None:
        rows = self._query("SELECT body FROM definition WHERE digest=?", (digest,))
        return rows[0][0] if rows else None

    def budget(self, run: str) -> list[BudgetRow]:
        sql = "SELECT name, spent, reserved, bound FROM budget WHERE run=? ORDER BY name"
        return [BudgetRow(*row) for row in self._query(sql, (run,))]

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock, told(self.path):
            return self._reader.execute(sql, values).fetchall()

    # ── keeping house ───────────────────────────────────────────────────────────────────────────────────────────────

    def prune(self, batch: Batch, root: str) -> int:
        """Payloads and key go in the commit that says so; their files after it."""
        refs = self.payload_refs(root)
        with self._transaction():
            self._put(batch)
            self._write.execute("DELETE FROM payload WHERE root=?", (root,))
            self._write.execute("DELETE FROM payload_key WHERE root=?", (root,))
        for ref in refs:
            self._file(root, ref).unlink(missing_ok=True)
        return len(refs)

    def quarantine(self, run: str, why: str) -> None:
        with self._transaction():
            self._write.execute(
                "INSERT OR REPLACE INTO quarantine VALUES(?, ?, unixepoch() * 1000)", (run, why)
            )

    def quarantined(self) -> dict[str, str]:
        return dict(self._query("SELECT run, why FROM quarantine"))

    def changed(self) -> int:
        with self._lock:
            return int(self._reader.pragma("data_version"))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for db in (self._reads, self._write):
            if db is not None:
                db.close()
        self._turns.close()


def _turns(path: Path) -> Turns:
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Turns(path)


def _head_values(h: Head) -> tuple[Any, ...]:
    return (
        h.run,
        h.root,
        h.parent,
        h.machine,
        h.definition,
        h.title,
        h.state,
        h.status,
        h.outcome,
        h.seq,
        bytes.fromhex(h.hash),
        h.epoch,
        h.created,
        h.at,
        h.due,
    )


def _head(row: tuple[Any, ...]) -> Head:
    return Head(*row[:10], _hex(row[10]), *row[11:])


def _gate(body: bytes, answer: str, person: str) -> Gate:
    return msgspec.structs.replace(_read_gate(body), answer=answer, person=person)


def _hex(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _write_synced(path: Path, data: bytes) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    part.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
