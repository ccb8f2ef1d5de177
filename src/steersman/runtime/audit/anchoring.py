"""Anchors: made where the project keeps them, and held against the tape."""

from collections.abc import Callable, Mapping

from steersman.errors import UserError
from steersman.ports.anchors import Anchor, Anchors, Kept
from steersman.runtime.audit.verdict import Findings
from steersman.runtime.world import World


def anchor(world: World, run: str, where: str = "file") -> Anchor:
    """Signs the run's tape as it is now and keeps the statement at one of the project's places."""
    head = world.journal.head(run)
    if head is None:
        raise UserError(f"there is no run {run}: see `steersman runs --all`")
    return _place(world.anchors, where).keep(run, head.seq, head.hash, world.clock.now())


def _place(places: Mapping[str, Anchors], where: str) -> Anchors:
    place = places.get(where)
    if place is None:
        raise UserError(
            f"no anchors are kept at {where!r} here: there are {', '.join(sorted(places)) or 'none'}"
        )
    return place


def kept_anchors(world: World, run: str) -> Kept:
    """What all places together say about a run."""
    said = [place.kept(run) for place in world.anchors.values()]
    genuine = sorted((a for k in said for a in k.genuine), key=lambda a: a.seq)
    return Kept(tuple(genuine), tuple(d for k in said for d in k.doubts), sum(k.blanks for k in said))


def known_runs(world: World) -> list[str]:
    """Every run there is or was: what the store has any trace of, and what a genuine anchor names."""
    traces = set(world.journal.traces())
    return sorted(traces.union(lost_runs(world, traces.__contains__)))


def lost_runs(world: World, there: Callable[[str], bool]) -> list[str]:
    """The runs that a genuine anchor names and that are not there; without a store, all that one names."""
    named = {run for place in world.anchors.values() for run in place.runs()}
    return sorted(run for run in named if not there(run) and kept_anchors(world, run).genuine)


class Vouched:
    """The anchors of a run while its tape goes by."""

    def __init__(self, kept: Kept) -> None:
        self._waiting: dict[int, set[str]] = {}
        for a in kept.genuine:
            self._waiting.setdefault(a.seq, set()).add(a.hash)
        self._fits = 0  # the last entry that an anchor agrees with
        self.highest = max(self._waiting, default=None)

    def see(self, seq: int, hash_: str, found: Findings) -> None:
        signed = self._waiting.pop(seq, None) if self._waiting else None
        if signed is None:
            return
        if signed == {hash_}:
            self._fits = seq
        else:
            found.add(
                f"entry {seq} does not have the hash that was anchored: something from entry {self._fits + 1} to {seq} was rewritten",
                seq,
            )

    def settle(self, last: int, found: Findings) -> None:
        """Anchors of entries that the tape does not have."""
        beyond = sorted(self._waiting)
        if beyond:
            found.add(
                f"entry {last + 1} is missing: an anchor says there were {beyond[-1]} entries", last + 1
            )
