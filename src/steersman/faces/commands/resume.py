"""`resume` and `fork`: driving on from the end of a tape, or from any entry of it in a run of its own."""

import click

from steersman.errors import SteersmanError
from steersman.faces.deck import DONE, USAGE, WAITING, Deck, verb
from steersman.faces.voyage import background, drive_on
from steersman.ports.journal import Head


@verb("resume", "steersman resume", "steersman resume 261116-abc", "steersman resume 261116-abc --take-over")
@click.argument("run", required=False)
@click.option(
    "--take-over", is_flag=True, help="From an owner that is stopped or hangs: its later writes are void."
)
@click.option("--detach", is_flag=True, help="Drive it in the background.")
@click.option("--despite-verify", metavar="REASON", default=None,
              help="Drive it though `audit verify` rejects it; who and why go on tape.")  # fmt: skip
def resume(deck: Deck, *, run: str | None, take_over: bool, detach: bool, despite_verify: str | None) -> int:
    """Drive RUN on from where its tape ends. Without RUN: the only one that can go on, or a list of them."""
    _settle_deliveries(deck)
    if run is None:
        ready = _ready(deck)
        if len(ready) != 1:
            return _choice(deck, ready)
        run = ready[0].run
    found = deck.bridge.find(run)
    if despite_verify is not None:
        return _despite_verify(deck, found, despite_verify, take_over=take_over)
    if detach:
        log = background(deck, found)
        deck.say(f"run {found} goes on in the background, log in {log}: {deck.me} watch {found}")
        deck.tell({"run": found, "log": log, "exit_code": 0})
        return 0
    return drive_on(deck, found, take_over=take_over)


def _despite_verify(deck: Deck, run: str, reason: str, *, take_over: bool) -> int:
    from steersman.faces.speech import insider

    refused = insider(deck, run, "resume --despite-verify")
    if refused is not None:
        return refused
    return drive_on(deck, run, take_over=take_over, despite=reason)


def _settle_deliveries(deck: Deck) -> None:
    """Finishes or undoes deliveries that were cut short, of whichever run."""
    try:
        done = deck.bridge.world.workspace(deck.read_config().config).settle()
    except SteersmanError as error:
        deck.say(str(error))
        return
    for what in done:
        deck.say(what)


def _ready(deck: Deck) -> list[Head]:
    """Runs that would move if somebody drove them now."""
    journal, now = deck.bridge.world.journal, deck.bridge.world.clock.now()
    return [
        h
        for h in deck.bridge.resumable()
        if h.status == "working" or (h.due is not None and h.due <= now) or journal.pending(h.run)
    ]


def _choice(deck: Deck, ready: list[Head]) -> int:
    """Says which runs can go on, or that none can."""
    deck.tell([{"run": h.run, "state": h.state, "title": h.title} for h in ready])
    for head in ready:
        deck.say(f"{deck.me} resume {head.run}    {head.state} · {head.title}")
    if ready:
        deck.say("several runs can go on: name one")
        return USAGE
    waiting = deck.bridge.world.journal.heads(unfinished=True)
    told = f"{len(waiting)} wait for somebody: {deck.me} gates" if waiting else "and none waits"
    deck.say(f"no run can go on by itself now, {told}")
    return WAITING if waiting else DONE


@verb(
    "fork",
    "steersman fork 261116-abc --at 12",
    "steersman audit tape 261116-abc   # the entries to choose from",
)
@click.argument("run")
@click.option(
    "--at", type=click.IntRange(1), default=None, help="The entry to start from (default: the last)."
)
@click.option("--hold", is_flag=True, help="Make the new run, but do not drive it yet.")
def fork(deck: Deck, *, run: str, at: int | None, hold: bool) -> int:
    """Start a new run as RUN was after one of its entries, with its tree. The old one is left alone."""
    import asyncio

    from steersman.faces.speech import insider

    found = deck.bridge.find(run)
    refused = insider(deck, found, "fork")
    if refused is not None:
        return refused
    new = asyncio.run(deck.bridge.fork(found, at or deck.bridge.head(found).seq, deck.person))
    deck.say(f"run {new} begins as {found} was after entry {at or deck.bridge.head(found).seq}")
    if hold:
        deck.say(f"  {deck.me} resume {new}")
        deck.tell({"run": new, "from": found, "exit_code": 0})
        return 0
    return drive_on(deck, new)
