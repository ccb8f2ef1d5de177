"""Reads a store through one connection: nothing is written, and the file does not grow."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import apsw
import msgspec
from msgspec.structs import replace

from steersman.adapters.storage.sqlite.connection import (
    STORE_SCHEMA_VERSION,
    StoreErrorTranslator,
    open_store,
    poll_while_busy,
)
from steersman.errors import JournalError, StoreBroken
from steersman.ports.journal import UNFINISHED_STATUSES, BudgetRow, Gate, Head, InboxItem

if TYPE_CHECKING:
    from pathlib import Path

# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Rows as values: what the columns of a store hold when they are whole.
#
# **Invariant:** a row that does not fit is a StoreBroken that names its run and its table; nothing in it is guessed.


TableColumns = Mapping[str, tuple[type, ...]]
StoreRow = tuple[Any, ...]

_TEXT_TYPES = (str,)
_NUMBER_TYPES = (int,)
_BYTES_TYPES = (bytes,)
_OPTIONAL_NUMBER_TYPES = (int, NoneType)
_DOCUMENT_TYPES = (bytes, str)
HEAD_COLUMNS: TableColumns = dict.fromkeys(
    ("run", "root", "parent", "machine", "definition", "title", "state", "status", "outcome"), _TEXT_TYPES
) | {
    "seq": _NUMBER_TYPES,
    "hash": _BYTES_TYPES,
    "epoch": _NUMBER_TYPES,
    "created": _NUMBER_TYPES,
    "at": _NUMBER_TYPES,
    "due": _OPTIONAL_NUMBER_TYPES,
}
GATE_COLUMNS: TableColumns = {
    "run": _TEXT_TYPES,
    "id": _TEXT_TYPES,
    "body": _DOCUMENT_TYPES,
    "digest": _TEXT_TYPES,
    "answer": _TEXT_TYPES,
    "person": _TEXT_TYPES,
}
INBOX_COLUMNS: TableColumns = {
    "run": _TEXT_TYPES,
    "id": _NUMBER_TYPES,
    "kind": _TEXT_TYPES,
    "body": _DOCUMENT_TYPES,
    "at": _NUMBER_TYPES,
}
BUDGET_COLUMNS: TableColumns = {
    "run": _TEXT_TYPES,
    "name": _TEXT_TYPES,
    "spent": _NUMBER_TYPES,
    "reserved": _NUMBER_TYPES,
    "bound": _OPTIONAL_NUMBER_TYPES,
}
HEAD_STATUSES = (*UNFINISHED_STATUSES, "done", "stopped")
BROKEN_STATUS = "broken"

_HEAD_TYPES_WITH_DUE = tuple(types[0] for types in HEAD_COLUMNS.values())
_VALID_HEAD_TYPES = ((*_HEAD_TYPES_WITH_DUE[:-1], NoneType), _HEAD_TYPES_WITH_DUE)
_decode_gate_json = msgspec.json.Decoder(Gate).decode
_decode_body_json = msgspec.json.Decoder(dict[str, Any]).decode


class RowBroken(StoreBroken):
    """One run's row does not hold what it should."""

    def __init__(self, table: str, run: Any, why: str) -> None:
        self.run, self.why = _run_name_text(run), f"its row in {table} cannot be read: {why}"
        super().__init__(
            f"run {self.run}: {self.why}; the other runs go on: see `steersman audit verify {self.run}`"
        )


def cast_text_columns(columns: TableColumns) -> str:
    """The same with every text as the bytes it is: some may not be UTF-8."""
    return ", ".join(f"CAST({c} AS BLOB) AS {c}" if kind == _TEXT_TYPES else c for c, kind in columns.items())


def decode_cast_row(columns: TableColumns, row: StoreRow) -> StoreRow:
    """A row of those: bytes stay where no text can be read."""
    return tuple(
        _decode_text_or_bytes(v) if kind == _TEXT_TYPES else v
        for v, kind in zip(row, columns.values(), strict=True)
    )


