"""`steersman why`: what a run waits for and what would move it."""

from typing import TYPE_CHECKING

import click

from steersman.faces.deck import Deck, verb

if TYPE_CHECKING:
    from steersman.views.why import Reason


@verb("why", "steersman why 261116-abc", exits="0 done · 2 wrong usage · 5 store trouble")
@click.argument("run")
def why(deck: Deck, *, run: str) -> None:
    """What RUN waits for and what would move it, with the commands to type."""
    tell_why(deck, deck.sight.find(run))


def tell_why(deck: Deck, found: str) -> None:
    """Why a run stands where it stands."""
    from steersman.faces.papers import touched
    from steersman.runtime.projections import overrides, reading, stands_still, stopped_on_base
    from steersman.views.status import waiver
    from steersman.views.why import Reason, lines
    from steersman.views.why import why as reasons_of

    world = deck.sight.world
    live = deck.sight.live(found)
    reasons = reasons_of(
        live.machine,
        live.snapshot,
        gates=world.journal.gates(found),
        pending=len(world.journal.pending(found)),
        owner=world.locks.owner(found),
        now=world.clock.now(),
        me=deck.me,
        text=reading(live),
        cause=stands_still(world, live),
        base_problem=stopped_on_base(world, live),
        title=live.title,
    )
    reasons += [Reason("override", f"overridden: {waiver(o)}") for o in overrides(world, found)]
    reasons += [Reason("file", told, urgent=True) for told in touched(deck, found)]
    head = live.head()
    deck.tell({"run": found, "state": head.state, "status": head.status, "reasons": reasons})
    deck.say(f"run {found} is in {head.state}, {head.status}: {live.machine.states[head.state].meaning}")
    for line, urgent in lines(_typed_here(reasons) if deck.prompting else reasons):
        deck.say(line, fg="red" if urgent else None)


def _typed_here(reasons: "list[Reason]") -> "list[Reason]":
    """For a prompt, which has words of its own for what can be done: without the commands."""
    from msgspec.structs import replace

    return [replace(reason, commands=()) for reason in reasons if reason.kind != "event"]
