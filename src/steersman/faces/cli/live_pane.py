"""The live pane: state, round, time in state, who works, tokens, budget, findings, checks, keys. Terminals only.

Before a prompt the steps stay as lines, so that scrolling back shows what led to the question.
"""

import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live as RichLive
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steersman.app.runs import ActiveRun, build_run_view
from steersman.faces.cli.context import CommandContext
from steersman.judges.text import clip_text, printable_text
from steersman.kernel.tape import Entry, SealedEntry
from steersman.views.gates import EVIDENCE_GATE, gate_commands, gate_question
from steersman.views.run_summary import RunSummary
from steersman.views.screen import (
    budget_figure_line,
    check_status_line,
    entry_line,
    round_progress_words,
    running_work_line,
)
from steersman.views.time_format import format_duration

VISIBLE_STEPS = 6  # steps that stay in sight


class LivePane:
    """Redrawn four times a second; everything from outside is plain text, never markup."""

    pane = True

    def __init__(self, context: CommandContext, *, keys: str) -> None:
        self._context, self._keys = context, keys
        self.keys = not context.prompting
        self._entries: list[Entry] = []
        self._status: RunSummary | None = None
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
        from steersman.kernel.tape import read_entry

        self._entries = [read_entry(body) for _, body, _ in self._context.journal.rows(run)]

    def watch(self, active_run: ActiveRun, entries: Sequence[SealedEntry]) -> None:
        last_seq = self._entries[-1].seq if self._entries else 0
        new_entries = [sealed.entry for sealed in entries if sealed.entry.seq > last_seq]
        self._entries += new_entries
        if self._context.prompting:
            self._leave(new_entries)
        view = build_run_view(active_run.world, active_run, self._entries)
        self.show(view.status, self._entries)

    def show(self, status: RunSummary, entries: Sequence[Entry]) -> None:
        """Draws this from now on."""
        self._status, self._entries = status, list(entries)

    def note(self, text: str) -> None:
        self._note = text

    def _leave(self, entries: Sequence[Entry]) -> None:
        """Lines above the pane, which stay when it is gone."""
        for entry in entries:
            step_text = entry_line(entry)
            if step_text:
                time_text = time.strftime("%H:%M:%S", time.localtime(entry.at // 1000))
                self._rich.console.print(_printable_rich_text(f"{time_text}  {step_text}", style="dim"))

    def _draw(self) -> RenderableType:
        status = self._status
        if status is None:
            return Text("…")
        table = Table.grid(padding=(0, 2))
        for name, value in _pane_rows(status, time.time_ns() // 1_000_000):
            table.add_row(Text(name, style="dim"), _printable_rich_text(value))
        for entry in () if self._context.prompting else self._entries[-VISIBLE_STEPS * 2 :][-VISIBLE_STEPS:]:
            step_text = entry_line(entry)
            if step_text:
                table.add_row(Text(f"{entry.seq}", style="dim"), _printable_rich_text(step_text))
        table.add_row(Text("keys", style="dim"), Text(self._keys))
        if self._note:
            table.add_row(Text("note", style="dim"), _printable_rich_text(self._note, style="yellow"))
        return Panel(
            table,
            title=_printable_rich_text(f"{status.run} · {clip_text(status.title, 60)}"),
            title_align="left",
        )


def _pane_rows(status: RunSummary, now: int) -> list[tuple[str, str]]:
    open_findings = [finding_status for finding_status in status.findings if finding_status.state == "open"]
    rows = [
        (
            "state",
            f"{status.state} for {format_duration(now - status.entered)} · {status.status} · {round_progress_words(status)}",
        ),
        (
            "working",
            " · ".join(running_work_line(work_item, now) for work_item in status.working) or "no agent",
        ),
        (
            "budget",
            " · ".join(budget_figure_line(finding_status) for finding_status in status.budget)
            or "nothing spent yet",
        ),
        ("findings", f"{len(open_findings)} open, {len(status.findings) - len(open_findings)} fixed"),
    ]
    if status.checks:
        rows.append(("last check", check_status_line(status.checks[-1])))
    for gate in (gate for gate in status.gates if not gate.answer):
        rows.append(
            (
                "waits for you",
                f"{gate_question(gate)} {status.cause if gate.job == EVIDENCE_GATE else ''}".rstrip(),
            )
        )
        rows.append(("", " · ".join(gate_commands(gate, "steersman"))))
    if status.not_isolated:
        rows.append(("approval", f"not isolated: {status.not_isolated}"))
    return rows


def _printable_rich_text(value: str, **style: Any) -> Text:
    return Text(printable_text(value), **style)
