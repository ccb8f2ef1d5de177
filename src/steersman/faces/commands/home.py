"""Plain `steersman`: what waits for you, what can be resumed, what next."""

import time
from contextlib import suppress

from steersman.errors import SteersmanError
from steersman.faces.deck import Deck, verb
from steersman.views.base_stop import NOT_GREEN, base_stop_remedies, remedy_lines
from steersman.views.gates import question
from steersman.views.listing import listing, put_aside

LAST = 5


@verb("home", "steersman")
def home(deck: Deck) -> None:
    """What waits for you, what can be resumed, what next."""
    _mention_trust(deck)
    if not deck.has_store():
        _welcome(deck)
        return
    journal = deck.journal
    waiting = [g for g in journal.gates() if not g.answer]
    heads = journal.heads(unfinished=True)
    idle = [h for h in heads if h.status == "working" and not deck.helm.owner(deck.top, h.run)]
    busy = [h for h in heads if h.status == "working" and h not in idle]
    _list(deck, "waits for you:", [f"{g.run}  {question(g)}   {deck.me} gates {g.run}" for g in waiting])
    _list(deck, "can go on:", [f"{h.run}  {h.state}  {h.title}   {deck.me} resume {h.run}" for h in idle])
    _list(deck, "at work:", [f"{h.run}  {h.state}  {h.title}   {deck.me} watch {h.run}" for h in busy])
    last = [h for h in journal.heads(limit=50) if not h.parent][:LAST]
    broken = put_aside([*heads, *last], journal.quarantined())
    _list(deck, "broken:", [f"{run}  {why}   {deck.me} audit verify {run}" for run, why in broken.items()])
    _list(deck, "last runs:", listing(last, broken, time.time_ns() // 1_000_000)[1:])
    if last and last[0].outcome == NOT_GREEN:  # of an older one somebody has taken care
        remedies = base_stop_remedies(NOT_GREEN, last[0].run, last[0].machine, last[0].title, deck.me)
        _list(deck, f"{last[0].run} stopped because checks fail on the base tree:", remedy_lines(remedies))
    deck.say(f'next: {deck.me} run "what to do" · {deck.me} runs · {deck.me} --help')


def _mention_trust(deck: Deck) -> None:
    """Says what is not trusted yet; settings that cannot be read are told by the commands that need them."""
    from steersman.faces.trust import describe_state, is_trusted, trust_command

    with suppress(SteersmanError):
        loaded = deck.read_config(only_look=True)
        if not is_trusted(deck, loaded):
            deck.say(f"{describe_state(deck, loaded)}.", fg="yellow")
            deck.say(f"Nothing of it is started until you trust it: {trust_command(deck)}\n")


def _list(deck: Deck, title: str, lines: list[str]) -> None:
    if lines:
        deck.say(title, bold=True)
        for line in lines:
            deck.say(f"  {line}")
        deck.say()


def _welcome(deck: Deck) -> None:
    deck.say(f"nothing has been run in {deck.top} yet.", bold=True)
    for command, what in (
        ("demo", "a whole run on a throw-away repository, in seconds"),
        ("init", "find this project's checks and write steersman.toml"),
        ('run "what to do"', "give the crew a task"),
        ("--help", "everything else"),
    ):
        deck.say(f"  {f'{deck.me} {command}':38}  {what}")
