"""Turns samples into medians, ratios and met or missed, and those into tables and files."""

import json
import os
import platform
import sqlite3
import statistics
import time
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import apsw
from contender import OWN
from harness import Failure, Figures, Samples, Session
from sizes import FULL
from syncs import strace
from thresholds import THRESHOLDS, Threshold

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "apache-burr",
    "apsw",
    "click",
    "dbos",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "msgspec",
    "python-statemachine",
    "steersman",
    "transitions",
)
# Section: its title, then each column as (figure, heading, format). The first column is what ratios are of.
TABLES = {
    "memory": (
        "In memory, one run at a time",
        [("us", "µs per transition", ".1f"), ("cpu_us", "CPU µs", ".1f")],
    ),
    "durable": (
        "Durable (WAL, synchronous=FULL), one run at a time",
        [
            ("us", "µs per transition", ".0f"),
            ("cpu_us", "CPU µs", ".0f"),
            ("syncs", "syncs per transition", ".3f"),
            ("bytes", "bytes per transition", ".0f"),
        ],
    ),
    "concurrent": (
        "Durable, 64 runs at once",
        [
            ("us", "µs per transition", ".0f"),
            ("per_s", "transitions per s", ".0f"),
            ("cpu_us", "CPU µs", ".0f"),
            ("syncs", "syncs per transition", ".3f"),
        ],
    ),
    "growth": (
        "Growth: one long durable run",
        [
            ("late_us", "µs at the end", ".0f"),
            ("early_us", "µs at 100", ".0f"),
            ("ratio", "end ÷ 100", ".2f"),
            ("warm_ratio", "÷ a tenth", ".2f"),
            ("cpu_ratio", "in CPU", ".2f"),
            ("bytes", "bytes per step", ".0f"),
            ("transitions", "transitions", ".0f"),
        ],
    ),
    "many": (
        "Many runs in a store, a tenth of them unfinished",
        [
            ("list_ms", "list the unfinished, ms", ".2f"),
            ("listing_ms", "by its own listing call, ms", ".1f"),
            ("load_ms", "load one, ms", ".3f"),
            ("runs", "runs", ".0f"),
        ],
    ),
    "start": (
        "Start: CPU over an empty interpreter",
        [
            ("cpu_ms", "CPU ms", ".1f"),
            ("three_ms", "of `import click, apsw, msgspec`", ".1f"),
            ("ratio", "ratio", ".2f"),
        ],
    ),
    "parked": (
        "Parked runs, in a process that waits for them",
        [
            ("mb", "memory, MB", ".1f"),
            ("mb_ratio", "÷ with none", ".3f"),
            ("threads", "threads", ".0f"),
            ("more_threads", "more than with none", ".0f"),
            ("idle_ms_per_s", "idle CPU, ms per s", ".2f"),
            ("more_idle_ms", "more than with none", ".2f"),
            ("runs", "runs", ".0f"),
        ],
    ),
}
TABLES["growing"] = ("Growth with a list that gains 50 bytes per transition", TABLES["growth"][1])

NOT_TRIED = """\
- Peers on other stores (Postgres, Redis), their async variants (AsyncSqliteSaver, AsyncSQLitePersister), and
  LangGraph with durability `async` or `exit`, which promise less than a transition on disk before the next.
- DBOS in memory: it has no such mode.
- transitions and python-statemachine in growth, many and parked: their store is the hand-written table's.
- The specification's guards in the peers: they route by state and event alone, which spares them work.
- A growing list past 3,000 transitions for the hand-written table and Burr, and more than 1,000 parked DBOS
  workflows: gigabytes, and minutes.
- Systems that need a server of their own (Temporal, Restate), other file systems and disks, loss of power.
"""

RATIO = f"a contender's cost ÷ that of {OWN}, the median of the ratios within each repetition."

Results = dict[str, Samples]


@dataclass(frozen=True)
class Verdict:
    threshold: Threshold
    value: float | None

    @property
    def word(self) -> str:
        if self.value is None:
            return "not measured"
        limit = self.threshold.limit
        met = self.value >= limit if self.threshold.peer else self.value <= limit
        return "met" if met else "missed"


def median(figures: list[Figures], metric: str) -> float | None:
    values = [sample[metric] for sample in figures if metric in sample]
    return statistics.median(values) if values else None


def ratio(own: list[Figures], metric: str, peer: list[Figures], peer_metric: str) -> float | None:
    """The median of the ratios within each repetition: how many times the peer's cost is the project's."""
    pairs = zip(own, peer, strict=False)
    ratios = [b[peer_metric] / a[metric] for a, b in pairs if metric in a and peer_metric in b]
    return statistics.median(ratios) if ratios else None


