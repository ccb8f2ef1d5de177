"""`steersman show`: everything about one run."""

import click

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
    from steersman.runtime.projections import picture

    found = deck.bridge.find(run)
    seen = picture(deck.bridge.world, found)
    deck.tell(seen.status)
    for line in screen(seen.status, deck.bridge.world.clock.now(), deck.me):
        deck.say(line)
    owner = deck.bridge.world.locks.owner(found)
    if owner:
        deck.say(f"\n{owner} drives it: {deck.me} watch {found}")
