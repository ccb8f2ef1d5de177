"""`steersman show`: everything about one run."""

import click
import msgspec

from steersman.faces.deck import Deck, verb
from steersman.views.screen import screen


@verb(
    "show",
    "steersman show 261116-abc",
    "steersman show 2611 --json",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.argument("run")
def show(deck: Deck, *, run: str) -> None:
    """State, rounds, findings, gates, checks, budget, delivery, doubts and overrides of RUN."""
    tell_run(deck, deck.sight.find(run))


def tell_run(deck: Deck, found: str) -> None:
    """Everything about a run."""
    from steersman.faces.papers import touched
    from steersman.runtime.projections import picture

    seen = picture(deck.sight.world, found)
    owner = deck.sight.world.locks.owner(found)
    files = touched(deck, found)
    deck.tell({**msgspec.to_builtins(seen.status), "driven_by": owner, "files": files})
    for line in screen(seen.status, deck.sight.world.clock.now(), "" if deck.prompting else deck.me):
        deck.say(line)
    for told in files:
        deck.say(f"\n{told}", fg="red")
    if owner:
        deck.say(f"\n{owner} drives it: {deck.me} watch {found}")
    elif seen.status.status == "working":
        go_on = "/resume" if deck.prompting else f"{deck.me} resume {found}"
        deck.say(f"\nnobody drives it: {go_on}", fg="yellow")
