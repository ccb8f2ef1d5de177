"""What is said when a run parks, stops or has its outcome: the outcome, what is asked, and what to type next."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.engine.projections import RunView, read_run_view
from steersman.faces.cli.context import EXIT_DONE, EXIT_ENDED, CommandContext
from steersman.ports.journal import Gate
from steersman.machines.task.views.acceptance import acceptance_lines
from steersman.views.base_stop import start_again_command
from steersman.views.gates import EVIDENCE_GATE, gate_commands, render_gate_lines
from steersman.views.legal_actions import action_command
from steersman.machines.task.views.phase import phase_lines
from steersman.views.screen import (
    base_remedies_for_run,
    check_status_line,
    review_finding_line,
    stop_reason_lines,
)
from steersman.views.run_summary import CheckStatus
from steersman.views.time_format import format_duration
from steersman.views.why import FOLLOWUP_EVENT, has_failed_delivery, has_failed_revert, redelivery_command

MAX_OUTCOME_ITEMS = 10
MAX_DETAIL_LINES = 24  # lines of why it stopped
MAX_CHANGE_LINES = 100  # lines of a change; all of them are shown to whoever accepts it


def print_run_outcome(context: CommandContext, run: str, code: int) -> int:
    """For people in words, for programs the status with the exit code; gives that code, which is not 0 where an
    approved change could not be handed over, or not be taken back."""
    run_view = read_run_view(context.runs.ports, run)
    if code == EXIT_DONE and (has_failed_delivery(run_view.snapshot) or has_failed_revert(run_view.snapshot)):
        code = EXIT_ENDED
    _print_outcome_by_status(context, run_view, code)
    return code


def _print_outcome_by_status(context: CommandContext, run_view: RunView, code: int) -> None:
    if context.as_json:
        fields = {
            **msgspec.to_builtins(run_view.status),
            "exit_code": code,
            "next": _outcome_next_commands(context, run_view),
        }
        context.set_result(
            fields if run_view.live.machine.tree else {**fields, **_plan_outcome_fields(run_view)}
        )
        return
    status = run_view.status
    match status.status:
        case "done" | "stopped":
            _print_final_outcome(context, run_view)
        case "waiting for you":
            for gate in (open_gate for open_gate in status.gates if not open_gate.answer):
                _print_outcome_gate(context, run_view, gate)
        case _:
            context.print(f"run {status.run} is let go in {status.state}, nothing is lost")
            for line in () if context.prompting else _outcome_next_commands(context, run_view):
                context.print(f"  {line}")


def _print_outcome_gate(context: CommandContext, run_view: RunView, gate: Gate) -> None:
    """What a gate is about, in words where there are some, and what it asks."""
    lines_before: list[str] = []
    if gate.job == "next":
        lines_before = phase_lines(run_view.snapshot, run_view.text)
    elif gate.job == "decide":
        lines_before = acceptance_lines(
            run_view.snapshot, run_view.status, gate, run_view.text, most=MAX_CHANGE_LINES
        )
        gate = replace(gate, shown={name: ref for name, ref in gate.shown.items() if name == "detail"})
    other_commands = [
        action_command(word, run_view.status.run, context.command_prefix)
        for word in run_view.status.besides
        if gate.job == "again"
    ]
    cause = run_view.status.cause if gate.job == "again" else ""
    if gate.job in ("again", EVIDENCE_GATE):
        lines_before = [line for check_status in run_view.status.checks for line in check_status.failure]
    if gate.job == "again" and run_view.status.base_problem:
        lines_before = stop_reason_lines(run_view.status, "" if context.prompting else context.command_prefix)
        gate = replace(gate, shown={})
    lines = render_gate_lines(
        gate,
        run_view.text,
        context.command_prefix,
        not_isolated=run_view.status.not_isolated,
        cause=cause,
        more=other_commands,
    )
    for line in (*lines_before, *(lines[: lines.index("answer with:")] if context.prompting else lines)):
        context.print(line)


def _print_final_outcome(context: CommandContext, run_view: RunView) -> None:
    status = run_view.status
    is_done = status.status == "done"
    context.print(
        f"run {status.run}: {status.outcome} after {format_duration(status.at - status.created)}",
        fg="green" if is_done else "red",
        bold=True,
    )
    if not run_view.live.machine.tree:
        _print_plan_outcome(context, run_view)
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
            context.print(f"  taken back by commit {status.reverted[:12]}")
        if has_failed_revert(run_view.snapshot):
            context.print("  it could not be taken back, and nothing was changed:", fg="red")
    elif has_failed_delivery(run_view.snapshot):
        context.print("  the delivery failed:", fg="red")
    elif is_done:
        context.print("  not delivered: see why it stopped")
    for line in status.detail.splitlines()[:MAX_DETAIL_LINES]:
        context.print(f"  {line}")
    for run in _find_outcome_followers(context, run_view):
        context.print(f"  task {run} waits for this one")
    context.print("next:")
    for line in _outcome_next_commands(context, run_view):
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


def _find_outcome_followers(context: CommandContext, run_view: RunView) -> list[str]:
    """The tasks that wait for a task that is accepted."""
    if run_view.status.machine != "task" or run_view.status.outcome != "accepted":
        return []
    from steersman.faces.cli.task_roles import find_waiting_followers

    return find_waiting_followers(context, run_view.status.run)


def _plan_outcome_fields(run_view: RunView) -> dict[str, Any]:
    """What a planning run has brought, for programs."""
    from steersman.machines.coordinator.views.outcome import build_plan_run_summary, read_failure_pack

    return {
        "plan": find_plan_directory(run_view) or None,
        "summary": msgspec.to_builtins(
            build_plan_run_summary(run_view.snapshot, run_view.text, run_view.entries)
        ),
        "failure": msgspec.to_builtins(read_failure_pack(run_view.snapshot, run_view.text)),
    }


def find_plan_directory(run_view: RunView) -> str:
    """Where the frozen plan of a run lies; nothing where there is none."""
    if run_view.snapshot.state != "DONE":
        return ""
    ports, out_directory = run_view.live.world, run_view.text(run_view.snapshot.context.out_ref)
    return out_directory or (
        ports.planning().plans.default_directory(run_view.snapshot.run) if ports.planning is not None else ""
    )


def _print_plan_outcome(context: CommandContext, run_view: RunView) -> None:
    from steersman.machines.coordinator.views.outcome import render_outcome_lines

    for line in render_outcome_lines(run_view.snapshot, run_view.text, run_view.entries):
        context.print(f"  {line}")
    directory = find_plan_directory(run_view)
    if directory:
        context.print(f"  frozen in {directory}")
    context.print("next:")
    for line in _outcome_next_commands(context, run_view):
        context.print(f"  {line}")


def _outcome_next_commands(context: CommandContext, run_view: RunView) -> list[str]:
    status: Any = run_view.status
    if not run_view.live.machine.tree and status.status in ("done", "stopped"):
        directory = find_plan_directory(run_view)
        look_commands = [f"{context.command_prefix} plan verify {directory}"] if directory else []
        return [
            f"{context.command_prefix} plan explain {status.run}",
            *look_commands,
            f"{context.command_prefix} audit tape {status.run} --as runtape",
        ]
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
                [f"git diff {status.base[:12]} {status.delivered.removeprefix('refs/heads/')}"]
                if status.delivered
                else []
            )
            retry_commands = (
                [redelivery_command(status.run, context.command_prefix)]
                if has_failed_delivery(run_view.snapshot)
                else []
            )
            follower_commands = [
                f"{context.command_prefix} tasks next {run}"
                for run in _find_outcome_followers(context, run_view)
            ]
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
            followup_command = f'{context.command_prefix} followup {status.run} "what to do differently"'
            return [
                f"{context.command_prefix} show {status.run}",
                *([followup_command] if FOLLOWUP_EVENT in run_view.live.machine.events else []),
            ]
        case _:
            return [
                f"{context.command_prefix} resume {status.run}",
                f"{context.command_prefix} why {status.run}",
            ]
