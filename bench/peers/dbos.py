"""DBOS on a SQLite system database: a workflow per run, a step per transition.

Its fast path: the workflow function is called directly (no queue, no handle to poll), a step returns what the
world answered and nothing else, and the workflow folds it, which is deterministic and needs no record.
DBOS opens its own connections: the file is put into WAL mode before, and SQLite's default is FULL.
It has no mode without a database, so there is nothing to show in memory.
"""

import queue
import sqlite3
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import ClassVar

from dbos import DBOS, DBOSClient, SetWorkflowID
from durability import full_file
from peers._log import in_threads, run_id
from workload import EMPTY, PARKED_AFTER, SCRIPT, START, TABLE, check_end, endless, fold, note

UNFINISHED = ["PENDING", "ENQUEUED", "DELAYED"]
TABLES = ("workflow_status", "workflow_input", "workflow_output", "operation_outputs")
FOREVER = 1_000_000.0


def _follow(state: str, context: dict, event: str, payload) -> str:
    context.update(fold(context, event, payload))
    return TABLE[state, event]


@DBOS.step()
def world(step: int):
    """What is recorded: the event and its payload."""
    return SCRIPT[step]


@DBOS.workflow()
def loop() -> int:
    state, context = START, dict(EMPTY)
    for step in range(len(SCRIPT)):
        state = _follow(state, context, *world(step))
    return check_end(state, context)


@DBOS.step()
async def world_async(step: int):
    return SCRIPT[step]


# Asynchronous, because a parked run must not cost DBOS a thread.
@DBOS.workflow()
async def parked_loop() -> None:
    for step in range(PARKED_AFTER):
        await world_async(step)
    ARRIVED.put(DBOS.workflow_id)
    await DBOS.recv_async("verdict", timeout_seconds=FOREVER)


@DBOS.step()
def growing_world(step: int, answer, growing: bool):
    return (*answer, [note(step)] if growing else [])


@DBOS.workflow()
def endless_loop(growing: bool) -> None:
    """Takes orders for so many transitions from the harness, until there are no more."""
    state, context, history, script = START, dict(EMPTY), [], zip(count(), endless(), strict=False)
    while (transitions := ORDERS.get()) is not None:
        for step, answer in islice(script, transitions):
            event, payload, notes = growing_world(step, answer, growing)
            history.extend(notes)
            state = _follow(state, context, event, payload)
        DONE.put(transitions)


# The workflow functions are registered once a process, so what they share with the harness is as well.
ARRIVED: queue.SimpleQueue[str] = queue.SimpleQueue()
ORDERS: queue.SimpleQueue[int | None] = queue.SimpleQueue()
DONE: queue.SimpleQueue[int] = queue.SimpleQueue()


def _drive(run: str) -> int:
    with SetWorkflowID(run):
        return loop()


def _path(folder: Path) -> Path:
    return folder / "dbos.sqlite"


def _url(folder: Path) -> str:
    return f"sqlite:///{_path(folder)}"


@contextmanager
def _launched(folder: Path, **more):
    full_file(_path(folder))
    DBOS(
        config={
            "name": "bench",
            "application_version": "bench",
            "system_database_url": _url(folder),
            "log_level": "CRITICAL",
            **more,
        }
    )
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy(workflow_completion_timeout_sec=0)


class Reader:
    """An outside client; a run's state is what its recorded steps fold to."""

    def __init__(self, client: DBOSClient) -> None:
        self._client = client

    def unfinished(self) -> list[str]:
        found = self._client.list_workflows(status=UNFINISHED, load_input=False, load_output=False)
        return [workflow.workflow_id for workflow in found]

    def load(self, run: str) -> str:
        state, context = START, dict(EMPTY)
        for step in self._client.list_workflow_steps(run):
            if step["function_name"].startswith("world"):
                state = _follow(state, context, *step["output"])
        return state


class Dbos:
    name = "dbos"
    # A launch takes up its parked workflows one by one: ten thousand of them would take minutes.
    limits: ClassVar = {"parked": 1_000}
    import_line = "import dbos"

    @contextmanager
    def durable(self, folder: Path):
        ids = map(run_id, count())
        with _launched(folder):
            yield lambda runs: sum(_drive(next(ids)) for _ in range(runs))

    @contextmanager
    def concurrent(self, folder: Path, at_once: int):
        # A small pool: SQLite has one writer, and connections that wait for it poll.
        with _launched(folder, sys_db_pool_size=2), in_threads(_drive, at_once) as go:
            yield go

    @contextmanager
    def growth(self, folder: Path, growing: bool):
        with _launched(folder), ThreadPoolExecutor(1) as pool:
            worker = pool.submit(endless_loop, growing)
            try:
                yield partial(_ordered, worker)
            finally:
                ORDERS.put(None)

    def fill(self, folder: Path, runs: int, unfinished: int) -> None:
        with _launched(folder):
            _drive("done")
            with SetWorkflowID("parked"):
                DBOS.start_workflow(parked_loop)
            ARRIVED.get()
            time.sleep(0.5)  # it says that it arrives just before it waits
            _copy(_path(folder), runs, unfinished)
        _forget(_path(folder))

    @contextmanager
    def reader(self, folder: Path):
        client = DBOSClient(system_database_url=_url(folder))
        try:
            yield Reader(client)
        finally:
            client.destroy()

    @contextmanager
    def waiting(self, folder: Path):
        with self.reader(folder) as reader:
            parked = len(reader.unfinished())
        with _launched(folder):
            for _ in range(parked):
                ARRIVED.get()
            yield


def _ordered(worker: Future, transitions: int) -> int:
    """Waits for the workflow to do them; if it has failed instead, so does this."""
    ORDERS.put(transitions)
    while True:
        try:
            return DONE.get(timeout=1)
        except queue.Empty:
            if worker.done():
                worker.result()
                raise


def _copy(path: Path, runs: int, unfinished: int) -> None:
    """The rows that DBOS wrote for one run, under other workflow ids: the same store, sooner."""
    ids = [("parked" if number < unfinished else "done", run_id(number)) for number in range(runs)]
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in TABLES:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            values = ["?2" if column == "workflow_uuid" else column for column in columns]
            connection.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) "  # noqa: S608  our own constants
                f"SELECT {', '.join(values)} FROM {table} WHERE workflow_uuid = ?1",
                ids,
            )


def _forget(path: Path) -> None:
    """The two runs that were copied; the parked one was cancelled when DBOS was shut down around it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in TABLES:
            connection.execute(f"DELETE FROM {table} WHERE workflow_uuid IN ('parked', 'done')")  # noqa: S608  our own constants


CONTENDER = Dbos()
