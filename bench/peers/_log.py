"""The table that people write by hand: one row, one INSERT, one commit per transition.

Shared by the contenders that bring no store of their own. One connection behind a lock: with 64 threads
that is faster than 64 connections that wait for SQLite's writer lock.
"""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from durability import full
from workload import EMPTY, FINAL, PARKED_AFTER, SCRIPT, START, TABLE, fold

SCHEMA = """CREATE TABLE IF NOT EXISTS log (
    run TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL, context TEXT NOT NULL, PRIMARY KEY (run, seq))"""
UNFINISHED = """SELECT run FROM log WHERE rowid IN (SELECT max(rowid) FROM log GROUP BY run) AND state <> ?"""
LATEST = "SELECT state, context FROM log WHERE run = ? ORDER BY seq DESC LIMIT 1"

Save = Callable[[str, int, str, dict[str, Any]], None]


class Log:
    """Every transition of every run, newest last."""

    def __init__(self, folder: Path) -> None:
        # Autocommit: each INSERT is its own transaction, with no BEGIN and COMMIT to parse.
        path = folder / "log.db"
        self._connection = full(sqlite3.connect(path, isolation_level=None, check_same_thread=False))
        self._connection.execute(SCHEMA)
        self._lock = threading.Lock()

    def save(self, run: str, seq: int, state: str, context: dict[str, Any]) -> None:
        """On disk when it returns."""
        row = (run, seq, state, json.dumps(context))
        with self._lock:
            self._connection.execute("INSERT INTO log VALUES (?, ?, ?, ?)", row)

    def unfinished(self) -> list[str]:
        return [run for (run,) in self._connection.execute(UNFINISHED, (FINAL,))]

    def load(self, run: str) -> str:
        state, context = self._connection.execute(LATEST, (run,)).fetchone()
        json.loads(context)
        return str(state)

    def fill(self, runs: int, unfinished: int) -> None:
        with self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", _rows(runs, unfinished))

    def close(self) -> None:
        self._connection.close()


def _rows(runs: int, unfinished: int) -> Iterator[tuple[str, int, str, str]]:
    history = []
    state, context = START, dict(EMPTY)
    for seq, (event, payload) in enumerate(SCRIPT, 1):
        state = TABLE[state, event]
        context.update(fold(context, event, payload))
        history.append((seq, state, json.dumps(context)))
    for number in range(runs):
        for row in history[:PARKED_AFTER] if number < unfinished else history:
            yield (run_id(number), *row)


def run_id(number: int) -> str:
    return f"run-{number:06}"


def no_save(_run: str, _seq: int, _state: str, _context: dict[str, Any]) -> None:
    """In memory a transition leaves no trace."""


class LogContender:
    """What is the same for each contender over the log; a subclass says how one run is driven."""

    def drive(self, run: str, save: Save) -> int:
        raise NotImplementedError

    @contextmanager
    def in_memory(self):
        ids = map(run_id, count())
        yield lambda runs: sum(self.drive(next(ids), no_save) for _ in range(runs))

    @contextmanager
    def durable(self, folder: Path):
        ids = map(run_id, count())
        with opened(folder) as log:
            yield lambda runs: sum(self.drive(next(ids), log.save) for _ in range(runs))

    @contextmanager
    def concurrent(self, folder: Path, at_once: int):
        with opened(folder) as log, in_threads(lambda run: self.drive(run, log.save), at_once) as go:
            yield go


@contextmanager
def opened(folder: Path):
    """The log in this folder, closed at the end."""
    log = Log(folder)
    try:
        yield log
    finally:
        log.close()


@contextmanager
def in_threads(drive: Callable[[str], int], at_once: int):
    """Runs carried by so many threads, each taking the next run when its own has ended."""
    ids = map(run_id, count())
    with ThreadPoolExecutor(at_once) as pool:

        def go(runs: int) -> int:
            waiting: Iterable[str] = [next(ids) for _ in range(runs)]
            return sum(pool.map(drive, waiting))

        yield go
