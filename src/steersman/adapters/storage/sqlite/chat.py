"""Conversations in the project's store, in tables of their own: no tape and no audit knows them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import msgspec
from msgspec.structs import replace

from steersman.adapters.storage.sqlite.reader import SqliteJournalReader
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.contracts.chat import ChatCall, ChatLimits, ChatMessage, ChatThread, ChatUsage
from steersman.errors import OverBudget, StaleError, UserError

_decode_chat_message = msgspec.json.Decoder(ChatMessage).decode
_encode_chat_message = msgspec.json.Encoder().encode
CHAT_THREAD_COLUMNS = "id, title, created, at, agent"
SPENT_QUERY = (
    "SELECT count(*), coalesce(sum(tokens), 0), coalesce(sum(micro_usd), 0),"
    " coalesce(sum(tokens IS NULL OR micro_usd IS NULL), 0) FROM chat_ask WHERE thread=?"
)


class SqliteChats:
    """Implements ports.chat.Chats on an open store; a reader is enough for reading."""

    def __init__(self, store: SqliteJournalReader) -> None:
        self._store = store

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        if not isinstance(self._store, SqliteJournal):
            raise TypeError("this store is open for reading only")
        with self._store.writing():
            yield self._store.connection

    def open(self, thread: ChatThread, key: bytes) -> None:
        values = (thread.id, thread.title, thread.created, thread.at, thread.agent, key)
        with self._writing() as db:
            try:
                db.execute("INSERT INTO chat_thread VALUES(?, ?, ?, ?, ?, ?)", values)
            except apsw.ConstraintError as error:
                raise StaleError(f"thread {thread.id} exists already") from error

    def thread(self, thread: str) -> ChatThread | None:
        rows = self._store.query(f"SELECT {CHAT_THREAD_COLUMNS} FROM chat_thread WHERE id=?", (thread,))  # noqa: S608  a constant
        return ChatThread(*rows[0]) if rows else None

    def threads(self, limit: int = 100) -> list[ChatThread]:
        sql = f"SELECT {CHAT_THREAD_COLUMNS} FROM chat_thread ORDER BY at DESC, id DESC LIMIT ?"  # noqa: S608  a constant
        return [ChatThread(*row) for row in self._store.query(sql, (limit,))]

    def find_threads(self, prefix: str) -> list[str]:
        sql = "SELECT id FROM chat_thread WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT 20"
        return [row[0] for row in self._store.query(sql, (len(prefix), prefix))]

    def key(self, thread: str) -> bytes | None:
        rows = self._store.query("SELECT key FROM chat_thread WHERE id=?", (thread,))
        return rows[0][0] if rows else None

    def add_question(self, message: ChatMessage) -> ChatMessage:
        with self._writing() as db:
            stored_message = _insert_chat_message(db, message)
            title = message.text.strip().partition("\n")[0][:100]
            db.execute(
                "UPDATE chat_thread SET at=max(at, ?), agent=?, title=CASE title WHEN '' THEN ? ELSE title END WHERE id=?",
                (message.at, message.asked[-1] if message.asked else "", title, message.thread),
            )
            return stored_message

    def messages(
        self, thread: str, *, before: int | None = None, last: int | None = None
    ) -> list[ChatMessage]:
        sql = "SELECT body FROM chat_message WHERE thread=? AND seq<? ORDER BY seq DESC LIMIT ?"
        values = (thread, before if before is not None else 2**53, last if last is not None else -1)
        return [_decode_chat_message(body) for (body,) in reversed(self._store.query(sql, values))]

    def count(self, thread: str) -> int:
        return int(self._store.query("SELECT count(*) FROM chat_message WHERE thread=?", (thread,))[0][0])

    def begin(self, ask: ChatCall, limits: ChatLimits) -> int:
        with self._writing() as db:
            _next_message_number(db, ask.thread)
            exceeded_limit = _parse_spent_row(next(db.execute(SPENT_QUERY, (ask.thread,)))).over(limits)
            if exceeded_limit:
                raise OverBudget(ask.thread, exceeded_limit)
            question_key = (ask.thread, ask.question, ask.agent)
            sql = "SELECT count(*) FROM chat_ask WHERE thread=? AND question=? AND agent=?"
            attempt = int(next(db.execute(sql, question_key))[0]) + 1
            sql = "INSERT INTO chat_ask(thread, question, agent, attempt, at) VALUES(?, ?, ?, ?, ?)"
            db.execute(sql, (*question_key, attempt, ask.at))
            return attempt

    def answer(self, message: ChatMessage) -> ChatMessage:
        with self._writing() as db:
            stored_message = _insert_chat_message(db, message)
            sql = (
                "UPDATE chat_ask SET answer=?, tokens=?, micro_usd=?"
                " WHERE thread=? AND question=? AND agent=? AND attempt=? AND answer IS NULL"
            )
            answer_values = (stored_message.seq, message.tokens, message.micro_usd)
            db.execute(sql, (*answer_values, message.thread, message.to, message.sender, message.attempt))
            if db.changes() != 1:
                raise StaleError(
                    f"question {message.to} of thread {message.thread} waits for no such answer of {message.sender}"
                )
            db.execute("UPDATE chat_thread SET at=max(at, ?) WHERE id=?", (message.at, message.thread))
            return stored_message

    def unanswered(self) -> list[ChatMessage]:
        sql = (
            "SELECT body FROM chat_message m WHERE EXISTS (SELECT max(attempt) FROM chat_ask a WHERE a.thread = m.thread"
            " AND a.question = m.seq GROUP BY agent HAVING answer IS NULL) ORDER BY thread, seq"
        )
        return [_decode_chat_message(body) for (body,) in self._store.query(sql, ())]

    def spent(self, thread: str) -> ChatUsage:
        return _parse_spent_row(self._store.query(SPENT_QUERY, (thread,))[0])

    def drop(self, thread: str) -> bool:
        with self._writing() as db:
            db.execute("DELETE FROM chat_thread WHERE id=?", (thread,))
            existed = db.changes() == 1
            db.execute("DELETE FROM chat_message WHERE thread=?", (thread,))
            db.execute("DELETE FROM chat_ask WHERE thread=?", (thread,))
            return existed


def _insert_chat_message(db: apsw.Connection, message: ChatMessage) -> ChatMessage:
    """At the end of its thread, also while others write there."""
    stored_message = replace(message, seq=_next_message_number(db, message.thread))
    db.execute(
        "INSERT INTO chat_message VALUES(?, ?, ?)",
        (message.thread, stored_message.seq, _encode_chat_message(stored_message)),
    )
    return stored_message


def _next_message_number(db: apsw.Connection, thread: str) -> int:
    sql = "SELECT coalesce((SELECT max(seq) FROM chat_message WHERE thread=?1), 0) + 1 FROM chat_thread WHERE id=?1"
    row = db.execute(sql, (thread,)).fetchone()
    if row is None:
        raise UserError(f"there is no thread {thread}: see `steersman chat threads`")
    return int(row[0])


def _parse_spent_row(row: tuple[Any, ...]) -> ChatUsage:
    return ChatUsage(*(int(figure) for figure in row))
