"""`steersman why`: what a run waits for and what would move it."""

from typing import TYPE_CHECKING

import click

from steersman.faces.cli.context import CommandContext, define_command

if TYPE_CHECKING:
    from steersman.views.why import WaitReason


@define_command("why", "steersman why 261116-abc", exits="0 done · 2 wrong usage · 5 store trouble")
@click.argument("run")
def why_command(context: CommandContext, *, run: str) -> None:
    """Say what RUN waits for, and print the commands that move it."""
    print_run_reasons(context, context.read_only_runs.find(run))


def print_run_reasons(context: CommandContext, run_id: str) -> None:
    """Why a run stands where it stands."""
    from steersman.engine.projections import read_run_view
    from steersman.faces.repl.document_status import describe_touched_files
    from steersman.views.run_summary import override_line
    from steersman.views.why import WaitReason, wait_reason_lines
    from steersman.views.why import find_wait_reasons as find_reasons

    ports = context.read_only_runs.ports
    run_view = read_run_view(ports, run_id)
    active_run = run_view.live
    reasons = find_reasons(
        active_run.machine,
        active_run.snapshot,
        run_view.status,
        pending=len(ports.journal.pending(run_id)),
        owner=ports.locks.owner(run_id),
        now=ports.clock.now(),
        command_prefix=context.command_prefix,
    )
    reasons += [
        WaitReason("override", f"overridden: {override_line(override)}")
        for override in run_view.status.overrides
    ]
    reasons += [
        WaitReason("file", touched_line, urgent=True)
        for touched_line in describe_touched_files(context, run_id)
    ]
    head = active_run.head()
    context.set_result({"run": run_id, "state": head.state, "status": head.status, "reasons": reasons})
    context.print(
        f"run {run_id} is in {head.state}, {head.status}: {active_run.machine.states[head.state].meaning}"
    )
    for line, urgent in wait_reason_lines(_drop_reason_commands(reasons) if context.prompting else reasons):
        context.print(line, fg="red" if urgent else None)


def _drop_reason_commands(reasons: "list[WaitReason]") -> "list[WaitReason]":
    """For a prompt, which has words of its own for what can be done: without the commands."""
    from msgspec.structs import replace

    return [replace(reason, commands=()) for reason in reasons if reason.kind != "event"]
