"""The SQLite store, through apsw alone: another SQLite library opening the same file would drop its locks."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.adapters.storage.sqlite.store import SqliteJournal

__all__ = ["SqliteJournal"]


def __getattr__(name: str) -> Any:
    """The writing half is imported when it is asked for: listing runs does not need it."""
    if name != "SqliteJournal":
        raise AttributeError(name)
    from steersman.adapters.storage.sqlite.store import SqliteJournal

    return SqliteJournal
