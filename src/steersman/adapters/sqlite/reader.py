"""Reading a store: one connection, nothing grown, nothing written. Whoever only looks needs no more than this."""

import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from steersman.adapters.sqlite.connection import open_store, told
from steersman.adapters.sqlite.turns import patient
from steersman.errors import StoreBroken
from steersman.ports.journal import BudgetRow, Gate, Head, Posted

if TYPE_CHECKING:
    from pathlib import Path

_read = msgspec.json.decode

COLUMNS = "run, root, parent, machine, definition, title, state, status, outcome, seq, hash, epoch, created, at, due"
PAGE = 500  # rows of a long list that are read at once
OPEN = "status IN ('working', 'waiting for you', 'waiting until')"


class SqliteReader:
    """The reading half of ports.journal.Journal."""

    def __init__(self, path: str | os.PathLike[str], *, only: bool = True, vfs: str | None = None) -> None:
        """`only`: nobody is going to write through this one, so its connection leaves the WAL alone."""
        self.path = os.fspath(path)
        self._lock = threading.RLock()
        self._only, self._vfs = only, vfs
        self._reads: apsw.Connection | None = None

    @property
    def _reader(self) -> apsw.Connection:
        if self._reads is None:
            with told(self.path):
                self._reads = open_store(self.path, patient, create=False, reading=self._only, vfs=self._vfs)
        return self._reads

    def pending(self, run: str) -> list[Posted]:
        sql = "SELECT id, run, kind, body, at FROM inbox WHERE run=? AND verdict IS NULL ORDER BY id"
        return [Posted(i, r, k, _read(b), at) for i, r, k, b, at in self._query(sql, (run,))]

    def verdict(self, posted: int) -> dict[str, Any] | None:
        rows = self._query("SELECT verdict FROM inbox WHERE id=?", (posted,))
        return _read(rows[0][0]) if rows and rows[0][0] is not None else None

    def gates(self, run: str | None = None) -> list[Gate]:
        where, values = ("WHERE run=?", (run,)) if run else ("", ())
        sql = f"SELECT body, digest, answer, person FROM gate {where} ORDER BY id"  # noqa: S608  two constants
        return [_gate(*row) for row in self._query(sql, values)]

    def gate(self, gate: str) -> Gate | None:
        rows = self._query("SELECT body, digest, answer, person FROM gate WHERE id=?", (gate,))
        return _gate(*rows[0]) if rows else None

    def head(self, run: str) -> Head | None:
        rows = self._query(f"SELECT {COLUMNS} FROM head WHERE run=?", (run,))  # noqa: S608  a constant
        return _head(rows[0]) if rows else None

    def heads(self, *, unfinished: bool = False, limit: int = 1000) -> list[Head]:
        where = f"WHERE {OPEN}" if unfinished else ""
        sql = f"SELECT {COLUMNS} FROM head {where} ORDER BY created DESC, run DESC LIMIT ?"  # noqa: S608  constants
        return self._heads(sql, (limit,))

    def matching(self, prefix: str) -> list[str]:
        sql = "SELECT run FROM head WHERE run >= ? AND run < ? ORDER BY run LIMIT 20"
        return [row[0] for row in self._query(sql, (prefix, prefix + "\U0010ffff"))]

    def traces(self) -> list[str]:
        sql = "SELECT run FROM head UNION SELECT run FROM entry UNION SELECT run FROM snapshot ORDER BY 1"
        return [str(row[0]) for row in self._query(sql)]

    def children(self, run: str) -> list[Head]:
        sql = f"SELECT {COLUMNS} FROM head WHERE parent=? ORDER BY created, run"  # noqa: S608  a constant
        return self._heads(sql, (run,)) if run else []

    def tree(self, root: str) -> list[Head]:
        sql = f"SELECT {COLUMNS} FROM head WHERE root=? ORDER BY created, run"  # noqa: S608  a constant
        return self._heads(sql, (root,))

    def due(self, now: int) -> list[Head]:
        sql = f"SELECT {COLUMNS} FROM head WHERE due IS NOT NULL AND due <= ? ORDER BY due, run LIMIT 1000"  # noqa: S608  a constant
        return self._heads(sql, (now,))

    def rows(self, run: str, after: int = 0) -> Iterator[tuple[int, bytes, str]]:
        sql = "SELECT seq, body, hash FROM entry WHERE run=? AND seq>? ORDER BY seq LIMIT ?"
        for seq, body, hash_ in self._pages(sql, run, after):
            yield seq, _bytes(body), _hex(hash_)

    def _pages(self, sql: str, owner: str, after: Any) -> Iterator[Any]:
        """Rows a page at a time: a reader that dawdles holds no transaction, so the others see what is new."""
        while page := self._query(sql, (owner, after, PAGE)):
            yield from page
            after = page[-1][0]

    def snapshot(self, run: str) -> tuple[int, bytes] | None:
        rows = self._query("SELECT seq, body FROM snapshot WHERE run=?", (run,))
        return (rows[0][0], _bytes(rows[0][1])) if rows else None

    def payload(self, root: str, ref: str) -> bytes | None:
        rows = self._query("SELECT body, size FROM payload WHERE root=? AND ref=?", (root, ref))
        if not rows:
            return None
        body, size = rows[0]
        try:
            data = self._file(root, ref).read_bytes() if body is None else _bytes(body)
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
        return rows[0][0] if rows else None

    def definition(self, digest: str) -> bytes | None:
        rows = self._query("SELECT body FROM definition WHERE digest=?", (digest,))
        return rows[0][0] if rows else None

    def budget(self, run: str) -> list[BudgetRow]:
        sql = "SELECT name, spent, reserved, bound FROM budget WHERE run=? ORDER BY name"
        return [BudgetRow(*row) for row in self._query(sql, (run,))]

    def _heads(self, sql: str, values: tuple[Any, ...]) -> list[Head]:
        with self._lock, told(self.path):  # each row is gone when the next one comes: nothing to collect
            return [_head(row) for row in self._reader.execute(sql, values)]

    def query(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Rows of tables that stand beside the tapes in the same file."""
        return self._query(sql, values)

    def _query(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._lock, told(self.path):
            return self._reader.execute(sql, values).fetchall()

    def quarantine(self, run: str, why: str) -> None:
        """Whoever only looks puts nothing aside; who drives the run will."""

    def release(self, run: str) -> bool:  # noqa: ARG002  whoever only looks lifts nothing either
        return False

    def quarantined(self) -> dict[str, str]:
        return dict(self._query("SELECT run, why FROM quarantine"))

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file itself; empty: nothing."""
        told = [str(row[0]) for row in self._query("PRAGMA integrity_check(20)")]
        return [] if told == ["ok"] else told

    def changed(self) -> int:
        with self._lock, told(self.path):
            return int(self._reader.pragma("data_version"))

    def close(self) -> None:
        if self._reads is not None:
            self._reads.close()

    def _file(self, root: str, ref: str) -> "Path":
        from pathlib import Path  # slow to import, and only large payloads are files

        return Path(self.path).parent / "payloads" / root / ref


def _head(row: tuple[Any, ...]) -> Head:
    (
        run,
        root,
        parent,
        machine,
        definition,
        title,
        state,
        status,
        outcome,
        seq,
        hash_,
        epoch,
        created,
        at,
        due,
    ) = row
    hex_ = hash_.hex() if hash_.__class__ is bytes else repr(hash_)
    return Head(
        run,
        root,
        parent,
        machine,
        definition,
        title,
        state,
        status,
        outcome,
        seq,
        hex_,
        epoch,
        created,
        at,
        due,
    )


def _gate(body: bytes, digest: str, answer: str, person: str) -> Gate:
    """The columns count: an answer is held against them."""
    return msgspec.structs.replace(_read(body, type=Gate), digest=digest, answer=answer, person=person)


def _hex(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else repr(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()  # never what was written