def judge(results: Results) -> list[Verdict]:
    verdicts = []
    for threshold in (one for one in THRESHOLDS if one.section in results):
        samples = results[threshold.section]
        own = samples.get(OWN, [])
        if threshold.peer is None:
            value = median(own, threshold.metric)
        else:
            peer = samples.get(threshold.peer, [])
            value = ratio(own, threshold.metric, peer, threshold.peer_metric or threshold.metric)
        verdicts.append(Verdict(threshold, value))
    return verdicts


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _table(section: str, samples: Samples, names: dict[str, str]) -> list[str]:
    title, columns = TABLES[section]
    first = columns[0][0]
    shown = [
        column
        for column in columns
        if any(median(figures, column[0]) is not None for figures in samples.values())
    ]
    lines = [f"## {title}", "", _row(["", *(heading for _, heading, _ in shown), f"× {OWN}", "N"])]
    lines.append(_row(["---"] * (len(shown) + 3)))
    for name, figures in samples.items():
        times = ratio(samples.get(OWN, []), first, figures, first)
        cells = [_cell(median(figures, metric), form) for metric, _, form in shown]
        lines.append(_row([names[name], *cells, _cell(times, ".2f"), str(len(figures))]))
    return [*lines, ""]


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _verdicts(verdicts: list[Verdict], names: dict[str, str]) -> list[str]:
    lines = ["## Asked and found", "", _row(["section", "figure", "asked", "found", ""]), _row(["---"] * 5)]
    for verdict in verdicts:
        asked = verdict.threshold
        figure = f"{asked.metric} against {names.get(asked.peer, asked.peer)}" if asked.peer else asked.metric
        sign = "≥ {:g}×" if asked.peer else "≤ {:g}"
        found = "–" if verdict.value is None else f"{verdict.value:.3g}"
        about = f"{figure} ({asked.note})" if asked.note else figure
        lines.append(_row([asked.section, about, sign.format(asked.limit), found, verdict.word]))
    return [*lines, ""]


def raw_sync_us(folder: Path) -> float:
    """What one 4 KB append and its sync cost here: the floor under every durable figure."""
    path = folder / "raw"
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(100):
            start = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def environment(session: Session) -> Figures:
    with session.folder("raw") as folder:
        return {
            "date": time.strftime("%Y-%m-%d %H:%M"),
            "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "sqlite3": sqlite3.sqlite_version,
            "apsw_sqlite": apsw.sqlite_lib_version(),
            "syncs": "counted with strace" if strace() else "not counted from outside (no strace)",
            "raw_sync_us": round(raw_sync_us(folder), 1),
            "versions": {package: _version(package) for package in PACKAGES},
            "sizes": asdict(session.sizes),
        }


def _environment(facts: Figures) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    sizes = facts["sizes"]
    machine = f"{facts['cores']} cores, {facts['system']}, Python {facts['python']}, SQLite {facts['sqlite3']} (sqlite3)"
    lines = [f"# Benchmark, {sizes['what']}, {facts['date']}", ""]
    lines += [
        f"{machine} and {facts['apsw_sqlite']} (apsw).",
        f"A 4 KB append with its sync: {facts['raw_sync_us']} µs. Syncs: {facts['syncs']}.",
    ]
    lines += [
        "Medians of N interleaved repetitions, each in a process of its own.",
        f"`× {OWN}`: {RATIO}",
        "",
    ]
    return [*lines, versions, ""]


def _failures(failures: list[Failure]) -> list[str]:
    if not failures:
        return []
    rows = [f"- {failure.section}, {failure.contender}: {failure.reason}" for failure in failures]
    return ["## Disqualified", "", *rows, ""]


def render(facts: Figures, results: Results, names: dict[str, str], failures: list[Failure]) -> str:
    lines = _environment(facts)
    for section, samples in results.items():
        lines += _table(section, samples, names)
    lines += _verdicts(judge(results), names) + _failures(failures)
    lines += ["## Not tried", "", NOT_TRIED]
    return "\n".join(lines)


def write(facts: Figures, results: Results, text: str, failures: list[Failure]) -> Path:
    """The samples under their date, and the tables: of a full run as the latest, of any other beside its samples."""
    RESULTS.mkdir(exist_ok=True)
    verdicts = [
        asdict(verdict.threshold) | {"value": verdict.value, "word": verdict.word}
        for verdict in judge(results)
    ]
    kept: dict[str, Any] = {"environment": facts, "samples": results, "verdicts": verdicts}
    kept["failures"] = [asdict(failure) for failure in failures]
    path = RESULTS / f"{facts['date'][:10]}-{facts['sizes']['what']}.json"
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    page = RESULTS / "latest.md" if facts["sizes"]["what"] == FULL.what else path.with_suffix(".md")
    page.write_text(text)
    return page
