"""Prints how a run ended or why it waits: the outcome, the open questions, and what to type next."""

import shlex
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec
from msgspec.structs import replace

from steersman.app.runs import ActiveRun, RunEnding, RunOutcome, RunView, read_run_outcome
from steersman.contracts.commands import CommandResult
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, CommandContext, is_output_terminal
from steersman.kernel.tape import Entry, SealedEntry
from steersman.views.base_stop import start_again_command
from steersman.views.failed_check import failed_check_lines
from steersman.views.gates import GateView, gate_commands, render_gate_lines
from steersman.views.legal_actions import event_command
from steersman.views.run_summary import CheckStatus, RunSummary
from steersman.views.screen import (
    base_remedies_for_run,
    check_status_line,
    entry_line,
    review_finding_line,
    stop_reason_lines,
)
from steersman.views.time_format import format_duration

MAX_OUTCOME_ITEMS = 10
MAX_DETAIL_LINES = 24  # lines of why it stopped
MAX_CHANGE_LINES = 100  # lines of a change; the gate shows all of them


def print_run_outcome(context: CommandContext, run: str, code: int) -> int:
    """For people in words, for programs the status with the exit code; gives that code, which is not 0 where an
    approved change could not be delivered or not be reverted."""
    outcome = read_run_outcome(context.runs.ports, run)
    status = outcome.view.status
    if code == EXIT_DONE and (status.delivery_failed or status.revert_failed):
        code = EXIT_ENDED
    _print_outcome_by_status(context, outcome, code)
    return code


def _print_outcome_by_status(context: CommandContext, outcome: RunOutcome, code: int) -> None:
    run_view, ending = outcome.view, outcome.ending
    if context.as_json:
        fields = {
            **msgspec.to_builtins(run_view.status),
            "exit_code": code,
            "next": _outcome_next_commands(context, run_view, ending),
            **ending.fields,
        }
        context.set_result(fields)
        return
    status = run_view.status
    match status.status:
        case "done" | "stopped":
            _print_final_outcome(context, run_view, ending)
        case "waiting for you":
            for gate in (open_gate for open_gate in status.gates if not open_gate.answer):
                _print_outcome_gate(context, outcome, gate)
        case _:
            context.print(f"run {status.run} stopped being driven in {status.state}; nothing is lost")
            for line in () if context.prompting else _outcome_next_commands(context, run_view, ending):
                context.print(f"  {line}")


def _print_outcome_gate(context: CommandContext, outcome: RunOutcome, gate: GateView) -> None:
    """What a gate is about, in words where there are some, and what it asks."""
    run_view, status = outcome.view, outcome.view.status
    preview = outcome.preview_gate(gate, MAX_CHANGE_LINES)
    lines_before = list(preview.lines)
    if preview.shown is not None:
        gate = replace(gate, shown={name: ref for name, ref in gate.shown.items() if name in preview.shown})
    if status.base_problem:
        lines_before = stop_reason_lines(status, "" if context.prompting else context.command_prefix)
        gate = replace(gate, shown={})
    elif status.cause:
        lines_before = [line for check_status in status.checks for line in check_status.failure]
    lines = render_gate_lines(
        gate,
        run_view.text,
        context.command_prefix,
        split_text=outcome.package.split_gate_text,
        not_isolated=status.not_isolated,
        cause=status.cause,
        more=[f"{context.command_prefix} {command}" for command in status.side_commands],
    )
    if context.prompting or context.answers_gates:
        lines = lines[: lines.index("answer with:") - 1]
    for line in (*lines_before, *lines):
        context.print(line)


