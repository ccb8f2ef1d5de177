"""Apache Burr: an action per state, transitions conditional on the event, its SQLite persister.

Its fast path: one graph built once and shared, `run` per application (run), no tracker. An action folds the
event that led to it and leaves the name of the next one in the state, which is where Burr's conditions look.
Threads share one persister behind a lock: with 64 connections the writers would wait for each other's lock.
"""

import sqlite3
import threading
from contextlib import closing, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import ClassVar

from burr.core import ApplicationBuilder, State, action, when
from burr.core.graph import GraphBuilder
from burr.core.persistence import SQLitePersister
from durability import full
from peers._log import in_threads, run_id
from workload import EMPTY, FINAL, PARKED_IN, SCRIPT, STATES, TABLE, check_end, endless, fold, note

KEYS = [*EMPTY, "event", "step"]
FRESH = {**EMPTY, "event": "task_received", "step": 0, "history": []}
# The opening and one round of the endless run; after the opening, the round repeats.
ENDLESS = tuple(islice(endless(), 7))


def _scripted(step: int):
    return SCRIPT[step] if step < len(SCRIPT) else ("", {})


def _forever(step: int):
    return ENDLESS[step] if step < 7 else ENDLESS[4 + (step - 4) % 3]


def _graph(world, growing: bool = False):
    keys = [*KEYS, "history"] if growing else KEYS
    enter = action(reads=keys, writes=keys)(_action(world, growing))
    rows = [(source, to, when(event=event)) for (source, event), to in TABLE.items() if source != "new"]
    return GraphBuilder().with_actions(**dict.fromkeys(STATES[1:], enter)).with_transitions(*rows).build()


def _action(world, growing: bool):
    def enter(state: State) -> State:
        step = state["step"]
        event, payload = world(step)
        changes = fold(state, event, payload)
        after = state.update(**changes, step=step + 1, event=world(step + 1)[0])
        return after.append(history=note(step)) if growing else after

    return enter


def _application(graph, run: str, persister=None):
    builder = ApplicationBuilder().with_graph(graph).with_identifiers(app_id=run)
    builder = builder.with_state(**FRESH).with_entrypoint("intake")
    return (builder.with_state_persister(persister) if persister else builder).build()


def _drive(graph, persister, run: str) -> int:
    last, _, state = _application(graph, run, persister).run(halt_after=[FINAL])
    return check_end(last.name, state)


class LockedPersister(SQLitePersister):
    """The same persister, safe on one connection for many threads."""

    lock = threading.Lock()

    def save(self, *args, **kwargs) -> None:
        with self.lock:
            super().save(*args, **kwargs)


@contextmanager
def _persister(folder: Path, kind=SQLitePersister):
    path = folder / "burr.db"
    with closing(full(sqlite3.connect(path, check_same_thread=False))) as connection:
        persister = kind(str(path), connection=connection)
        persister.initialize()
        yield persister


class Reader:
    """The persister lists application ids; whether one has ended is in its latest row."""

    def __init__(self, persister: SQLitePersister) -> None:
        self._persister = persister

    def unfinished(self) -> list[str]:
        return [run for run in self._persister.list_app_ids(None) if self.load(run) != FINAL]

    def load(self, run: str) -> str:
        return self._persister.load(None, run)["position"]


class Burr:
    name = "burr"
    # Each row holds the whole list: ten thousand of them would be gigabytes.
    limits: ClassVar = {"growing": 3_000}
    import_line = "import burr.core, burr.core.persistence"

    @contextmanager
    def in_memory(self):
        graph, ids = _graph(_scripted), map(run_id, count())
        yield lambda runs: sum(_drive(graph, None, next(ids)) for _ in range(runs))

    @contextmanager
    def durable(self, folder: Path):
        graph, ids = _graph(_scripted), map(run_id, count())
        with _persister(folder) as persister:
            yield lambda runs: sum(_drive(graph, persister, next(ids)) for _ in range(runs))

    @contextmanager
    def concurrent(self, folder: Path, at_once: int):
        drive = partial(_drive, _graph(_scripted))
        with (
            _persister(folder, LockedPersister) as persister,
            in_threads(partial(drive, persister), at_once) as go,
        ):
            yield go

    @contextmanager
    def growth(self, folder: Path, growing: bool):
        with _persister(folder) as persister:
            application = _application(_graph(_forever, growing), "endless", persister)
            yield lambda transitions: sum(bool(application.step()) for _ in range(transitions))

    def fill(self, folder: Path, runs: int, unfinished: int) -> None:
        graph = _graph(_scripted)
        with _persister(folder) as persister:
            _application(graph, "parked", persister).run(halt_after=[PARKED_IN])
            _drive(graph, persister, "done")
            _copy(persister.connection, runs, unfinished)

    @contextmanager
    def reader(self, folder: Path):
        with _persister(folder) as persister:
            yield Reader(persister)

    @contextmanager
    def waiting(self, folder: Path):
        with _persister(folder):
            yield


def _copy(connection: sqlite3.Connection, runs: int, unfinished: int) -> None:
    """The rows that Burr wrote for one run, under other application ids: the same store, sooner."""
    ids = [("parked" if number < unfinished else "done", run_id(number)) for number in range(runs)]
    with connection:
        connection.executemany(
            "INSERT INTO burr_state SELECT partition_key, ?2, sequence_id, position, status, state, created_at "
            "FROM burr_state WHERE partition_key = '' AND app_id = ?1",
            ids,
        )
        connection.execute("DELETE FROM burr_state WHERE app_id IN ('parked', 'done')")


CONTENDER = Burr()
