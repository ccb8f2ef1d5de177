"""The memories on disk pass the suite of their port, forget for good, and name what is wrong with their file."""

import apsw
import pytest

from steersman.adapters.storage.sqlite import memory as adapter
from steersman.adapters.storage.sqlite.memory import SqliteMemories
from steersman.errors import MemoryUnavailable, UserError
from steersman.testing.conformance_memory import (
    MEMORY_TIME,
    SENSITIVE_TEXT,
    MemoriesConformance,
    add_memories,
    memory_texts,
)


class TestSqlite(MemoriesConformance):
    """The database on disk."""

    @pytest.fixture
    def memories(self, tmp_path):
        return SqliteMemories(str(tmp_path / "state" / "memory.db"), lambda: (SENSITIVE_TEXT,))


def test_what_is_forgotten_is_in_no_file(tmp_path):
    """Neither its text nor its words, in no file beside the database either."""
    memories = SqliteMemories(str(tmp_path / "memory.db"))
    add_memories(memories, *(f"harmless {n}" for n in range(50)))
    (name,) = add_memories(memories, "the unmentionable zanzibar affair")
    trace = (b"zanzibar", b"zanzibar".hex().encode())
    assert any(t in path.read_bytes() for path in tmp_path.iterdir() for t in trace)
    memories.forget(name)
    assert not [path.name for path in tmp_path.iterdir() for t in trace if t in path.read_bytes()]
    assert len(memories.entries()) == 50


def broken(path):
    path.write_bytes(b"not a database " * 100)


def empty(path):
    path.write_bytes(b"")


def foreign(path):
    apsw.Connection(str(path)).execute("CREATE TABLE x(y)")


def newer(path):
    add_memories(SqliteMemories(str(path)), "x")
    apsw.Connection(str(path)).execute("PRAGMA user_version=99")


def half(path):
    add_memories(SqliteMemories(str(path)), "x")
    apsw.Connection(str(path)).execute("DROP TABLE memory")


def folder(path):
    path.mkdir()
    (path / "x").write_text("x" * 1000)


def odd(path):
    add_memories(SqliteMemories(str(path)), "x")
    apsw.Connection(str(path)).execute("UPDATE memory SET body = '{}'")


@pytest.mark.parametrize(
    "damage", [broken, empty, foreign, newer, half, folder, odd], ids=lambda f: f.__name__
)
def test_a_database_that_cannot_be_used(tmp_path, damage):
    """It is named with the next step, for readers and writers, and left as it is."""
    path = tmp_path / "memory.db"
    damage(path)
    memories = SqliteMemories(str(path))
    asks = (
        memories.entries,
        lambda: memories.pack("x", "shop"),
        lambda: memories.add("x", created_at=MEMORY_TIME),
        lambda: memories.forget("mem_000000000000"),
    )
    for ask in asks[:3] if damage is odd else asks:
        with pytest.raises(MemoryUnavailable, match=r"cannot be used .* restore the file"):
            ask()


def test_another_process_finds_everything(tmp_path):
    """What was added is there for whoever opens the file next, in whatever order they were made."""
    path = str(tmp_path / "memory.db")
    add_memories(SqliteMemories(path), "kept")
    assert memory_texts(SqliteMemories(path).search("kept")) == ["kept"]


def test_there_are_only_so_many(tmp_path, monkeypatch):
    """One too many is refused with the way out; the same one again is not."""
    monkeypatch.setattr(adapter, "MAX_MEMORIES", 2)
    memories = SqliteMemories(str(tmp_path / "memory.db"))
    add_memories(memories, "a", "b", "a")
    with pytest.raises(UserError, match="forget some"):
        add_memories(memories, "c")


def test_a_broken_step_leaves_nothing(tmp_path, monkeypatch):
    """A memory and its words are kept together or not at all."""
    memories = SqliteMemories(str(tmp_path / "memory.db"))
    add_memories(memories, "a")
    monkeypatch.setattr(adapter, "_encode_index_word", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        add_memories(memories, "b")
    monkeypatch.undo()
    assert memory_texts(memories.entries()) == ["a"]
