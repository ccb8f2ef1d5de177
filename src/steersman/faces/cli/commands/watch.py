"""`steersman watch`: follows a run that another process drives; reads, never writes."""

import asyncio
import contextlib

import click

from steersman.app.runs import read_run_view
from steersman.app.subscriptions import follow_run
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command
from steersman.faces.cli.drive import run_exit_code
from steersman.faces.cli.run_ending import open_run_screen, print_run_outcome


@define_command("watch", "steersman watch 261116-abc", "steersman watch 261116-abc --for 30")
@click.argument("run")
@click.option(
    "--for", "seconds", type=click.IntRange(1), default=None, help="End the command after this many seconds."
)
def watch_command(context: CommandContext, *, run: str, seconds: int | None) -> int:
    """Follow RUN until it waits or ends. Ctrl-C ends the command and does not affect the run."""
    run_id = context.runs.find(run)
    try:
        asyncio.run(_follow_watched_run(context, run_id, seconds))
    except KeyboardInterrupt:
        context.print(f"run {run_id} goes on without you: {context.command_prefix} watch {run_id}")
        return EXIT_DONE
    return print_run_outcome(context, run_id, run_exit_code(context.runs.head(run_id)))


async def _follow_watched_run(context: CommandContext, run: str, seconds: int | None) -> None:
    """Shows each update until the run has parked or ended, or so many seconds have passed."""
    ports = context.runs.ports
    with (
        contextlib.suppress(TimeoutError),
        open_run_screen(context, keys="Ctrl-C looks away; the run goes on") as screen,
    ):
        async with asyncio.timeout(seconds):
            async for _ in follow_run(ports, run):
                view = read_run_view(ports, run)
                screen.show(view.status, view.entries)
