"""The live pane: state, round, time in state, who works, tokens, budget, findings, checks, keys. Terminals only.

Before a prompt the steps stay behind as lines, so that whoever scrolls back sees what led to the question.
"""

import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live as RichLive
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steersman.faces.deck import Deck
from steersman.judges.text import clip, printable
from steersman.kernel.tape import Entry, Sealed
from steersman.runtime.live import Live
from steersman.runtime.projections import reading
from steersman.views.gates import EVIDENCE, commands, question
from steersman.views.moments import span
from steersman.views.screen import check, figure, rounds, step, work
from steersman.views.status import Status, status_of

LAST = 6  # steps that stay in sight


class Pane:
    """Redrawn four times a second; everything from outside is plain text, never markup."""

    pane = True

    def __init__(self, deck: Deck, *, keys: str) -> None:
        self._deck, self._keys = deck, keys
        self.keys = not deck.prompting
        self._entries: list[Entry] = []
        self._status: Status | None = None
        self._note = ""
        self._rich = RichLive(
            console=Console(), get_renderable=self._draw, refresh_per_second=4, transient=True
        )

    def __enter__(self) -> Self:
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()

    def follow(self, run: str) -> None:
        """Takes in what is on tape already."""
        from steersman.kernel.tape import read

        self._entries = [read(body) for _, body, _ in self._deck.journal.rows(run)]

    def watch(self, live: Live, entries: Sequence[Sealed]) -> None:
        known = self._entries[-1].seq if self._entries else 0
        new = [s.entry for s in entries if s.entry.seq > known]
        self._entries += new
        if self._deck.prompting:
            self._leave(new)
        journal = self._deck.journal
        shown = status_of(
            live.machine,
            live.snapshot,
            live.title,
            self._entries,
            gates=journal.gates(live.run),
            budget=journal.budget(live.run),
            text=reading(live),
        )
        self.show(shown, self._entries)

    def show(self, status: Status, entries: Sequence[Entry]) -> None:
        """Draws this from now on."""
        self._status, self._entries = status, list(entries)

    def note(self, text: str) -> None:
        self._note = text

    def _leave(self, entries: Sequence[Entry]) -> None:
        """Lines above the pane, which stay when it is gone."""
        for entry in entries:
            told = step(entry)
            if told:
                clock = time.strftime("%H:%M:%S", time.localtime(entry.at // 1000))
                self._rich.console.print(_text(f"{clock}  {told}", style="dim"))

    def _draw(self) -> RenderableType:
        s = self._status
        if s is None:
            return Text("…")
        table = Table.grid(padding=(0, 2))
        for name, value in _rows(s, time.time_ns() // 1_000_000):
            table.add_row(Text(name, style="dim"), _text(value))
        for entry in () if self._deck.prompting else self._entries[-LAST * 2 :][-LAST:]:
            told = step(entry)
            if told:
                table.add_row(Text(f"{entry.seq}", style="dim"), _text(told))
        table.add_row(Text("keys", style="dim"), Text(self._keys))
        if self._note:
            table.add_row(Text("note", style="dim"), _text(self._note, style="yellow"))
        return Panel(table, title=_text(f"{s.run} · {clip(s.title, 60)}"), title_align="left")


def _rows(s: Status, now: int) -> list[tuple[str, str]]:
    still = [f for f in s.findings if f.state == "open"]
    rows = [
        ("state", f"{s.state} for {span(now - s.entered)} · {s.status} · {rounds(s)}"),
        ("working", " · ".join(work(w, now) for w in s.working) or "nobody"),
        ("budget", " · ".join(figure(f) for f in s.budget) or "nothing spent yet"),
        ("findings", f"{len(still)} open, {len(s.findings) - len(still)} fixed"),
    ]
    if s.checks:
        rows.append(("last check", check(s.checks[-1])))
    for g in (g for g in s.gates if not g.answer):
        rows.append(("waits for you", f"{question(g)} {s.cause if g.job == EVIDENCE else ''}".rstrip()))
        rows.append(("", " · ".join(commands(g, "steersman"))))
    if s.not_isolated:
        rows.append(("approval", f"not isolated: {s.not_isolated}"))
    return rows


def _text(value: str, **style: Any) -> Text:
    return Text(printable(value), **style)
