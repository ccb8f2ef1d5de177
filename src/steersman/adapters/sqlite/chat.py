"""Conversations in the project's store, in tables of their own: no tape and no audit knows them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import msgspec
from msgspec.structs import replace

from steersman.adapters.sqlite.reader import SqliteReader
from steersman.adapters.sqlite.store import SqliteJournal
from steersman.contracts.chat import Ask, Limits, Message, Spent, Thread
from steersman.errors import OverBudget, StaleError, UserError

_read = msgspec.json.Decoder(Message).decode
_json = msgspec.json.Encoder().encode
COLUMNS = "id, title, created, at, agent"
SPENT = (
    "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(micro_usd), 0),"
    " coalesce(sum(tokens IS NULL OR micro_usd IS NULL), 0) FROM chat_ask WHERE thread=?"
)


class SqliteChats:
    """Implements ports.chat.Chats on a store that is open; whoever only reads hands a reader over."""

    def __init__(self, store: SqliteReader) -> None:
        self._store = store

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        if not isinstance(self._store, SqliteJournal):
            raise TypeError("this store is open for reading only")
        with self._store.writing():
            yield self._store.connection

    def open(self, thread: Thread, key: bytes) -> None:
        values = (thread.id, thread.title, thread.created, thread.at, thread.agent, key)
        with self._writing() as db:
            try:
                db.execute("INSERT INTO chat_thread VALUES(?, ?, ?, ?, ?, ?)", values)
            except apsw.ConstraintError as error:
                raise StaleError(f"thread {thread.id} exists already") from error

    def thread(self, thread: str) -> Thread | None:
        rows = self._store.query(f"SELECT {COLUMNS} FROM chat_thread WHERE id=?", (thread,))  # noqa: S608  a constant
        return Thread(*rows[0]) if rows else None

    def threads(self, limit: int = 100) -> list[Thread]:
        sql = f"SELECT {COLUMNS} FROM chat_thread ORDER BY at DESC, id DESC LIMIT ?"  # noqa: S608  a constant
        return [Thread(*row) for row in self._store.query(sql, (limit,))]

    def matching(self, prefix: str) -> list[str]:
        sql = "SELECT id FROM chat_thread WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT 20"
        return [row[0] for row in self._store.query(sql, (len(prefix), prefix))]

    def key(self, thread: str) -> bytes | None:
        rows = self._store.query("SELECT key FROM chat_thread WHERE id=?", (thread,))
        return rows[0][0] if rows else None

    def say(self, message: Message) -> Message:
        with self._writing() as db:
            kept = _put(db, message)
            title = message.text.strip().partition("\n")[0][:100]
            db.execute(
                "UPDATE chat_thread SET at=max(at, ?), agent=?, title=CASE title WHEN '' THEN ? ELSE title END WHERE id=?",
                (message.at, message.asked[-1] if message.asked else "", title, message.thread),
            )
            return kept

    def messages(self, thread: str, *, before: int | None = None, last: int | None = None) -> list[Message]:
        sql = "SELECT body FROM chat_message WHERE thread=? AND seq<? ORDER BY seq DESC LIMIT ?"
        values = (thread, before if before is not None else 2**53, last if last is not None else -1)
        return [_read(body) for (body,) in reversed(self._store.query(sql, values))]

    def count(self, thread: str) -> int:
        return int(self._store.query("SELECT count(*) FROM chat_message WHERE thread=?", (thread,))[0][0])

    def begin(self, ask: Ask, limits: Limits) -> int:
        with self._writing() as db:
            _next(db, ask.thread)
            over = _spent(db.execute(SPENT, (ask.thread,)).fetchone()).over(limits)
            if over:
                raise OverBudget(ask.thread, over)
            of = (ask.thread, ask.question, ask.agent)
            sql = "SELECT count(*) FROM chat_ask WHERE thread=? AND question=? AND agent=?"
            attempt = int(db.execute(sql, of).fetchone()[0]) + 1
            sql = "INSERT INTO chat_ask(thread, question, agent, attempt, at) VALUES(?, ?, ?, ?, ?)"
            db.execute(sql, (*of, attempt, ask.at))
            return attempt

    def answer(self, message: Message) -> Message:
        with self._writing() as db:
            kept = _put(db, message)
            sql = (
                "UPDATE chat_ask SET answer=?, tokens=?, micro_usd=?"
                " WHERE thread=? AND question=? AND agent=? AND attempt=? AND answer IS NULL"
            )
            told = (kept.seq, message.tokens, message.micro_usd)
            db.execute(sql, (*told, message.thread, message.to, message.sender, message.attempt))
            if db.changes() != 1:
                raise StaleError(
                    f"question {message.to} of thread {message.thread} waits for no such answer of {message.sender}"
                )
            db.execute("UPDATE chat_thread SET at=max(at, ?) WHERE id=?", (message.at, message.thread))
            return kept

    def unanswered(self) -> list[Message]:
        sql = (
            "SELECT body FROM chat_message m WHERE EXISTS (SELECT max(attempt) FROM chat_ask a WHERE a.thread = m.thread"
            " AND a.question = m.seq GROUP BY agent HAVING answer IS NULL) ORDER BY thread, seq"
        )
        return [_read(body) for (body,) in self._store.query(sql, ())]

    def spent(self, thread: str) -> Spent:
        return _spent(self._store.query(SPENT, (thread,))[0])

    def drop(self, thread: str) -> bool:
        with self._writing() as db:
            db.execute("DELETE FROM chat_thread WHERE id=?", (thread,))
            there = db.changes() == 1
            db.execute("DELETE FROM chat_message WHERE thread=?", (thread,))
            db.execute("DELETE FROM chat_ask WHERE thread=?", (thread,))
            return there


def _put(db: apsw.Connection, message: Message) -> Message:
    """At the end of its thread, whoever else speaks there."""
    kept = replace(message, seq=_next(db, message.thread))
    db.execute("INSERT INTO chat_message VALUES(?, ?, ?)", (message.thread, kept.seq, _json(kept)))
    return kept


def _next(db: apsw.Connection, thread: str) -> int:
    sql = "SELECT coalesce((SELECT max(seq) FROM chat_message WHERE thread=?1), 0) + 1 FROM chat_thread WHERE id=?1"
    row = db.execute(sql, (thread,)).fetchone()
    if row is None:
        raise UserError(f"there is no thread {thread}: see `steersman chat threads`")
    return int(row[0])


def _spent(row: tuple[Any, ...]) -> Spent:
    return Spent(*(int(figure) for figure in row))
