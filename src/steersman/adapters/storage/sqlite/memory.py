"""Memories in a database of their own beside the project's store, found by SQLite's full text search.

Words are indexed as hexadecimal digits: what people type is never a query's language, and every build of SQLite takes
texts apart alike. A connection lives as long as one call.
**Invariant:** what is forgotten is in no page, no index and no log any more.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import apsw
import msgspec

from steersman.adapters.storage.durable_files import create_file
from steersman.adapters.storage.sqlite.connection import (
    MIN_DATABASE_BYTES,
    enable_wal,
    hold_write_transaction,
    poll_while_busy,
)
from steersman.contracts.planning.context import MemoryPack, MemoryRecord
from steersman.contracts.planning.words import MemoryScope
from steersman.errors import MemoryUnavailable, NoMemory, UserError
from steersman.judges.planning.memory_words import (
    MAX_PACKED_MEMORIES,
    MEMORY_SCOPES,
    SearchTerm,
    build_memory_pack,
    build_memory_record,
    build_search_terms,
    memory_sort_key,
    split_memory_words,
)

MEMORY_APPLICATION_ID = 0x57EE6
MEMORY_SCHEMA_VERSION = 1
MAX_MEMORIES = 10_000
MEMORY_RANK_SCALE = 1_000_000_000  # a rank is an integer; a word that most texts have is worth a millionth
_decode_memory = msgspec.json.Decoder(MemoryRecord).decode
_encode_memory = msgspec.json.Encoder(order="deterministic").encode
_MEMORY_SEARCH_QUERY = (
    "SELECT cast(round(bm25(memory_words) * ?) AS INTEGER), body FROM memory_words JOIN memory ON number = memory_words.rowid"
    " WHERE memory_words MATCH ? AND instr(?, '|' || scope || '|') AND (? = '' OR subject = ?)"
)
_MEMORY_LIST_QUERY = (
    "SELECT body FROM memory WHERE instr(?, '|' || scope || '|') AND (? = '' OR subject = ?)"
    " ORDER BY created_at DESC, id LIMIT ?"
)


class SqliteMemories:
    """Implements ports.memory.Memories on a file; `known` are the values that are never kept."""

    def __init__(self, path: str, known: Callable[[], tuple[str, ...]] = lambda: ()) -> None:
        self._path, self._known = path, known

    def add(
        self,
        text: str,
        *,
        scope: str = "project",
        subject: str = "",
        tags: Sequence[str] = (),
        source: str = "",
        created_at: str,
    ) -> tuple[MemoryRecord, bool]:
        memory = build_memory_record(
            text,
            scope=scope,
            subject=subject,
            tags=tags,
            source=source,
            created_at=created_at,
            known=self._known(),
        )
        with self._open(create=True) as db, hold_write_transaction(db):
            row = db.execute("SELECT body FROM memory WHERE id = ?", (memory.id,)).fetchone()
            if row is not None:
                return _decode_memory(row[0]), False
            if db.execute("SELECT count(*) FROM memory").get >= MAX_MEMORIES:
                raise UserError(
                    f"there are {MAX_MEMORIES} memories already: forget some with `steersman memory forget`"
                )
            values = (
                memory.id,
                memory.scope,
                memory.subject,
                memory.created_at,
                _encode_memory(memory).decode(),
            )
            db.execute(
                "INSERT INTO memory(id, scope, subject, created_at, body) VALUES(?, ?, ?, ?, ?)", values
            )
            words = " ".join(
                map(
                    _encode_index_word,
                    split_memory_words(" ".join((memory.text, memory.subject, *memory.tags))),
                )
            )
            db.execute("INSERT INTO memory_words(rowid, words) VALUES(?, ?)", (db.last_insert_rowid(), words))
        return memory, True

    def search(
        self, query: str, *, scopes: Sequence[MemoryScope] = MEMORY_SCOPES, subject: str = "", limit: int = 20
    ) -> list[MemoryRecord]:
        with self._open() as db:
            return _search_memories(db, query, scopes, subject, limit)

    def entries(
        self, *, scopes: Sequence[MemoryScope] = MEMORY_SCOPES, subject: str = "", limit: int = 100
    ) -> list[MemoryRecord]:
        with self._open() as db:
            return _list_memories(db, scopes, subject, limit)

    def forget(self, name: str) -> bool:
        with self._open() as db:
            with hold_write_transaction(db):
                row = db.execute("SELECT number FROM memory WHERE id = ?", (name,)).fetchone()
                if row is None:
                    return False
                db.execute("DELETE FROM memory WHERE number = ?", row)
                db.execute("DELETE FROM memory_words WHERE rowid = ?", row)
                db.execute("INSERT INTO memory_words(memory_words) VALUES('optimize')")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return True

    def pack(
        self,
        query: str,
        project_id: str,
        *,
        scopes: Sequence[MemoryScope] = MEMORY_SCOPES,
        threshold: int = 1,
    ) -> MemoryPack:
        with self._open() as db:
            matches = _search_memories(db, query, scopes, "", MAX_PACKED_MEMORIES)
            all_memories = _list_memories(db, scopes, "", MAX_MEMORIES)
        return build_memory_pack(query, project_id, tuple(scopes), threshold, matches, all_memories)

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[apsw.Connection]:
        if not create and not os.path.lexists(self._path):
            raise NoMemory(
                "nothing is remembered here yet: `steersman init` keeps the first, `steersman memory add` any other"
            )
        try:
            if not os.path.lexists(self._path):
                _create_memory_file(self._path)
            db = _connect_memory(self._path)
            try:
                yield db
            finally:
                db.close()
        except (apsw.Error, OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise MemoryUnavailable(
                f"the memories in {self._path} cannot be used ({error})", _memory_recovery_advice(self._path)
            ) from error


def _memory_recovery_advice(path: str) -> str:
    """A command for a shell; what lies beside the file goes with it, for its log would be read into a new one."""
    import shlex

    quoted_path = shlex.quote(path)
    quoted_aside = shlex.quote(os.path.join(os.path.dirname(path), "aside.XXXXXX"))
    return f'restore the file from a backup, or move it aside and start again: `mv {quoted_path}* "$(mktemp -d {quoted_aside})"`'


def _connect_memory(path: str) -> apsw.Connection:
    # SQLite takes an empty file for a new database; a file of memories is never empty.
    if os.path.getsize(path) < MIN_DATABASE_BYTES:
        raise OSError(f"it has {os.path.getsize(path)} bytes")
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_handler(poll_while_busy)
        _refuse_foreign_memory(db)
        enable_wal(db)
        for pragma in ("synchronous=FULL", "fullfsync=ON", "secure_delete=ON", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def _create_memory_file(path: str) -> None:
    """A new file appears whole, with its tables in it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with suppress(FileExistsError):  # another process was quicker
        create_file(path, _blank_memory_bytes(), 0o644)


