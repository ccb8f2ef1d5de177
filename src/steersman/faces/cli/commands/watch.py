"""`steersman watch`: follows a run that another process drives; reads, never writes."""

import time

import click

from steersman.engine.projections import read_run_view
from steersman.faces.cli.context import EXIT_DONE, CommandContext, define_command
from steersman.faces.cli.drive import run_exit_code
from steersman.faces.cli.run_ending import print_run_outcome
from steersman.faces.cli.screens import open_run_screen

WATCH_POLL_SECONDS = 0.2
WATCH_START_SECONDS = 3.0  # seconds for a driver that is only just starting


@define_command("watch", "steersman watch 261116-abc", "steersman watch 261116-abc --for 30")
@click.argument("run")
@click.option(
    "--for", "seconds", type=click.IntRange(1), default=None, help="End the command after this many seconds."
)
def watch_command(context: CommandContext, *, run: str, seconds: int | None) -> int:
    """Follow RUN until it waits or ends. Ctrl-C ends the command and does not affect the run."""
    run_id = context.runs.find(run)
    try:
        _follow_watched_run(context, run_id, time.monotonic() + seconds if seconds else None)
    except KeyboardInterrupt:
        context.print(f"run {run_id} goes on without you: {context.command_prefix} watch {run_id}")
        return EXIT_DONE
    return print_run_outcome(context, run_id, run_exit_code(context.runs.head(run_id)))


def _follow_watched_run(context: CommandContext, run: str, deadline: float | None) -> None:
    ports = context.runs.ports
    last_driven = time.monotonic()
    last_change = None
    with open_run_screen(context, keys="Ctrl-C looks away; the run goes on") as screen:
        while deadline is None or time.monotonic() < deadline:
            is_owned = ports.locks.owner(run) is not None
            if (change := ports.journal.changed()) != last_change:
                last_change = change
                run_view = read_run_view(ports, run)
                screen.show(run_view.status, run_view.entries)
            if is_owned:
                last_driven = time.monotonic()
            elif (
                context.runs.head(run).status != "working"
                or time.monotonic() > last_driven + WATCH_START_SECONDS
            ):
                return
            time.sleep(WATCH_POLL_SECONDS)
