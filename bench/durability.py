"""The one meaning of durable for every contender: WAL with synchronous=FULL, checked and not assumed."""

import sqlite3
from pathlib import Path

FULL = 2


def full(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The same connection, now syncing each commit."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (FULL,)
    return connection


def full_file(path: Path) -> Path:
    """A database file in WAL mode, for a contender that opens its own connections with SQLite's defaults."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (FULL,), (
        "SQLite was built with another default"
    )
    connection.close()
    return path
