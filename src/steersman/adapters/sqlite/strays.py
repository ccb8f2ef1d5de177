"""What lies in a store that no run has put there: rows of runs that it does not have, tables and triggers of others."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import apsw

from steersman.adapters.sqlite.connection import SCHEMA

OWNED = {
    "gate": "run",
    "budget": "run",
    "inbox": "run",
    "quarantine": "run",
    "payload": "root",
    "payload_key": "root",
}
NAMES = "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
TOLD = 20  # runs named for a table

Query = Callable[[str], list[Any]]


def strays(query: Query) -> list[str]:
    """Each in a sentence; empty: nothing."""
    ours, there = _ours(), set(query(NAMES))
    return [
        *(f"there is a {kind} {name}, which steersman has not made" for kind, name in sorted(there - ours)),
        *(f"the {kind} {name} is missing" for kind, name in sorted(ours - there)),
        *(words for table in OWNED if ("table", table) in there for words in _rows(query, table)),
    ]


def _ours() -> set[Any]:
    """What the schema of this version makes."""
    db = apsw.Connection(":memory:")
    try:
        for step in range(1, SCHEMA + 1):
            db.execute(files("steersman.adapters.sqlite").joinpath(f"sql/{step:03}.sql").read_text())
        return set(db.execute(NAMES).fetchall())
    finally:
        db.close()


def _rows(query: Query, table: str) -> Iterator[str]:
    owner = f"{table}.{OWNED[table]}"
    known = (
        f"SELECT 1 FROM head WHERE head.run = {owner} UNION ALL SELECT 1 FROM entry WHERE entry.run = {owner}"  # noqa: S608  constants
    )
    sql = f"SELECT DISTINCT CAST({owner} AS BLOB) FROM {table} WHERE NOT EXISTS ({known}) LIMIT {TOLD}"  # noqa: S608  constants
    for (run,) in query(sql):
        yield f"there are rows in {table} of run {run.decode(errors='backslashreplace')}, which the store does not have"
