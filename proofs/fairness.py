"""How long an occasional writer waits for the store beside two saturated ones, measured between real processes.

What the disk or the machine delays is told apart from turns: a control writes to a store of its own meanwhile, and the
slowest commit of the others is known.
"""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.errors import JournalError
from steersman.testing.journal_samples import sample_batch

P99_MS, MOST_MS = 50, 200
TRIES = 8  # of a measurement that the machine itself disturbs
forks = multiprocessing.get_context("fork")


def alone(path: Path, stop: Any) -> None:
    """A saturated writer, one commit after the other."""
    store, run, n = SqliteJournal(path), f"alone-{os.getpid()}", 0
    slowest = _timed_commits(store)
    while not stop.is_set():
        n += 1
        store.append(sample_batch(run, n))
    (path.parent / f"{run}.count").write_text(json.dumps([n, slowest()]))


def together(path: Path, stop: Any) -> None:
    """A saturated writer with 64 runs at once in group commits."""
    store = SqliteJournal(path)
    slowest, gone = _timed_commits(store), dict.fromkeys(range(64), 0)

    def submit(n: int, error: BaseException | None = None) -> None:
        if not stop.is_set() and error is None:
            gone[n] += 1
            store.submit(sample_batch(f"together-{n:02}", gone[n]), lambda e: submit(n, e))

    for n in range(64):
        submit(n)
    stop.wait()
    time.sleep(0.2)
    (path.parent / "together.count").write_text(json.dumps([sum(gone.values()), slowest()]))


def _timed_commits(store: SqliteJournal) -> Callable[[], float]:
    """How long the slowest commit of this process took, in milliseconds: nobody can go before it is done."""
    slowest = [0]

    def took(told: dict[str, Any]) -> None:
        if told["sql"] == "COMMIT":
            slowest[0] = max(slowest[0], told["nanoseconds"])

    store._write.trace_v2(apsw.SQLITE_TRACE_PROFILE, took)  # noqa: SLF001  the commits are its own
    return lambda: round(slowest[0] / 1e6, 1)


def _now_and_then(path: Path, writes: int, note: Path, *, control: bool = False) -> None:
    """An occasional writer; the control also counts how late it was woken: a machine that pauses delays both."""
    store, waits = SqliteJournal(path), []
    for n in range(1, writes + 1):
        pause = 0.005 + n % 7 * 0.003
        slept = time.perf_counter()
        time.sleep(pause)
        began = time.perf_counter()
        try:
            store.append(sample_batch("now-and-then", n))
        except JournalError as error:
            note.write_text(json.dumps({"error": str(error)}))
            return
        late = began - slept - pause if control else 0.0
        waits.append(time.perf_counter() - began + late)
    waits.sort()
    at = {"p50": waits[len(waits) // 2], "p99": waits[int(len(waits) * 0.99)], "most": waits[-1]}
    note.write_text(json.dumps({name: round(seconds * 1000, 1) for name, seconds in at.items()}))


def fairness(folder: Path, busy: tuple[Any, Any], writes: int) -> dict[str, Any]:
    """How long an occasional writer waits beside two saturated ones, in milliseconds.

    Nobody can go before a commit under way is done, and a control beside it writes as often to a store that nobody
    else uses. A disk that keeps one commit for long, or a machine that keeps the control waiting, says nothing about
    turns: the measurement is taken again, the calmest counts, and the disturbed ones are kept in the figures.
    """
    tries = []
    for n in range(TRIES):
        tries.append(measured(folder / str(n), busy, writes))
        if _calm(tries[-1]):
            break
    best = min(tries, key=lambda t: (not _calm(t), t["control"]["p99"]))
    others = [t for t in tries if t is not best]
    bad = best.get("error") or best["p99"] >= P99_MS or best["most"] >= MOST_MS
    faults = [f"waited too long: {best}"] if bad else []
    return {"writes": writes, **best, "calm": _calm(best), "disturbed": others, "faults": faults}


def _calm(told: dict[str, Any]) -> bool:
    control = told["control"]
    longest = max(told["slowest_commit_beside_it"], control["most"])
    return bool(longest < MOST_MS / 4 and control["p99"] < P99_MS / 4)


def measured(folder: Path, busy: tuple[Any, Any], writes: int) -> dict[str, Any]:
    folder.mkdir(parents=True)
    path, stop = folder / "state" / "store.db", forks.Event()
    saturated = [forks.Process(target=work, args=(path, stop)) for work in busy]
    for child in saturated:
        child.start()
    time.sleep(0.5)
    writers = [
        forks.Process(
            target=_now_and_then,
            args=(folder / place / "store.db", writes, folder / f"{place}.json"),
            kwargs={"control": place == "control"},
        )
        for place in ("state", "control")
    ]
    for child in writers:
        child.start()
    for child in writers:
        child.join(120)
    stop.set()
    for child in saturated:
        child.join(10)
        child.kill()
    counts = [json.loads(note.read_text()) for note in (folder / "state").glob("*.count")]
    told: dict[str, Any] = json.loads((folder / "state.json").read_text())
    if len(counts) != len(busy):
        told["error"] = f"only {len(counts)} saturated writers lived to the end"
    return {
        **told,
        "appends_beside_it": [n for n, _ in counts],
        "slowest_commit_beside_it": max((slow for _, slow in counts), default=0.0),
        "control": json.loads((folder / "control.json").read_text()),
    }
