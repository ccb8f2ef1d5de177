"""`steersman watch`: follows a run that another process drives; reads, never writes."""

import time

import click

from steersman.faces.deck import DONE, Deck, verb
from steersman.faces.ending import tell_ending
from steersman.faces.screens import screen_for
from steersman.faces.voyage import exit_code
from steersman.runtime.projections import picture

POLL = 0.2
PATIENCE = 3.0  # seconds for a driver that is only just starting


@verb("watch", "steersman watch 261116-abc", "steersman watch 261116-abc --for 30")
@click.argument("run")
@click.option(
    "--for", "seconds", type=click.IntRange(1), default=None, help="Look away after so many seconds."
)
def watch(deck: Deck, *, run: str, seconds: int | None) -> int:
    """Follow RUN until it parks or ends; Ctrl-C looks away and leaves the run alone."""
    found = deck.bridge.find(run)
    try:
        _follow(deck, found, time.monotonic() + seconds if seconds else None)
    except KeyboardInterrupt:
        deck.say(f"run {found} goes on without you: {deck.me} watch {found}")
        return DONE
    return tell_ending(deck, found, exit_code(deck.bridge.head(found)))


def _follow(deck: Deck, run: str, end: float | None) -> None:
    world = deck.bridge.world
    driven = time.monotonic()
    before = None
    with screen_for(deck, keys="Ctrl-C looks away; the run goes on") as screen:
        while end is None or time.monotonic() < end:
            owned = world.locks.owner(run) is not None
            if (now := world.journal.changed()) != before:
                before = now
                seen = picture(world, run)
                screen.show(seen.status, seen.entries)
            if owned:
                driven = time.monotonic()
            elif deck.bridge.head(run).status != "working" or time.monotonic() > driven + PATIENCE:
                return
            time.sleep(POLL)
