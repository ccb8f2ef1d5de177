"""`steersman repl`: a task at a prompt."""

import click

from steersman.faces.cli.context import CommandContext, define_command


@define_command(
    "repl",
    "steersman repl",
    "steersman repl 261116-abc",
    "steersman repl < entries.txt",
    exits="0 the sitting is over; from a pipe: every entry was done · from a pipe, the first entry that was not: "
    "1 its run ended without approval · 2 not understood · 4 refused · 5 store trouble",
)
@click.argument("run", required=False, default="")
@click.option(
    "--strict", is_flag=True, help="From a pipe: end at the first entry that is not done (default: go on)."
)
def repl_command(context: CommandContext, *, run: str, strict: bool) -> int:
    """Work on RUN, or on the task that moved last, at a prompt. /help says what can be typed; Ctrl-D ends it.

    Lines that come from a pipe are read as if they were typed."""
    from steersman.faces.repl.entry_source import run_repl

    return run_repl(context, run, strict=strict)
