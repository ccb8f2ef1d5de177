"""`send`, `followup`, `abort`: a person's events. The kernel refuses what a person may not cause, and says so on tape."""

from typing import Any

import click

from steersman.errors import UserError
from steersman.faces.deck import Deck, verb
from steersman.faces.speech import insider
from steersman.faces.voyage import spoken
from steersman.judges.text import visible, well_formed

FOLLOWUP = "task_followup_received"


@verb(
    "send",
    'steersman send 261116-abc aborted_by_operator --data \'{"choice": "abort"}\'',
    "steersman why 261116-abc      # what is legal now",
)
@click.argument("run")
@click.argument("event")
@click.option("--data", default="{}", metavar="JSON", help="What the event carries.")
@click.option("--reason", default="", help="Why; it stays on tape.")
def send(deck: Deck, *, run: str, event: str, data: str, reason: str) -> int:
    """Send RUN an EVENT that a person may cause. A refused one is on tape too, and what is legal now is shown."""
    return say_event(deck, deck.bridge.find(run), event, _object(data), reason)


@verb(
    "followup",
    'steersman followup 261116-abc "also handle negative numbers"',
    "steersman followup 261116-abc --confirm",
)
@click.argument("run")
@click.argument("text", required=False, default="")
@click.option("--confirm", is_flag=True, help="Confirm the proposal that waits: the same as `approve`.")
def followup(deck: Deck, *, run: str, text: str, confirm: bool) -> int:
    """Ask a RUN that has its outcome for more. Iterations start afresh, budgets do not."""
    found = deck.bridge.find(run)
    if confirm == visible(text):
        raise UserError('a follow-up is either words or --confirm: steersman followup RUN "what else"')
    return _confirmed(deck, found) if confirm else follow(deck, found, text)


def follow(deck: Deck, run: str, text: str) -> int:
    """A person's words to a run that has its outcome."""
    ref = deck.bridge.text(run, text)
    return say_event(deck, run, FOLLOWUP, {"choice": "followup", "text": ref, "person": deck.person}, "")


def _confirmed(deck: Deck, run: str) -> int:
    refused = insider(deck, run, "approve")
    if refused is not None:
        return refused
    open_now = [g for g in deck.bridge.world.journal.gates(run) if not g.answer and g.job == "confirm"]
    if not open_now:
        raise UserError(f"run {run} has no proposal to confirm: see `{deck.me} why {run}`")
    return spoken(deck, run, deck.bridge.answer(open_now[0], "approve", deck.person))


@verb(
    "abort",
    "steersman abort 261116-abc",
    'steersman abort 261116-abc --reason "wrong branch"',
    exits="0 the run has stopped as asked · 2 wrong usage · 4 refused · 5 store trouble",
)
@click.argument("run")
@click.option("--reason", default="", help="Why; it stays on tape.")
def abort(deck: Deck, *, run: str, reason: str) -> int:
    """Stop RUN for good, with everything it has started."""
    return stop(deck, deck.bridge.find(run), reason)


def stop(deck: Deck, run: str, reason: str) -> int:
    """Ends a run for good."""
    refused = insider(deck, run, "abort")
    if refused is not None:
        return refused
    return spoken(deck, run, deck.bridge.abort(run, deck.person, reason), wanted_end=True)


def say_event(deck: Deck, run: str, event: str, data: dict[str, Any], reason: str) -> int:
    """A person's event, and what became of it."""
    refused = insider(deck, run, event)
    if refused is not None:
        return refused
    return spoken(deck, run, deck.bridge.send(run, event, data, deck.person, reason))


def _object(words: str) -> dict[str, Any]:
    import msgspec

    try:
        return msgspec.json.decode(well_formed(words), type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UserError(
            f'--data is not a JSON object: {error}; write for example \'{{"choice": "…"}}\''
        ) from None
