"""What a person sees while a run is driven: lines, a live pane, or nothing for programs.

**Invariant:** a screen only shows; it never answers a question.
"""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from steersman.app.run_status import ActiveRun
from steersman.contracts.commands import CommandResult
from steersman.faces.cli.context import CommandContext, is_output_terminal
from steersman.kernel.tape import Entry, SealedEntry
from steersman.views.failed_check import failed_check_lines
from steersman.views.run_summary import RunSummary
from steersman.views.screen import entry_line

FAILED_CHECK_TAIL = 4  # lines of each stream of a check that failed in a round


def render_failed_part(entry: Entry, active_run: ActiveRun) -> list[str]:
    """Why a check of a round did not pass; a failing base tree is shown whole where the run ends."""
    data = entry.data if isinstance(entry.data, dict) else {}
    if data.get("variant") == "new tests":  # that they fail on the base's code is what they are for
        return []
    if entry.kind != "part_finished" or data.get("verdict", "passed") == "passed" or "ref" not in data:
        return []
    if data.get("known") or any(item.job.startswith("measure") for item in entry.held):
        return []
    result = msgspec.json.decode(active_run.payloads.get(data["ref"]), type=CommandResult)
    return failed_check_lines(result, FAILED_CHECK_TAIL)[1:]


class RunScreen(Protocol):
    """Follows a drive."""

    pane: bool  # whether it draws over lines, so that nothing may be echoed between them
    keys: bool  # whether single keys are read while it is up

    def watch(self, active_run: ActiveRun, entries: Sequence[SealedEntry]) -> None: ...
    def follow(self, run: str) -> None: ...
    def show(self, status: RunSummary, entries: Sequence[Entry]) -> None: ...
    def note(self, text: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LineScreen:
    """One plain line a step; with --json nothing at all."""

    pane = keys = False

    def __init__(self, context: CommandContext) -> None:
        self._context = context
        self._shown = 0  # the last entry that has its line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def follow(self, run: str) -> None:
        self._context.print(f"run {run}")

    def watch(self, active_run: ActiveRun, entries: Sequence[SealedEntry]) -> None:
        for sealed in entries:
            self._line(sealed.entry)
            for line in render_failed_part(sealed.entry, active_run):
                self._context.print(f"          {line}")

    def show(self, status: RunSummary, entries: Sequence[Entry]) -> None:  # noqa: ARG002  a pane needs it
        for entry in entries:
            if entry.seq > self._shown:
                self._line(entry)

    def _line(self, entry: Entry) -> None:
        """One entry, where it says something to a person."""
        self._shown = entry.seq
        step_text = entry_line(entry)
        if step_text is not None:
            time_text = time.strftime("%H:%M:%S", time.localtime(entry.at // 1000))
            self._context.print(f"{time_text}  {step_text}")

    def note(self, text: str) -> None:
        self._context.warn(text)


PANE_KEYS_HELP = "d detach · a abort · Ctrl-C stop, twice to abort"
PROMPT_KEYS_HELP = "Ctrl-C stop"  # people type ahead at a prompt, so no letter may do anything


def open_run_screen(context: CommandContext, *, keys: str = "") -> RunScreen:
    """A live pane in a terminal, lines elsewhere; `keys` is what it says about the keyboard."""
    if is_output_terminal() and not context.as_json and not context.mute:
        from steersman.faces.cli.live_pane import LivePane

        return LivePane(context, keys=keys or (PROMPT_KEYS_HELP if context.prompting else PANE_KEYS_HELP))
    return LineScreen(context)