def _print_final_outcome(context: CommandContext, run_view: RunView, ending: RunEnding) -> None:
    status = run_view.status
    is_done = status.status == "done"
    context.print(
        f"run {status.run}: {status.outcome} after {format_duration(status.at - status.created)}",
        fg="green" if is_done else "red",
        bold=True,
    )
    if ending.lines or ending.commands:
        _print_own_ending(context, ending)
        return
    if status.base_problem:
        _print_base_stop(context, run_view)
        return
    for line in render_check_lines(status.checks[:MAX_OUTCOME_ITEMS]):
        context.print(f"  {line}")
    for open_finding in [open_finding for open_finding in status.findings if open_finding.state == "open"][
        :MAX_OUTCOME_ITEMS
    ]:
        context.print(f"  open {review_finding_line(open_finding)}")
    if status.delivered:
        context.print(
            f"  delivered as {status.delivered.removeprefix('refs/heads/')} at {status.commit[:12]}"
        )
        if status.url:
            context.print(f"  draft pull request: {status.url}")
        if status.reverted:
            context.print(f"  reverted by commit {status.reverted[:12]}")
        if status.revert_failed:
            context.print("  the revert failed and changed nothing:", fg="red")
    elif status.delivery_failed:
        context.print("  the delivery failed:", fg="red")
    elif is_done and run_view.machine.tree:
        context.print("  not delivered: see why it stopped")
    for line in status.detail.splitlines()[:MAX_DETAIL_LINES]:
        context.print(f"  {line}")
    for line in ending.more_lines:
        context.print(f"  {line}")
    if context.answers_gates:  # the command prints its own next steps
        return
    context.print("next:")
    for line in _outcome_next_commands(context, run_view, ending):
        context.print(f"  {line}")


def render_check_lines(checks: Sequence[CheckStatus]) -> list[str]:
    """One line for each check, and below the first that did not pass why."""
    first_failure = next((check_status for check_status in checks if check_status.failure), None)
    return [
        line
        for check_status in checks
        for line in (
            check_status.failure
            if check_status is first_failure
            else [f"check {check_status_line(check_status)}"]
        )
    ]


def _print_base_stop(context: CommandContext, run_view: RunView) -> None:
    for line in stop_reason_lines(run_view.status, "" if context.prompting else context.command_prefix):
        context.print(f"  {line}")


def _print_own_ending(context: CommandContext, ending: RunEnding) -> None:
    for line in ending.lines:
        context.print(f"  {line}")
    context.print("next:")
    for command in ending.commands:
        context.print(f"  {context.command_prefix} {command}")


def _git_command(context: CommandContext) -> str:
    """How the person calls git on the project from the current directory."""
    return "git" if context.project_option is None else f"git -C {shlex.quote(context.project_root)}"


def _outcome_next_commands(context: CommandContext, run_view: RunView, ending: RunEnding) -> list[str]:
    status = run_view.status
    if ending.commands and status.status in ("done", "stopped"):
        return [f"{context.command_prefix} {command}" for command in ending.commands]
    match status.status:
        case "waiting for you":
            return [
                gate_command
                for gate in status.gates
                if not gate.answer
                for gate_command in gate_commands(gate, context.command_prefix)
            ]
        case "done":
            look_commands = (
                [
                    f"{_git_command(context)} diff {status.base[:12]} {status.delivered.removeprefix('refs/heads/')}"
                ]
                if status.delivered
                else []
            )
            retry_commands = _event_commands(context, run_view, "deliver") if status.delivery_failed else []
            follower_commands = [f"{context.command_prefix} {command}" for command in ending.more_commands]
            return [
                *retry_commands,
                *follower_commands,
                *look_commands,
                f"{context.command_prefix} report {status.run}",
                f"{context.command_prefix} audit verify {status.run}",
            ]
        case "stopped" if status.base_problem:
            return [remedy.command for remedy in base_remedies_for_run(status, context.command_prefix)]
        case "stopped" if status.outcome == "setup_failed":
            start_command = start_again_command(status.machine, status.title, context.command_prefix)
            return [
                f"edit [worktree] setup in steersman.toml, then {context.command_prefix} init --check",
                start_command,
            ]
        case "stopped":
            return [
                f"{context.command_prefix} show {status.run}",
                *_event_commands(context, run_view, "followup"),
            ]
        case _:
            return [
                f"{context.command_prefix} resume {status.run}",
                f"{context.command_prefix} why {status.run}",
            ]


def _event_commands(context: CommandContext, run_view: RunView, word: str) -> list[str]:
    """The command for the event of this word, where the machine has one."""
    machine = run_view.machine
    return [
        f"{context.command_prefix} {event_command(machine, event, run_view.status.run)}"
        for event in machine.events.values()
        if event.action is not None and event.action.word == word
    ]


# ── screens ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# What a person sees while a run is driven: lines, a live pane, or nothing for programs.
#
# **Invariant:** a screen only shows; it never answers a question.


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
