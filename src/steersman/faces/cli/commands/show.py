"""`steersman show`: everything about one run."""

import click
import msgspec

from steersman.faces.cli.context import CommandContext, define_command
from steersman.views.screen import status_screen_lines


@define_command(
    "show",
    "steersman show 261116-abc",
    "steersman show 2611 --json",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.argument("run")
def show_command(context: CommandContext, *, run: str) -> None:
    """Show RUN: state, rounds, findings, gates, checks, budget, delivery, doubts and overrides."""
    print_run_details(context, context.read_only_runs.find(run))


def print_run_details(context: CommandContext, run_id: str) -> None:
    """Everything about a run."""
    from steersman.app.runs import read_run_details
    from steersman.faces.repl.document_status import list_touched_file_lines

    details = read_run_details(context.read_only_runs.ports, run_id)
    files = list_touched_file_lines(context, run_id)
    context.set_result(
        {**msgspec.to_builtins(details.summary), "driven_by": details.driven_by, "files": files}
    )
    command_prefix = "" if context.prompting else context.command_prefix
    for line in status_screen_lines(details.summary, details.at, command_prefix):
        context.print(line)
    for touched_line in files:
        context.print(f"\n{touched_line}", fg="red")
    if details.driven_by:
        context.print(f"\n{details.driven_by} drives it: {context.command_prefix} watch {run_id}")
    elif details.summary.status == "working":
        resume_text = "/resume" if context.prompting else f"{context.command_prefix} resume {run_id}"
        context.print(f"\nno driver is running: {resume_text}", fg="yellow")
