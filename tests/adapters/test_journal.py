"""Both journals keep the promises of their port."""

import pytest

from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.testing.conformance_journal import JournalConformance
from steersman.testing.memory import MemoryJournal


class TestSqlite(JournalConformance):
    """The store on disk."""

    @pytest.fixture
    def journal(self, tmp_path):
        return SqliteJournal(tmp_path / "store.db")


class TestMemory(JournalConformance):
    """The store in memory."""

    @pytest.fixture
    def journal(self):
        return MemoryJournal()
