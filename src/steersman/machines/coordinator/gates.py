"""Where the reviews of phases and of the intent stand: before what cannot be taken back, else after what was made.

**Invariant:** every review that a selected phase or the intent asks for stands somewhere in each of its workflows; on
every way from its beginning to a command that cannot be undone, the intent's reviews about it stand before it, and
one in a phase with a condition counts for that phase alone.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from steersman.contracts.planning.intent import PlannedCommand
from steersman.contracts.planning.words import CommandEffect, PlanPhase, ReviewCategory
from steersman.judges.planning.plan_inputs import CHANGING_EFFECTS
from steersman.machines.coordinator.nodes import GraphSources
from steersman.machines.coordinator.places import SelectedPhase

# Whatever these change, somebody has or uses at once.
OUTWARD_PHASES: tuple[PlanPhase, ...] = ("release", "operations")
LASTING_EFFECTS: frozenset[CommandEffect] = frozenset({"deploy", "data"})
# The reviews of what is about to happen, and what each is about; a review of architecture is about what was made.
EFFECTS_BY_REVIEW: dict[ReviewCategory, frozenset[CommandEffect]] = {
    "release": frozenset(),  # no effect: anything that cannot be taken back
    "cost": frozenset(),
    "compliance": frozenset(),
    "data": frozenset({"data"}),
    "security": frozenset({"security"}),
}


class ReviewPlacement(NamedTuple):
    """Who looks in a phase, and when: before one of its commands, or before it is left."""

    reviews: tuple[ReviewCategory, ...]
    before: str  # a command; none: before the phase is left


class _PhaseFlow(NamedTuple):
    """The phases of one workflow, by number, and what leads from one to another."""

    final: tuple[
        tuple[PlannedCommand, ...], ...
    ]  # of each the commands that cannot be undone, in their order
    begins: tuple[int, ...]  # before which nothing comes
    then: dict[int, list[int]]  # what comes when a phase is over
    instead: dict[int, int]  # what comes when it does not succeed, however far it has come
    sure: frozenset[int]  # that no condition guards
    reviews: frozenset[int]  # of these the ones that are there for reviews

    def bare(self, looked: set[int] | frozenset[int]) -> set[int]:
        """The phases that can be come to without a look that would stand in some of them and is sure to be taken."""
        looked = looked & self.sure
        reached: set[int] = set()
        waiting = list(self.begins)
        while waiting:
            n = waiting.pop()
            if n not in reached:
                reached.add(n)
                waiting += [self.instead[n]] if n in self.instead else []
                waiting += () if n in looked else self.then.get(n, ())
        return reached

    def last(self) -> int:
        """The phase that is there for reviews, else the last one; where it can be, one that is always come to."""
        return max(self.reviews or self.sure or {len(self.final) - 1})


def place_reviews(sources: GraphSources) -> Iterator[ReviewPlacement]:
    """For each place of a desk its reviews and where they stand; one workflow at a time, so that little is kept."""
    for _, group in groupby(sources.found, key=lambda place: place.workflow.id):
        places = tuple(group)
        flow = _build_phase_flow(sources, places)
        requested_reviews: list[set[ReviewCategory]] = [set(place.phase.review) for place in places]
        for review in sources.inputs.intent.risk.requires_review:
            for n in _phases_of_review(sources, flow, review):
                requested_reviews[n].add(review)
        for reviews, lasting in zip(requested_reviews, flow.final, strict=True):
            yield ReviewPlacement(tuple(sorted(reviews)), lasting[0].command_id if lasting else "")


def _build_phase_flow(sources: GraphSources, places: tuple[SelectedPhase, ...]) -> _PhaseFlow:
    at = {str(place.phase.phase): n for n, place in enumerate(places)}
    then: dict[int, list[int]] = {}
    for n, place in enumerate(places):
        for phase in place.before:
            then.setdefault(at[phase], []).append(n)
    sure = frozenset(n for n, place in enumerate(places) if not place.phase.condition)
    return _PhaseFlow(
        tuple(tuple(_irreversible_commands(sources, place)) for place in places),
        tuple(n for n, place in enumerate(places) if not place.before),
        then,
        {
            n: at[p.phase.fallback]
            for n, p in enumerate(places)
            if p.phase.fallback in at and not sources.leads_back(p)
        },
        sure,
        sure & frozenset({at["review"]} if "review" in at else ()),
    )


def _irreversible_commands(sources: GraphSources, place: SelectedPhase) -> Iterator[PlannedCommand]:
    """The proposed commands of a phase that cannot be undone, in their order."""
    everything = place.phase.phase in OUTWARD_PHASES
    for planned in place.commands:
        effects = sources.effects(planned)
        lasts = everything or not LASTING_EFFECTS.isdisjoint(effects)
        if lasts and not CHANGING_EFFECTS.isdisjoint(effects) and planned.command_id not in sources.out:
            yield planned


def _phases_of_review(sources: GraphSources, flow: _PhaseFlow, review: ReviewCategory) -> tuple[int, ...]:
    """The phases of one workflow, by number, in which a review of the intent stands."""
    about = {
        n
        for n, commands in enumerate(flow.final)
        if any(_is_review_about(sources, review, c) for c in commands)
    }
    alone = about & flow.bare(about)
    helped = flow.bare(about | flow.reviews)
    phase_numbers = alone if about & helped == alone else (about | flow.reviews) & helped
    return tuple(sorted(phase_numbers)) or (flow.last(),)


def _is_review_about(sources: GraphSources, review: ReviewCategory, planned: PlannedCommand) -> bool:
    wanted = EFFECTS_BY_REVIEW.get(review)
    return wanted is not None and (not wanted or not wanted.isdisjoint(sources.effects(planned)))
