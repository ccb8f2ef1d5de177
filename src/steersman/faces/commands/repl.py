"""`steersman repl`: a task at a prompt."""

import click

from steersman.faces.deck import Deck, verb


@verb(
    "repl",
    "steersman repl",
    "steersman repl 261116-abc",
    "steersman repl < entries.txt",
    exits="0 the sitting is over · 2 wrong usage · 4 refused · 5 store trouble",
)
@click.argument("run", required=False, default="")
def repl(deck: Deck, *, run: str) -> int:
    """Work on RUN, or on the task that moved last, at a prompt. /help says what can be typed; Ctrl-D ends it.

    Lines that come from a pipe are read as if they were typed."""
    from steersman.faces.sitting import sit

    return sit(deck, run)
