"""`steersman runs`: the listing, as cheap as its libraries."""

import time

import click

from steersman.faces.deck import Deck, verb
from steersman.views.listing import listing, plain_head, put_aside

SHOWN = 20


@verb(
    "runs",
    "steersman runs",
    "steersman runs --unfinished",
    "steersman runs --all --json",
    exits="0 done · 2 wrong usage · 5 store trouble",
)
@click.option("--all", "everything", is_flag=True, help=f"Child runs too, and not only the last {SHOWN}.")
@click.option("--unfinished", is_flag=True, help="Only runs that have no outcome yet or wait for somebody.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=None, help="At most so many.")
def runs(deck: Deck, *, everything: bool, unfinished: bool, limit: int | None) -> None:
    """List runs, the last one that moved first."""
    deck.quiet = deck.as_json
    if not deck.has_store():
        deck.tell([])
        if not (deck.helm.anchored(deck.top) and _lost(deck)):
            deck.say(f'nothing has been run here yet: start with `{deck.me} run "…"`')
        return
    journal = deck.journal
    heads = journal.heads(unfinished=unfinished, limit=limit or (100_000 if everything else 10 * SHOWN))
    if not everything:
        heads = [h for h in heads if not h.parent][: limit or SHOWN]
    broken = put_aside(heads, journal.quarantined())
    listed = {h.run for h in heads}
    if any(journal.matching(run)[:1] != [run] for run in deck.helm.anchored(deck.top) - listed):
        _lost(deck)
    working = [h for h in heads if h.status == "working" and h.run not in broken]
    alone = [h.run for h in working if not deck.helm.owner(deck.top, h.run)]
    if deck.as_json:
        deck.tell([{**plain_head(h, broken), "idle": h.run in alone} for h in heads])
        return
    if not heads:
        told = "no run is unfinished" if unfinished else "nothing has been run here yet"
        deck.say(f'{told}: start with `{deck.me} run "…"`')
        return
    for n, line in enumerate(listing(heads, broken, time.time_ns() // 1_000_000)):
        deck.say(line, bold=n == 0)
    for run in alone:
        deck.say(f"nobody drives {run}: {deck.me} resume {run}", fg="yellow")


def _lost(deck: Deck) -> bool:
    """A word beside the listing about what should be in it."""
    from steersman.faces.lost import hint, lost  # slow to import

    found = lost(deck)
    if found:
        deck.warn(hint(deck, found), fg="red")
    return bool(found)
