"""What is said when a run parks, stops or has its outcome: the outcome, what is asked, and what to type next."""

from typing import Any

import msgspec

from steersman.faces.deck import DONE, ENDED, Deck
from steersman.runtime.projections import Picture, picture
from steersman.views.gates import asked, commands
from steersman.views.moments import span
from steersman.views.screen import check, finding
from steersman.views.why import redelivery, undelivered, unreverted

LISTED = 10


def tell_ending(deck: Deck, run: str, code: int) -> int:
    """For people in words, for programs the status with the exit code; gives that code, which is not 0 where an
    approved change could not be handed over, or not be taken back."""
    seen = picture(deck.bridge.world, run)
    if code == DONE and (undelivered(seen.snapshot) or unreverted(seen.snapshot)):
        code = ENDED
    _tell(deck, seen, code)
    return code


def _tell(deck: Deck, seen: Picture, code: int) -> None:
    if deck.as_json:
        deck.tell({**msgspec.to_builtins(seen.status), "exit_code": code, "next": _next(deck, seen)})
        return
    s = seen.status
    match s.status:
        case "done" | "stopped":
            _outcome(deck, seen)
        case "waiting for you":
            for gate in (g for g in s.gates if not g.answer):
                for line in asked(gate, seen.text, deck.me, not_isolated=s.not_isolated):
                    deck.say(line)
        case _:
            deck.say(f"run {s.run} is let go in {s.state}, nothing is lost")
            for command in _next(deck, seen):
                deck.say(f"  {command}")


def _outcome(deck: Deck, seen: Picture) -> None:
    s = seen.status
    good = s.status == "done"
    deck.say(
        f"run {s.run}: {s.outcome} after {span(s.at - s.created)}", fg="green" if good else "red", bold=True
    )
    for c in s.checks[:LISTED]:
        deck.say(f"  check {check(c)}")
    for f in [f for f in s.findings if f.state == "open"][:LISTED]:
        deck.say(f"  open {finding(f)}")
    if s.delivered:
        deck.say(f"  delivered as {s.delivered.removeprefix('refs/heads/')} at {s.commit[:12]}")
        if s.url:
            deck.say(f"  draft pull request: {s.url}")
        if s.reverted:
            deck.say(f"  taken back by commit {s.reverted[:12]}")
        if unreverted(seen.snapshot):
            deck.say("  it could not be taken back, and nothing was changed:", fg="red")
    elif undelivered(seen.snapshot):
        deck.say("  the delivery failed:", fg="red")
    elif good:
        deck.say("  not delivered: see why it stopped")
    for line in s.detail.splitlines()[:LISTED]:
        deck.say(f"  {line}")
    deck.say("next:")
    for command in _next(deck, seen):
        deck.say(f"  {command}")


def _next(deck: Deck, seen: Picture) -> list[str]:
    s: Any = seen.status
    match s.status:
        case "waiting for you":
            return [c for g in s.gates if not g.answer for c in commands(g, deck.me)]
        case "done":
            look = (
                [f"git diff {s.base[:12]} {s.delivered.removeprefix('refs/heads/')}"] if s.delivered else []
            )
            again = [redelivery(s.run, deck.me)] if undelivered(seen.snapshot) else []
            return [*again, *look, f"{deck.me} report {s.run}", f"{deck.me} audit verify {s.run}"]
        case "stopped":
            return [f"{deck.me} show {s.run}", f'{deck.me} followup {s.run} "what to do differently"']
        case _:
            return [f"{deck.me} resume {s.run}", f"{deck.me} why {s.run}"]