def _decode_text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def decode_head(row: StoreRow) -> Head:
    """One run's row."""
    if tuple(map(type, row)) not in _VALID_HEAD_TYPES:
        _refuse_wrong_types("head", HEAD_COLUMNS, row)
    if row[7] not in HEAD_STATUSES:
        raise RowBroken("head", row[0], f"no run is {row[7]!r}")
    values = list(row)
    values[10] = row[10].hex()
    return Head(*values)


def decode_listed_head(row: StoreRow) -> Head:
    """The same for a list: a row that does not fit is called broken, and the others go on."""
    try:
        return decode_head(row)
    except StoreBroken:
        values = [
            v if type(v) in kind else kind[0]() for v, kind in zip(row, HEAD_COLUMNS.values(), strict=True)
        ]
        values[0], values[7], values[10], values[14] = _run_name_text(row[0]), BROKEN_STATUS, "", None
        return Head(*values)


def decode_gate(row: StoreRow) -> Gate:
    """An open question; its columns count: an answer is held against them."""
    _refuse_wrong_types("gate", GATE_COLUMNS, row)
    run, _, body, digest, answer, person = row
    try:
        stored_gate = _decode_gate_json(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RowBroken("gate", run, str(error)) from error
    if stored_gate.run != run:
        raise RowBroken("gate", run, f"it says that run {stored_gate.run} asks")
    return replace(stored_gate, digest=digest, answer=answer, person=person)


def decode_posted_event(row: StoreRow) -> InboxItem:
    """An external event."""
    _refuse_wrong_types("inbox", INBOX_COLUMNS, row)
    run, number, kind, body, at = row
    try:
        return InboxItem(number, run, kind, _decode_body_json(body), at)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RowBroken("inbox", run, str(error)) from error


def decode_budget_row(row: StoreRow) -> BudgetRow:
    """One figure of a run's budget."""
    _refuse_wrong_types("budget", BUDGET_COLUMNS, row)
    return BudgetRow(*row[1:])


def decode_verdict(number: int, body: Any) -> dict[str, Any]:
    """What became of an external event."""
    try:
        return _decode_body_json(require_stored_bytes("inbox", str(number), body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable_store_error(f"inbox {number}", str(error)) from error


def require_definition(digest: str, body: Any) -> bytes:
    """The definition of a machine as it was kept."""
    try:
        _decode_body_json(require_stored_bytes("definition", digest, body))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unreadable_store_error(f"definition {digest}", str(error)) from error
    return bytes(body)


def require_stored_bytes(table: str, row_key: str, value: Any) -> bytes:
    """Bytes as they were kept."""
    if not isinstance(value, bytes):
        raise _unreadable_store_error(f"{table} {row_key}", f"it is {_describe_column_value(value)}")
    return value


def _refuse_wrong_types(table: str, columns: TableColumns, row: StoreRow) -> None:
    """StoreBroken for the first column that holds something else than it should."""
    for value, (column, kind) in zip(row, columns.items(), strict=True):
        if type(value) not in kind:
            raise RowBroken(table, row[0], f"{column} is {_describe_column_value(value)}")


def _unreadable_store_error(what: str, why: str) -> StoreBroken:
    return StoreBroken(
        f"{what} cannot be read ({why}): restore the store from a backup; `steersman audit verify` says which runs still fit"
    )


def _run_name_text(run: Any) -> str:
    return run if isinstance(run, str) else repr(run)


def _describe_column_value(value: Any) -> str:
    kinds = {str: "text", bytes: "bytes", int: "a number", float: "a fraction"}
    return kinds.get(type(value), "nothing")


# ── the reader ─────────────────────────────────────────────────────────────────────────────────────────────────────


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
        return self._rows(INBOX_COLUMNS, rest, (run,), decode_posted_event)

    def verdict(self, posted: int) -> dict[str, Any] | None:
        rows = self._query("SELECT verdict FROM inbox WHERE id=?", (posted,))
        return decode_verdict(posted, rows[0][0]) if rows and rows[0][0] is not None else None

    def gates(self, run: str | None = None) -> list[Gate]:
        if run:
            return self._rows(GATE_COLUMNS, "FROM gate WHERE run=? ORDER BY id", (run,), decode_gate)
        gate_rows = self._rows(GATE_COLUMNS, "FROM gate ORDER BY id", (), _capture_broken_rows(decode_gate))
        return [g for g in gate_rows if isinstance(g, Gate)]

    def gate(self, gate: str) -> Gate | None:
        rows = self._rows(GATE_COLUMNS, "FROM gate WHERE id=?", (gate,), decode_gate)
        return rows[0] if rows else None

    def head(self, run: str) -> Head | None:
        rows = self._rows(HEAD_COLUMNS, "FROM head WHERE run=?", (run,), decode_head)
        return rows[0] if rows else None

    def heads(self, *, unfinished: bool = False, limit: int = 1000) -> list[Head]:
        where = f"WHERE {UNFINISHED_CONDITION}" if unfinished else ""
        rest = f"FROM head {where} ORDER BY created DESC, run DESC LIMIT ?"
        return self._rows(HEAD_COLUMNS, rest, (limit,), decode_listed_head)

    def find_runs(self, prefix: str) -> list[str]:
        sql = "SELECT run FROM head WHERE run >= ? AND run < ? ORDER BY run LIMIT 20"
        return [row[0] for row in self._query(sql, (prefix, prefix + "\U0010ffff"))]

    def list_traced_runs(self) -> list[str]:
        sql = "SELECT run FROM head UNION SELECT run FROM entry UNION SELECT run FROM snapshot ORDER BY 1"
        return [str(row[0]) for row in self._query(sql)]

    def children(self, run: str) -> list[Head]:
        rest = "FROM head WHERE parent=? ORDER BY created, run"
        return self._rows(HEAD_COLUMNS, rest, (run,), decode_head) if run else []

    def tree(self, root: str) -> list[Head]:
        return self._rows(HEAD_COLUMNS, "FROM head WHERE root=? ORDER BY created, run", (root,), decode_head)

    def due(self, now: int) -> list[Head]:
        rest = "FROM head WHERE due IS NOT NULL AND due <= ? ORDER BY due, run LIMIT 1000"
        return [h for h in self._rows(HEAD_COLUMNS, rest, (now,), decode_listed_head) if h.due is not None]

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
        return require_stored_bytes("payload_key", root, rows[0][0]) if rows else None

    def definition(self, digest: str) -> bytes | None:
        rows = self._query("SELECT body FROM definition WHERE digest=?", (digest,))
        return require_definition(digest, rows[0][0]) if rows else None

    def budget(self, run: str) -> list[BudgetRow]:
        return self._rows(BUDGET_COLUMNS, "FROM budget WHERE run=? ORDER BY name", (run,), decode_budget_row)

    def _rows(
        self,
        columns: TableColumns,
        rest: str,
        values: tuple[Any, ...],
        read: Callable[[StoreRow], T],
    ) -> list[T]:
        # Each row is gone when the next one comes: nothing to collect.
        with self._lock, StoreErrorTranslator(self.path):
            try:
                sql = f"SELECT {', '.join(columns)} {rest}"
                return [read(row) for row in self._reader.execute(sql, values)]
            except UnicodeDecodeError:
                sql = f"SELECT {cast_text_columns(columns)} {rest}"
                return [read(decode_cast_row(columns, row)) for row in self._reader.execute(sql, values)]

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
        gates = self._rows(GATE_COLUMNS, "FROM gate", (), _capture_broken_rows(decode_gate))
        posts = self._rows(
            INBOX_COLUMNS,
            "FROM inbox WHERE verdict IS NULL",
            (),
            _capture_broken_rows(decode_posted_event),
        )
        now = {row.run: row.why for row in (*gates, *posts) if isinstance(row, RowBroken)}
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
    read: Callable[[StoreRow], T],
) -> Callable[[StoreRow], T | RowBroken]:
    """The row, or what is wrong with it: one that cannot be read does not hide the others."""

    def attempt(row: StoreRow) -> T | RowBroken:
        try:
            return read(row)
        except RowBroken as error:
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
