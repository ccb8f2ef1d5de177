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
    from steersman.engine.projections import read_run_view
    from steersman.faces.repl.document_status import describe_touched_files

    run_view = read_run_view(context.read_only_runs.ports, run_id)
    owner = context.read_only_runs.ports.locks.owner(run_id)
    files = describe_touched_files(context, run_id)
    context.set_result({**msgspec.to_builtins(run_view.status), "driven_by": owner, "files": files})
    for line in status_screen_lines(
        run_view.status,
        context.read_only_runs.ports.clock.now(),
        "" if context.prompting else context.command_prefix,
    ):
        context.print(line)
    for touched_line in files:
        context.print(f"\n{touched_line}", fg="red")
    if owner:
        context.print(f"\n{owner} drives it: {context.command_prefix} watch {run_id}")
    elif run_view.status.status == "working":
        resume_text = "/resume" if context.prompting else f"{context.command_prefix} resume {run_id}"
        context.print(f"\nnobody drives it: {resume_text}", fg="yellow")
