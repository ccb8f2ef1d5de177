"""What lies in a store that no run has put there: rows of runs that it does not have, tables and triggers of others."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import apsw

from steersman.adapters.storage.sqlite.connection import STORE_SCHEMA_VERSION

OWNED_TABLES = {
    "gate": "run",
    "budget": "run",
    "inbox": "run",
    "quarantine": "run",
    "payload": "root",
    "payload_key": "root",
}
SCHEMA_NAMES_QUERY = "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'"
MAX_NAMED_RUNS = 20  # runs named for a table

StoreQuery = Callable[[str], list[Any]]


def find_foreign_contents(query: StoreQuery) -> list[str]:
    """Each in a sentence; empty: nothing."""
    expected, present = _expected_schema_names(), set(query(SCHEMA_NAMES_QUERY))
    return [
        *(
            f"there is a {kind} {name}, which steersman has not made"
            for kind, name in sorted(present - expected)
        ),
        *(f"the {kind} {name} is missing" for kind, name in sorted(expected - present)),
        *(
            sentence
            for table in OWNED_TABLES
            if ("table", table) in present
            for sentence in _find_ownerless_rows(query, table)
        ),
    ]


def _expected_schema_names() -> set[Any]:
    """What the schema of this version makes."""
    db = apsw.Connection(":memory:")
    try:
        for step in range(1, STORE_SCHEMA_VERSION + 1):
            db.execute(files("steersman.adapters.storage.sqlite").joinpath(f"sql/{step:03}.sql").read_text())
        return set(db.execute(SCHEMA_NAMES_QUERY).fetchall())
    finally:
        db.close()


def _find_ownerless_rows(query: StoreQuery, table: str) -> Iterator[str]:
    owner = f"{table}.{OWNED_TABLES[table]}"
    known = (
        f"SELECT 1 FROM head WHERE head.run = {owner} UNION ALL SELECT 1 FROM entry WHERE entry.run = {owner}"  # noqa: S608  constants
    )
    sql = f"SELECT DISTINCT CAST({owner} AS BLOB) FROM {table} WHERE NOT EXISTS ({known}) LIMIT {MAX_NAMED_RUNS}"  # noqa: S608  constants
    for (run,) in query(sql):
        yield f"there are rows in {table} of run {run.decode(errors='backslashreplace')}, which the store does not have"
