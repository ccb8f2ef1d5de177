"""Reads a store through one connection: nothing is written, and the file does not grow."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from steersman.adapters.storage.sqlite import rows as decode
from steersman.adapters.storage.sqlite.connection import (
    STORE_SCHEMA_VERSION,
    StoreErrorTranslator,
    open_store,
    poll_while_busy,
)
from steersman.errors import JournalError, StoreBroken
from steersman.ports.journal import BudgetRow, Gate, Head, InboxItem

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")
READER_PAGE_ROWS = 500  # rows of a long list that are read at once
UNFINISHED_CONDITION = "status IN ('working', 'waiting for you', 'waiting until')"
OWNED_TABLES = {
    "gate": "run",
    "budget": "run",
    "inbox": "run",
    "quarantine": "run",
    "payload": "root",
    "payload_key": "root",
}
SCHEMA_NAMES_QUERY = "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
MAX_NAMED_RUNS = 20  # runs named for a table
StoreQuery = Callable[[str], list[Any]]


class SqliteJournalReader:
    """The reading half of ports.journal.Journal."""

    def __init__(self, path: str | os.PathLike[str], *, only: bool = True, vfs: str | None = None) -> None:
        """`only`: this one will not write, so its connection leaves the WAL alone."""
        self.path = os.fspath(path)
        self._lock = threading.RLock()
        self._only, self._vfs = only, vfs
        self._reads: apsw.Connection | None = None

    @property
    def _reader(self) -> apsw.Connection:
        if self._reads is None:
            with StoreErrorTranslator(self.path):
                self._reads = open_store(
                    self.path, poll_while_busy, create=False, reading=self._only, vfs=self._vfs
                )
        return self._reads

    def pending(self, run: str) -> list[InboxItem]:
        rest = "FROM inbox WHERE run=? AND verdict IS NULL ORDER BY id"
        return self._rows(decode.INBOX_COLUMNS, rest, (run,), decode.decode_posted_event)

    def verdict(self, posted: int) -> dict[str, Any] | None:
        rows = self._query("SELECT verdict FROM inbox WHERE id=?", (posted,))
        return decode.decode_verdict(posted, rows[0][0]) if rows and rows[0][0] is not None else None

    def gates(self, run: str | None = None) -> list[Gate]:
        if run:
            return self._rows(
                decode.GATE_COLUMNS, "FROM gate WHERE run=? ORDER BY id", (run,), decode.decode_gate
            )
        gate_rows = self._rows(
            decode.GATE_COLUMNS, "FROM gate ORDER BY id", (), _capture_broken_rows(decode.decode_gate)
        )
        return [g for g in gate_rows if isinstance(g, Gate)]

    def gate(self, gate: str) -> Gate | None:
        rows = self._rows(decode.GATE_COLUMNS, "FROM gate WHERE id=?", (gate,), decode.decode_gate)
        return rows[0] if rows else None

    def head(self, run: str) -> Head | None:
        rows = self._rows(decode.HEAD_COLUMNS, "FROM head WHERE run=?", (run,), decode.decode_head)
        return rows[0] if rows else None

    def heads(self, *, unfinished: bool = False, limit: int = 1000) -> list[Head]:
        where = f"WHERE {UNFINISHED_CONDITION}" if unfinished else ""
        rest = f"FROM head {where} ORDER BY created DESC, run DESC LIMIT ?"
        return self._rows(decode.HEAD_COLUMNS, rest, (limit,), decode.decode_listed_head)

    def find_runs(self, prefix: str) -> list[str]:
        sql = "SELECT run FROM head WHERE run >= ? AND run < ? ORDER BY run LIMIT 20"
        return [row[0] for row in self._query(sql, (prefix, prefix + "\U0010ffff"))]

    def list_traced_runs(self) -> list[str]:
        sql = "SELECT run FROM head UNION SELECT run FROM entry UNION SELECT run FROM snapshot ORDER BY 1"
        return [str(row[0]) for row in self._query(sql)]

    def children(self, run: str) -> list[Head]:
        rest = "FROM head WHERE parent=? ORDER BY created, run"
        return self._rows(decode.HEAD_COLUMNS, rest, (run,), decode.decode_head) if run else []

    def tree(self, root: str) -> list[Head]:
        return self._rows(
            decode.HEAD_COLUMNS, "FROM head WHERE root=? ORDER BY created, run", (root,), decode.decode_head
        )

    def due(self, now: int) -> list[Head]:
        rest = "FROM head WHERE due IS NOT NULL AND due <= ? ORDER BY due, run LIMIT 1000"
        return [
            h
            for h in self._rows(decode.HEAD_COLUMNS, rest, (now,), decode.decode_listed_head)
            if h.due is not None
        ]

    def rows(self, run: str, after: int = 0) -> Iterator[tuple[int, bytes, str]]:
        sql = "SELECT seq, body, hash FROM entry WHERE run=? AND seq>? ORDER BY seq LIMIT ?"
        for seq, body, hash_ in self._pages(sql, run, after):
            yield seq, _bytes_or_repr(body), (hash_.hex() if isinstance(hash_, bytes) else repr(hash_))

    def _pages(self, sql: str, owner: str, after: Any) -> Iterator[Any]:
        """Rows a page at a time: a reader that dawdles holds no transaction, so the others see what is new."""
        while page := self._query(sql, (owner, after, READER_PAGE_ROWS)):
            yield from page
            after = page[-1][0]

    def snapshot(self, run: str) -> tuple[int, bytes] | None:
        rows = self._query("SELECT seq, body FROM snapshot WHERE run=?", (run,))
        return (rows[0][0], _bytes_or_repr(rows[0][1])) if rows else None

    def payload(self, root: str, ref: str) -> bytes | None:
        rows = self._query("SELECT body, size FROM payload WHERE root=? AND ref=?", (root, ref))
        if not rows:
            return None
        body, size = rows[0]
        try:
            data = self._file(root, ref).read_bytes() if body is None else _bytes_or_repr(body)
        except FileNotFoundError:
            return None
        if len(data) != size:
            raise StoreBroken(
                f"payload {ref} of run {root} has {len(data)} bytes, not {size}: restore it from a backup"
            )
        return data

    def payload_refs(self, root: str) -> Iterator[str]:
        sql = "SELECT ref FROM payload WHERE root=? AND ref>? ORDER BY ref LIMIT ?"
        for (ref,) in self._pages(sql, root, ""):
            yield ref

    def key(self, root: str) -> bytes | None:
        rows = self._query("SELECT key FROM payload_key WHERE root=?", (root,))
        return decode.require_stored_bytes("payload_key", root, rows[0][0]) if rows else None

    def definition(self, digest: str) -> bytes | None:
        rows = self._query("SELECT body FROM definition WHERE digest=?", (digest,))
        return decode.require_definition(digest, rows[0][0]) if rows else None

    def budget(self, run: str) -> list[BudgetRow]:
        return self._rows(
            decode.BUDGET_COLUMNS, "FROM budget WHERE run=? ORDER BY name", (run,), decode.decode_budget_row
        )

    def _rows(
        self,
        columns: decode.TableColumns,
        rest: str,
        values: tuple[Any, ...],
        read: Callable[[decode.StoreRow], T],
    ) -> list[T]:
        # Each row is gone when the next one comes: nothing to collect.
        with self._lock, StoreErrorTranslator(self.path):
            try:
                sql = f"SELECT {', '.join(columns)} {rest}"
                return [read(row) for row in self._reader.execute(sql, values)]
            except UnicodeDecodeError:
                sql = f"SELECT {decode.cast_text_columns(columns)} {rest}"
                return [
                    read(decode.decode_cast_row(columns, row)) for row in self._reader.execute(sql, values)
                ]

    def query(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Rows of tables that stand beside the tapes in the same file."""
        return self._query(sql, values)

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock, StoreErrorTranslator(self.path):
            return self._reader.execute(sql, values).fetchall()

    def quarantine(self, run: str, why: str) -> None:
        """Through a connection that writes, where one can be had: otherwise who drives the run puts it aside."""
        from steersman.adapters.storage.sqlite.store import SqliteJournal  # the writing half, for once

        with suppress(JournalError):
            writer = SqliteJournal(self.path, create=False, vfs=self._vfs)
            try:
                writer.quarantine(run, why)
            finally:
                writer.close()

    def lift_quarantine(self, run: str) -> bool:  # noqa: ARG002  a reader lifts nothing
        return False

    def quarantined(self) -> dict[str, str]:
        """Runs that were put aside, and runs whose open questions or inbox cannot be read now."""
        gates = self._rows(decode.GATE_COLUMNS, "FROM gate", (), _capture_broken_rows(decode.decode_gate))
        posts = self._rows(
            decode.INBOX_COLUMNS,
            "FROM inbox WHERE verdict IS NULL",
            (),
            _capture_broken_rows(decode.decode_posted_event),
        )
        now = {row.run: row.why for row in (*gates, *posts) if isinstance(row, decode.RowBroken)}
        return now | {str(run): str(why) for run, why in self._query("SELECT run, why FROM quarantine")}

    def list_strays(self) -> list[str]:
        return find_foreign_contents(self._query)

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file itself; empty: nothing."""
        problems = [str(row[0]) for row in self._query("PRAGMA integrity_check(20)")]
        return [] if problems == ["ok"] else problems

    def changed(self) -> int:
        with self._lock, StoreErrorTranslator(self.path):
            return int(self._reader.pragma("data_version"))

    def close(self) -> None:
        if self._reads is not None:
            self._reads.close()

    def _file(self, root: str, ref: str) -> "Path":
        from pathlib import Path  # slow to import, and only large payloads are files

        return Path(self.path).parent / "payloads" / root / ref


def _capture_broken_rows(
    read: Callable[[decode.StoreRow], T],
) -> Callable[[decode.StoreRow], T | decode.RowBroken]:
    """The row, or what is wrong with it: one that cannot be read does not hide the others."""

    def attempt(row: decode.StoreRow) -> T | decode.RowBroken:
        try:
            return read(row)
        except decode.RowBroken as error:
            return error.with_traceback(None)

    return attempt


def _bytes_or_repr(value: Any) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()  # never what was written


def find_foreign_contents(query: StoreQuery) -> list[str]:
    """What no run has put into a store: rows of runs it does not have, tables and triggers of others; one sentence each."""
    expected, present = _expected_schema_names(), set(query(SCHEMA_NAMES_QUERY))
    return [
        *(
            f"there is a {kind} {name}, which steersman has not made"
            for kind, name in sorted(present - expected)
        ),
        *(f"the {kind} {name} is missing" for kind, name in sorted(expected - present)),
        *(
            sentence
            for table in OWNED_TABLES
            if ("table", table) in present
            for sentence in _find_ownerless_rows(query, table)
        ),
    ]


def _expected_schema_names() -> set[Any]:
    """What the schema of this version makes."""
    from importlib.resources import files  # slow to import, and only an audit asks

    db = apsw.Connection(":memory:")
    try:
        for step in range(1, STORE_SCHEMA_VERSION + 1):
            db.execute(files("steersman.adapters.storage.sqlite").joinpath(f"sql/{step:03}.sql").read_text())
        return set(db.execute(SCHEMA_NAMES_QUERY).fetchall())
    finally:
        db.close()


def _find_ownerless_rows(query: StoreQuery, table: str) -> Iterator[str]:
    owner = f"{table}.{OWNED_TABLES[table]}"
    known = (
        f"SELECT 1 FROM head WHERE head.run = {owner} UNION ALL SELECT 1 FROM entry WHERE entry.run = {owner}"  # noqa: S608  constants
    )
    sql = f"SELECT DISTINCT CAST({owner} AS BLOB) FROM {table} WHERE NOT EXISTS ({known}) LIMIT {MAX_NAMED_RUNS}"  # noqa: S608  constants
    for (run,) in query(sql):
        yield f"there are rows in {table} of run {run.decode(errors='backslashreplace')}, which the store does not have"
