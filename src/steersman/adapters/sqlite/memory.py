"""Memories in a database of their own beside the project's store, found by SQLite's full text search.

Words are indexed as hexadecimal digits: what people type is never a query's language, and every build of SQLite takes
texts apart alike. A connection lives as long as one call.
**Invariant:** what is forgotten is in no page, no index and no log any more.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import apsw
import msgspec

from steersman.adapters.sqlite.connection import SMALLEST
from steersman.adapters.sqlite.turns import patient
from steersman.contracts.planning.context import Memory, MemoryPack
from steersman.contracts.planning.words import Scope
from steersman.errors import MemoryUnavailable, NoMemory, UserError
from steersman.judges.planning.remembering import (
    MOST_PACKED,
    SCOPES,
    Term,
    order,
    packed,
    remembered,
    terms_of,
    words_of,
)

NAME = "memory.db"
APPLICATION = 0x57EE6
SCHEMA = 1
MOST = 10_000
FINENESS = 1_000_000_000  # a rank is an integer; a word that most texts have is worth a millionth
_read = msgspec.json.Decoder(Memory).decode
_json = msgspec.json.Encoder(order="deterministic").encode
_SEARCH = (
    "SELECT cast(round(bm25(memory_words) * ?) AS INTEGER), body FROM memory_words JOIN memory ON number = memory_words.rowid"
    " WHERE memory_words MATCH ? AND instr(?, '|' || scope || '|') AND (? = '' OR subject = ?)"
)
_ENTRIES = (
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
    ) -> tuple[Memory, bool]:
        memory = remembered(
            text,
            scope=scope,
            subject=subject,
            tags=tags,
            source=source,
            created_at=created_at,
            known=self._known(),
        )
        with self._open(create=True) as db, _writing(db):
            row = db.execute("SELECT body FROM memory WHERE id = ?", (memory.id,)).fetchone()
            if row is not None:
                return _read(row[0]), False
            if db.execute("SELECT count(*) FROM memory").get >= MOST:
                raise UserError(
                    f"there are {MOST} memories already: forget some with `steersman memory forget`"
                )
            values = (memory.id, memory.scope, memory.subject, memory.created_at, _json(memory).decode())
            db.execute(
                "INSERT INTO memory(id, scope, subject, created_at, body) VALUES(?, ?, ?, ?, ?)", values
            )
            words = " ".join(map(_coded, words_of(" ".join((memory.text, memory.subject, *memory.tags)))))
            db.execute("INSERT INTO memory_words(rowid, words) VALUES(?, ?)", (db.last_insert_rowid(), words))
        return memory, True

    def search(
        self, query: str, *, scopes: Sequence[Scope] = SCOPES, subject: str = "", limit: int = 20
    ) -> list[Memory]:
        with self._open() as db:
            return _found(db, query, scopes, subject, limit)

    def entries(
        self, *, scopes: Sequence[Scope] = SCOPES, subject: str = "", limit: int = 100
    ) -> list[Memory]:
        with self._open() as db:
            return _entries(db, scopes, subject, limit)

    def forget(self, name: str) -> bool:
        with self._open() as db:
            with _writing(db):
                row = db.execute("SELECT number FROM memory WHERE id = ?", (name,)).fetchone()
                if row is None:
                    return False
                db.execute("DELETE FROM memory WHERE number = ?", row)
                db.execute("DELETE FROM memory_words WHERE rowid = ?", row)
                db.execute("INSERT INTO memory_words(memory_words) VALUES('optimize')")
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return True

    def pack(
        self, query: str, project_id: str, *, scopes: Sequence[Scope] = SCOPES, threshold: int = 1
    ) -> MemoryPack:
        with self._open() as db:
            fitting = _found(db, query, scopes, "", MOST_PACKED)
            rest = _entries(db, scopes, "", MOST)
        return packed(query, project_id, tuple(scopes), threshold, fitting, rest)

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[apsw.Connection]:
        if not create and not os.path.lexists(self._path):
            raise NoMemory(
                "nothing is remembered here yet: `steersman init` keeps the first, `steersman memory add` any other"
            )
        try:
            if not os.path.lexists(self._path):
                _make(self._path)
            db = _connected(self._path)
            try:
                yield db
            finally:
                db.close()
        except (apsw.Error, OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise MemoryUnavailable(
                f"the memories in {self._path} cannot be used ({error})", _way_out(self._path)
            ) from error


def _way_out(path: str) -> str:
    """A command for a shell; what lies beside the file goes with it, for its log would be read into a new one."""
    import shlex

    old, aside = shlex.quote(path), shlex.quote(os.path.join(os.path.dirname(path), "aside.XXXXXX"))
    return (
        f'restore the file from a backup, or move it aside and begin anew: `mv {old}* "$(mktemp -d {aside})"`'
    )


def _connected(path: str) -> apsw.Connection:
    # SQLite takes an empty file for a new database; one of ours is never empty.
    if os.path.getsize(path) < SMALLEST:
        raise OSError(f"it has {os.path.getsize(path)} bytes")
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_handler(patient)
        _refuse_foreign(db)
        _write_ahead(db)
        for pragma in ("synchronous=FULL", "fullfsync=ON", "secure_delete=ON", "trusted_schema=OFF"):
            db.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        db.close()
        raise
    return db


def _make(path: str) -> None:
    """A new file appears whole, its tables in it: nobody ever sees half of one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(part, "xb") as file:
            file.write(_blank())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # somebody was quicker
            os.link(part, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _blank() -> bytes:
    from importlib.resources import files

    db = apsw.Connection(":memory:")
    try:
        db.execute(files("steersman.adapters.sqlite").joinpath("sql/memory_001.sql").read_text())
        db.execute(f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={SCHEMA}")
        return db.serialize("main")
    finally:
        db.close()


def _refuse_foreign(db: apsw.Connection) -> None:
    """A file of somebody else, or of a later version, is left alone."""
    version, application = db.execute(
        "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id"
    ).fetchone()
    if application != APPLICATION:
        raise OSError("it is a database, but not one of ours")
    if version != SCHEMA:
        raise OSError(f"another steersman has written it, in form {version}")


def _write_ahead(db: apsw.Connection) -> None:
    """SQLite does not ask the busy handler when two open a new file at the same time."""
    tries = 0
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL").fetchall()
        except apsw.BusyError:
            if not patient(tries):
                raise
            tries += 1
        else:
            return


@contextmanager
def _writing(db: apsw.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _found(db: apsw.Connection, query: str, scopes: Sequence[str], subject: str, limit: int) -> list[Memory]:
    terms = terms_of(query)
    if not terms:
        return []
    wanted = " OR ".join(map(_term, terms))
    rows = db.execute(_SEARCH, (FINENESS, wanted, _listed(scopes), subject, subject)).fetchall()
    found = [(rank, _read(body)) for rank, body in rows]
    return [memory for _, memory in sorted(found, key=lambda pair: order(*pair))][:limit]


def _entries(db: apsw.Connection, scopes: Sequence[str], subject: str, limit: int) -> list[Memory]:
    rows: list[Any] = db.execute(_ENTRIES, (_listed(scopes), subject, subject, limit)).fetchall()
    return [_read(body) for (body,) in rows]


def _listed(scopes: Sequence[str]) -> str:
    return "|" + "|".join(scopes) + "|"


def _coded(word: str) -> str:
    return f"w{word.encode().hex()}"


def _term(term: Term) -> str:
    return f'"{_coded(term.word)}"{"*" * term.begins}'
