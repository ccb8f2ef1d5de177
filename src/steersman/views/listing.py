"""Renders lists of runs for `steersman runs` and the home screen."""

from collections.abc import Iterable, Sequence

from steersman.judges.text import clip_text, printable_line
from steersman.ports.journal import Head
from steersman.views.time_format import format_duration

RUN_TABLE_COLUMNS = ("RUN", "STATUS", "STATE", "OUTCOME", "AGE", "TASK")
MIN_RUN_TITLE, MAX_RUN_TITLE = 16, 60
UNREADABLE_HEAD = "its row in head cannot be read"


def find_broken_runs(heads: Iterable[Head], quarantined: dict[str, str]) -> dict[str, str]:
    """Returns every broken run with why: quarantined ones, and ones whose head row cannot be read."""
    return {h.run: UNREADABLE_HEAD for h in heads if h.status == "broken"} | quarantined


def run_table_lines(heads: Iterable[Head], broken: dict[str, str], now: int, columns: int = 0) -> list[str]:
    """Renders runs as a table; a run whose tape cannot be read has the status `broken`.

    On a terminal of so many `columns` the titles are clipped to one line.
    """
    rows = [RUN_TABLE_COLUMNS, *(_run_table_row(h, broken, now) for h in heads)]
    widths = [max(len(r[n]) for r in rows) for n in range(len(RUN_TABLE_COLUMNS) - 1)]
    room = max(columns - sum(widths) - 2 * len(widths), MIN_RUN_TITLE) if columns else MAX_RUN_TITLE
    return [_run_table_line((*r[:-1], clip_text(r[-1], room)), widths) for r in rows]


def _run_table_row(head: Head, broken: dict[str, str], now: int) -> tuple[str, ...]:
    status = "broken" if head.run in broken else head.status
    return (
        head.run,
        status,
        head.state,
        head.outcome or "–",
        format_duration(now - head.at) if head.status != "broken" else "–",
        clip_text(printable_line(head.title), MAX_RUN_TITLE),
    )


def _run_table_line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*cells, row[-1]]).rstrip()


def run_head_data(head: Head, broken: dict[str, str]) -> dict[str, object]:
    """Returns a run of the list as data, for programs."""
    return {
        "run": head.run,
        "machine": head.machine,
        "title": head.title,
        "state": head.state,
        "status": "broken" if head.run in broken else head.status,
        "outcome": head.outcome,
        "entries": head.seq,
        "created": head.created,
        "at": head.at,
        "due": head.due,
        "parent": head.parent,
        "why": broken.get(head.run, ""),
    }
