"""Runs as lines: what `steersman runs` and the home screen print."""

from collections.abc import Iterable, Sequence

from steersman.judges.text import clip, one_line
from steersman.ports.journal import Head
from steersman.views.moments import span

COLUMNS = ("RUN", "STATUS", "STATE", "OUTCOME", "AGE", "TASK")
TITLE = 60
UNREADABLE = "its row in head cannot be read"


def put_aside(heads: Iterable[Head], quarantined: dict[str, str]) -> dict[str, str]:
    """Every run that is broken, and why: those that the store has put aside, and those whose own row does not fit."""
    return {h.run: UNREADABLE for h in heads if h.status == "broken"} | quarantined


def listing(heads: Iterable[Head], broken: dict[str, str], now: int) -> list[str]:
    """A table, one line a run; a run whose tape cannot be read says so."""
    rows = [COLUMNS, *(_row(h, broken, now) for h in heads)]
    widths = [max(len(r[n]) for r in rows) for n in range(len(COLUMNS) - 1)]
    return [_line(r, widths) for r in rows]


def _row(h: Head, broken: dict[str, str], now: int) -> tuple[str, ...]:
    status = "broken" if h.run in broken else h.status
    return (
        h.run,
        status,
        h.state,
        h.outcome or "–",
        span(now - h.at) if h.status != "broken" else "–",
        clip(one_line(h.title), TITLE),
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*cells, row[-1]]).rstrip()


def plain_head(h: Head, broken: dict[str, str]) -> dict[str, object]:
    """The same for programs."""
    return {
        "run": h.run,
        "machine": h.machine,
        "title": h.title,
        "state": h.state,
        "status": "broken" if h.run in broken else h.status,
        "outcome": h.outcome,
        "entries": h.seq,
        "created": h.created,
        "at": h.at,
        "due": h.due,
        "parent": h.parent,
        "why": broken.get(h.run, ""),
    }