def _blank_memory_bytes() -> bytes:
    from importlib.resources import files

    db = apsw.Connection(":memory:")
    try:
        db.execute(files("steersman.adapters.storage.sqlite").joinpath("sql/memory_001.sql").read_text())
        db.execute(
            f"PRAGMA application_id={MEMORY_APPLICATION_ID}; PRAGMA user_version={MEMORY_SCHEMA_VERSION}"
        )
        return db.serialize("main")
    finally:
        db.close()


def _refuse_foreign_memory(db: apsw.Connection) -> None:
    """A file of another program, or of a later version, is left alone."""
    version, application = next(
        db.execute("SELECT user_version, application_id FROM pragma_user_version, pragma_application_id")
    )
    if application != MEMORY_APPLICATION_ID:
        raise OSError("it is a database, but not one of steersman")
    if version != MEMORY_SCHEMA_VERSION:
        raise OSError(f"another steersman has written it, in form {version}")


def _search_memories(
    db: apsw.Connection, query: str, scopes: Sequence[str], subject: str, limit: int
) -> list[MemoryRecord]:
    terms = build_search_terms(query)
    if not terms:
        return []
    match_query = " OR ".join(map(_render_search_term, terms))
    rows: list[Any] = db.execute(
        _MEMORY_SEARCH_QUERY, (MEMORY_RANK_SCALE, match_query, _join_memory_scopes(scopes), subject, subject)
    ).fetchall()
    ranked_memories = [(rank, _decode_memory(body)) for rank, body in rows]
    return [memory for _, memory in sorted(ranked_memories, key=lambda pair: memory_sort_key(*pair))][:limit]


def _list_memories(
    db: apsw.Connection, scopes: Sequence[str], subject: str, limit: int
) -> list[MemoryRecord]:
    rows: list[Any] = db.execute(
        _MEMORY_LIST_QUERY, (_join_memory_scopes(scopes), subject, subject, limit)
    ).fetchall()
    return [_decode_memory(body) for (body,) in rows]


def _join_memory_scopes(scopes: Sequence[str]) -> str:
    return "|" + "|".join(scopes) + "|"


def _encode_index_word(word: str) -> str:
    return f"w{word.encode().hex()}"


def _render_search_term(term: SearchTerm) -> str:
    return f'"{_encode_index_word(term.word)}"{"*" * term.begins}'
