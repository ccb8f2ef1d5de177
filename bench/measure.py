"""One measurement of one contender, in a process of its own: `measure.py <contender> <what> <folder> <sizes>`.

The last line of output is the result as JSON. A contender that ends wrong, or fails, ends this process with
an error, and the harness disqualifies it. **Invariant:** only this module reads a clock while work is done.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from contender import Contender, Go, load, offers
from sizes import Sizes
from syncs import mark
from workload import PARKED_IN

Figures = dict[str, Any]
METHODS = ("command", "in_memory", "durable", "concurrent", "growth", "fill", "reader", "waiting", "syncs")


class Counted:
    """A contender's go, and how many transitions it has done in all."""

    def __init__(self, go: Go) -> None:
        self._go = go
        self.done = 0

    def __call__(self, more: int) -> int:
        did = self._go(more)
        self.done += did
        return did


def sustained(contender: Contender, go: Go, batch: int, seconds: float) -> Figures:
    """Time, CPU and syncs per transition of work that goes on for at least so many seconds, after a warm-up."""
    go(max(2, batch // 8))
    counted = contender.syncs() if offers(contender, "syncs") else None
    mark()
    start, cpu, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < seconds:
        done += go(batch)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    mark()
    figures = {"transitions": done, "us": wall / done * 1e6, "cpu_us": cpu / done * 1e6, "per_s": done / wall}
    return figures if counted is None else figures | {"syncs": (contender.syncs() - counted) / done}


def stored(folder: Path) -> int:
    """Bytes in a folder whose store was closed."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def memory(contender: Contender, _folder: Path, sizes: Sizes) -> Figures:
    with contender.in_memory() as go:
        return sustained(contender, go, sizes.batch, sizes.seconds)


def durable(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    with contender.durable(folder) as drive:
        go = Counted(drive)
        figures = sustained(contender, go, sizes.batch, sizes.seconds)
    return figures | {"bytes": stored(folder) / go.done}


def concurrent(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    with contender.concurrent(folder, sizes.at_once) as go:
        return sustained(contender, go, sizes.crowd, sizes.seconds)


def window(go: Go) -> tuple[float, float]:
    """Median time and CPU per transition over about a hundred transitions, in µs."""
    walls, cpus = [], []
    for _ in range(20):
        start, cpu = time.perf_counter(), time.process_time()
        did = go(5)
        walls.append((time.perf_counter() - start) / did * 1e6)
        cpus.append((time.process_time() - cpu) / did * 1e6)
    return statistics.median(walls), statistics.median(cpus)


def grown(contender: Contender, folder: Path, growing: bool, transitions: int) -> Figures:
    """A hundred transitions around the 100th, after a tenth of the way, and at the end."""
    with contender.growth(folder, growing) as advance:
        go = Counted(advance)
        go(50)
        early, early_cpu = window(go)
        go(max(0, transitions // 10 - go.done))
        # By now the log has been written round once: what a young store costs is no longer in it.
        warm, _ = window(go)
        go(transitions - 100 - go.done)
        late, late_cpu = window(go)
    times = {"early_us": early, "warm_us": warm, "late_us": late}
    ratios = {"ratio": late / early, "warm_ratio": late / warm, "cpu_ratio": late_cpu / early_cpu}
    return times | ratios | {"transitions": go.done, "bytes": stored(folder) / go.done}


def growth(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    return grown(contender, folder, False, sizes.growth)


def growing(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    return grown(contender, folder, True, limited(contender, "growing", sizes.growing))


def limited(contender: Contender, what: str, size: int) -> int:
    """The size, or the contender's own limit where the full size would take gigabytes or minutes."""
    return min(size, getattr(contender, "limits", {}).get(what, size))


def fill(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    contender.fill(folder, sizes.many, sizes.unfinished)
    return {"bytes": stored(folder)}


def fill_none(contender: Contender, folder: Path, _sizes: Sizes) -> Figures:
    contender.fill(folder, 0, 0)
    return {}


def fill_parked(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    runs = limited(contender, "parked", sizes.parked)
    contender.fill(folder, runs, runs)
    return {}


def milliseconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    answer = call()
    return (time.perf_counter() - start) * 1e3, answer


def many(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    """The first listing of a process, and the median of loads of different runs."""
    with contender.reader(folder) as reader:
        list_ms, found = milliseconds(reader.unfinished)
        assert len(set(found)) == sizes.unfinished, f"listed {len(set(found))} of {sizes.unfinished}"
        loads = [milliseconds(lambda run=run: reader.load(run)) for run in found[:: max(1, len(found) // 20)]]
        assert {state for _, state in loads} == {PARKED_IN}
        figures = {
            "runs": sizes.many,
            "list_ms": list_ms,
            "load_ms": statistics.median(ms for ms, _ in loads),
        }
        if hasattr(reader, "listing"):
            figures["listing_ms"], also = milliseconds(reader.listing)
            assert set(also) == set(found)
    return figures


def parked(contender: Contender, folder: Path, sizes: Sizes) -> Figures:
    """What a process costs that waits for the parked runs of the folder's store."""
    process = psutil.Process()
    with contender.waiting(folder):
        time.sleep(sizes.idle_seconds / 2)
        cpu = time.process_time()
        time.sleep(sizes.idle_seconds)
        idle = (time.process_time() - cpu) / sizes.idle_seconds * 1e3
        return {
            "threads": process.num_threads(),
            "mb": process.memory_info().rss / 1e6,
            "idle_ms_per_s": idle,
        }


def about(contender: Contender, _folder: Path, _sizes: Sizes) -> Figures:
    offered = [method for method in METHODS if offers(contender, method)]
    limits = getattr(contender, "limits", {})
    return {"name": contender.name, "import_line": contender.import_line, "offers": offered, "limits": limits}


def command(contender: Contender, folder: Path, _sizes: Sizes) -> Figures:
    return {"command": contender.command(folder)}


WHATS = {
    what.__name__: what
    for what in (
        about,
        command,
        memory,
        durable,
        concurrent,
        growth,
        growing,
        fill,
        fill_none,
        fill_parked,
        many,
        parked,
    )
}


def main() -> None:
    name, what, folder, sizes = sys.argv[1:]
    figures = WHATS[what](load(name), Path(folder), Sizes(**json.loads(sizes)))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
