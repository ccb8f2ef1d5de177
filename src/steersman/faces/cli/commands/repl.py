"""`steersman repl`: a task at a prompt."""

import click

from steersman.faces.cli.context import CommandContext, define_command


@define_command(
    "repl",
    "steersman repl",
    "steersman repl 261116-abc",
    "steersman repl < entries.txt",
    exits="0 done · with a pipe, the code of the first line that failed: 1 the run ended without approval · 2 not understood · 4 refused · 5 store trouble",
)
@click.argument("run", required=False, default="")
@click.option(
    "--strict", is_flag=True, help="With a pipe: end at the first line that fails (default: go on)."
)
def repl_command(context: CommandContext, *, run: str, strict: bool) -> int:
    """Work on a task at a prompt: on RUN, or on the task that changed last.

    /help lists the words that you can type. Ctrl-D ends the prompt.

    Lines from a pipe are read as if you typed them."""
    from steersman.faces.repl.entry_source import run_repl

    return run_repl(context, run, strict=strict)
