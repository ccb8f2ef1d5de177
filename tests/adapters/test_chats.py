"""Every adapter of the Chats port passes the same suite; the one on disk keeps what it has acknowledged."""

import pytest

from steersman.adapters.process.process_table import find_recorded_effect
from steersman.adapters.storage.sqlite.chat import SqliteChats
from steersman.adapters.storage.sqlite.reader import SqliteJournalReader
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.testing.conformance_chat import CHAT_THREAD, ChatsConformance, sample_question


class TestSqlite(ChatsConformance):
    """The store on disk."""

    @pytest.fixture
    def chats(self, tmp_path):
        store = SqliteJournal(tmp_path / "store.db")
        yield SqliteChats(store)
        store.close()


def test_a_new_process_finds_everything(tmp_path):
    """What was said is there when the store is opened again, for reading too; a reader writes nothing."""
    store = SqliteJournal(tmp_path / "store.db")
    SqliteChats(store).open(CHAT_THREAD, b"k")
    SqliteChats(store).add_question(sample_question("kept"))
    store.close()
    reader = SqliteJournalReader(tmp_path / "store.db")
    chats = SqliteChats(reader)
    assert [m.text for m in chats.messages("chat-1")] == ["kept"]
    with pytest.raises(TypeError, match="reading only"):
        chats.add_question(sample_question())
    reader.close()


def test_no_tape_knows_a_chat(tmp_path):
    """Threads leave no trace among the runs."""
    store = SqliteJournal(tmp_path / "store.db")
    SqliteChats(store).open(CHAT_THREAD, b"k")
    SqliteChats(store).add_question(sample_question())
    assert (store.heads(), store.list_traced_runs(), store.find_runs("chat")) == ([], [], [])
    store.close()


def test_whoever_works_for_a_chat_is_known(tmp_path):
    """A process that was started for a thread of this store is no person."""
    store = SqliteJournal(tmp_path / "state" / "p" / "store.db")
    SqliteChats(store).open(CHAT_THREAD, b"k")
    store.close()
    state = str(tmp_path / "state" / "p")
    assert find_recorded_effect(state, ("chat-1:1:1",)) == "chat-1:1:1"
    assert find_recorded_effect(state, ("chat-9:1:1",)) == ""
