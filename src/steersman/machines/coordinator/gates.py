"""Where the reviews of phases and of the intent stand: before what cannot be taken back, else after what was made.

**Invariant:** every review that a selected phase or the intent asks for stands somewhere in each of its workflows; none
stands behind the first command that it is about and that nobody can take back.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.words import Effect, Phase, Review
from steersman.machines.coordinator.inputs import CHANGING
from steersman.machines.coordinator.nodes import Desk
from steersman.machines.coordinator.places import Place

OUTSIDE: tuple[Phase, ...] = ("release", "operations")  # whatever these change, somebody has or uses at once
LASTING: frozenset[Effect] = frozenset({"deploy", "data"})
# The reviews of what is about to happen, and what each is about; a review of architecture is about what was made.
AHEAD: dict[Review, frozenset[Effect]] = {
    "release": frozenset(),  # no effect: anything that cannot be taken back
    "cost": frozenset(),
    "compliance": frozenset(),
    "data": frozenset({"data"}),
    "security": frozenset({"security"}),
}


class Stand(NamedTuple):
    """Who looks in a phase, and when: before one of its commands, or before it is left."""

    reviews: tuple[Review, ...]
    before: str  # a command; none: before the phase is left


def stands(d: Desk) -> Iterator[Stand]:
    """For each place of a desk its reviews and where they stand; one workflow at a time, so that little is kept."""
    for _, group in groupby(d.found, key=lambda place: place.workflow.id):
        places = tuple(group)
        final = tuple(tuple(_final(d, place)) for place in places)
        asked: list[set[Review]] = [set(place.phase.review) for place in places]
        for review in d.inputs.intent.risk.requires_review:
            for n in _where(d, places, review, final):
                asked[n].add(review)
        for reviews, lasting in zip(asked, final, strict=True):
            yield Stand(tuple(sorted(reviews)), lasting[0].command_id if lasting else "")


def _final(d: Desk, place: Place) -> Iterator[PlannedCommand]:
    """The proposed commands of a phase that nobody can take back, in their order."""
    everything = place.phase.phase in OUTSIDE
    for planned in place.commands:
        effects = d.effects(planned)
        lasts = everything or not LASTING.isdisjoint(effects)
        if lasts and not CHANGING.isdisjoint(effects) and planned.command_id not in d.out:
            yield planned


def _where(
    d: Desk, places: tuple[Place, ...], review: Review, final: tuple[tuple[PlannedCommand, ...], ...]
) -> tuple[int, ...]:
    """The phases of one workflow, by number, in which a review of the intent stands."""
    looked: set[Phase] = {p.phase.phase for p in places if p.phase.phase == "review"}
    found = []
    for n, place in enumerate(places):
        if any(_about(d, review, c) for c in final[n]) and looked.isdisjoint(place.earlier):
            found.append(n)
            if not place.phase.condition:
                looked.add(place.phase.phase)
    return tuple(found) or (_last(places),)


def _about(d: Desk, review: Review, planned: PlannedCommand) -> bool:
    wanted = AHEAD.get(review)
    return wanted is not None and (not wanted or not wanted.isdisjoint(d.effects(planned)))


def _last(places: tuple[Place, ...]) -> int:
    """The phase that is there for reviews, else the last one that is always come to."""
    reviews = [n for n, p in enumerate(places) if p.phase.phase == "review"]
    sure = [n for n, p in enumerate(places) if not p.phase.condition]
    return (reviews or sure or [len(places) - 1])[-1]
