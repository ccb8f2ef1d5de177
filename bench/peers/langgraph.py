"""LangGraph: a node per state, the next one named by the table, a checkpoint per transition.

Its fast path: one `invoke` per run, so that the graph never leaves its own loop (the event that the world
answers with is looked up in the script, not delivered by an interrupt), and `Command`, which carries update
and target together and is faster than conditional edges. Durable means `durability="sync"`;
"async" writes behind and "exit" writes once a run, which is another promise. The growing list uses
DeltaChannel, which keeps the notes out of each checkpoint. Threads share one SqliteSaver, as its
documentation says (it has a lock).
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Annotated, Any, TypedDict

from durability import full
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from peers._log import in_threads, run_id
from workload import (
    EMPTY,
    FINAL,
    PARKED_IN,
    SCRIPT,
    STATES,
    TABLE,
    check_end,
    endless,
    fold,
    note,
)

# No tracing to a hosted service, whatever the environment of the caller says.
os.environ["LANGSMITH_TRACING"] = "false"


class Loop(TypedDict):
    state: str
    step: int
    task: str
    mode: str
    max_iterations: int
    contract: str
    round: int
    tree: str
    findings: list
    must_fix: list
    last_check: dict
    tokens: int
    outcome: str


def _extended(notes: list, writes: Sequence[list]) -> list:
    return notes + [one for write in writes for one in write]


class GrowingLoop(Loop):
    history: Annotated[list, DeltaChannel(_extended)]


# The opening and one round of the endless run; after the opening, the round repeats.
ENDLESS = tuple(islice(endless(), 7))


def _scripted(step: int):
    return SCRIPT[step]


def _forever(step: int):
    return ENDLESS[step] if step < 7 else ENDLESS[4 + (step - 4) % 3]


def _graph(schema: type, world, growing: bool = False) -> StateGraph:
    graph = StateGraph(schema)
    for name in STATES[1:]:
        targets = [target for (source, _), target in TABLE.items() if source == name] or [END]
        graph.add_node(name, partial(_enter, name, world, growing), destinations=tuple(targets))
    graph.add_edge(START, "intake")
    return graph


def _enter(name: str, world, growing: bool, state: Loop) -> Command:
    step = state["step"]
    event, payload = world(step)
    changes = fold(state, event, payload) | {"state": name, "step": step + 1}
    if growing:
        changes["history"] = [note(step)]
    return Command(update=changes, goto=END if name == FINAL else TABLE[name, world(step + 1)[0]])


FRESH = {**EMPTY, "state": "new", "step": 0}


def _config(run: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": run}}


def _drive(graph, durability: str, run: str) -> int:
    end = graph.invoke(FRESH, _config(run), durability=durability)
    return check_end(end["state"], end)


@contextmanager
def _saver(folder: Path):
    path = folder / "checkpoints.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = SqliteSaver(full(connection))
        saver.setup()
        yield saver


class Reader:
    """The saver has no query for unfinished threads.

    Fastest is to ask for the thread ids in SQL and then for the latest checkpoint of each; its own listing
    call reads every checkpoint of every thread, newest first. Both are measured.
    """

    def __init__(self, saver: SqliteSaver) -> None:
        self._saver = saver

    def unfinished(self) -> list[str]:
        with self._saver.cursor(transaction=False) as cursor:
            threads = [run for (run,) in cursor.execute("SELECT DISTINCT thread_id FROM checkpoints")]
        return [run for run in threads if self.load(run) != FINAL]

    def listing(self) -> list[str]:
        latest: dict[str, str] = {}
        for item in self._saver.list(None):
            values = item.checkpoint["channel_values"]
            latest.setdefault(item.config["configurable"]["thread_id"], values.get("state", ""))
        return [run for run, state in latest.items() if state != FINAL]

    def load(self, run: str) -> str:
        return self._saver.get_tuple(_config(run)).checkpoint["channel_values"]["state"]


class LangGraph:
    name = "langgraph"
    import_line = "import langgraph.graph, langgraph.checkpoint.sqlite"

    @contextmanager
    def in_memory(self):
        graph = _graph(Loop, _scripted).compile(checkpointer=InMemorySaver())
        ids = map(run_id, count())
        # In memory "sync" is also its fastest: there is nothing to wait for and no thread to hand over to.
        yield lambda runs: sum(_drive(graph, "sync", next(ids)) for _ in range(runs))

    @contextmanager
    def durable(self, folder: Path):
        ids = map(run_id, count())
        with _saver(folder) as saver:
            graph = _graph(Loop, _scripted).compile(checkpointer=saver)
            yield lambda runs: sum(_drive(graph, "sync", next(ids)) for _ in range(runs))

    @contextmanager
    def concurrent(self, folder: Path, at_once: int):
        with _saver(folder) as saver:
            graph = _graph(Loop, _scripted).compile(checkpointer=saver)
            with in_threads(partial(_drive, graph, "sync"), at_once) as go:
                yield go

    @contextmanager
    def growth(self, folder: Path, growing: bool):
        schema = GrowingLoop if growing else Loop
        with _saver(folder) as saver:
            graph = _graph(schema, _forever, growing).compile(checkpointer=saver)
            config = _config("endless") | {"recursion_limit": 1_000_000}
            steps = graph.stream(FRESH, config, stream_mode="updates", durability="sync")
            with closing(steps):
                yield lambda transitions: sum(1 for _ in islice(steps, transitions))

    def fill(self, folder: Path, runs: int, unfinished: int) -> None:
        with _saver(folder) as saver:
            graph = _graph(Loop, _scripted).compile(checkpointer=saver)
            graph.invoke(FRESH, _config("parked"), durability="sync", interrupt_after=[PARKED_IN])
            _drive(graph, "sync", "done")
            _copy(saver.conn, runs, unfinished)

    @contextmanager
    def reader(self, folder: Path):
        with _saver(folder) as saver:
            yield Reader(saver)

    @contextmanager
    def waiting(self, folder: Path):
        with _saver(folder) as saver:
            _graph(Loop, _scripted).compile(checkpointer=saver)
            yield


def _copy(connection: sqlite3.Connection, runs: int, unfinished: int) -> None:
    """The rows that LangGraph wrote for one run, under other thread ids: the same store, sooner."""
    ids = [("parked" if number < unfinished else "done", run_id(number)) for number in range(runs)]
    with connection:
        connection.executemany(
            "INSERT INTO checkpoints SELECT ?2, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, "
            "checkpoint, metadata FROM checkpoints WHERE thread_id = ?1",
            ids,
        )
        connection.executemany(
            "INSERT INTO writes SELECT ?2, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, "
            "type, value FROM writes WHERE thread_id = ?1",
            ids,
        )
        for table in ("checkpoints", "writes"):
            connection.execute(f"DELETE FROM {table} WHERE thread_id IN ('parked', 'done')")  # noqa: S608  our own constants


CONTENDER = LangGraph()
