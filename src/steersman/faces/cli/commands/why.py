"""`steersman why`: says what a run waits for and which command moves it."""

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
    """Prints what a run waits for, for people and for programs."""
    from steersman.app.runs import explain_run
    from steersman.faces.repl.document_status import list_touched_file_lines
    from steersman.views.why import WaitReason, wait_reason_lines

    explained = explain_run(context.read_only_runs.ports, run_id, context.command_prefix)
    touched_lines = list_touched_file_lines(context, run_id)
    reasons = [*explained.reasons, *(WaitReason("file", line, urgent=True) for line in touched_lines)]
    context.set_result(
        {"run": run_id, "state": explained.state, "status": explained.status, "reasons": reasons}
    )
    meaning = "" if any(reason.kind == "outcome" for reason in reasons) else f": {explained.meaning}"
    context.print(f"run {run_id} is {explained.status}, in state {explained.state}{meaning}")
    for line, urgent in wait_reason_lines(_drop_reason_commands(reasons) if context.prompting else reasons):
        context.print(line, fg="red" if urgent else None)


def _drop_reason_commands(reasons: "list[WaitReason]") -> "list[WaitReason]":
    """Removes the commands, because a prompt has words of its own for them."""
    from msgspec.structs import replace

    return [replace(reason, commands=()) for reason in reasons if reason.kind != "event"]
