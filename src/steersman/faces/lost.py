"""Runs that only an anchor remembers: what a store that is gone, or that has lost a run, cannot say itself."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steersman.faces.deck import Deck
    from steersman.runtime.world import World


def world_without_store(deck: "Deck") -> "World | None":
    """The anchors of a project whose store is gone; None where nothing of it was ever kept, so that looking makes nothing."""
    kept = not deck.has_store() and deck.helm.state_dir(deck.project).is_dir()
    return deck.helm.open_world(deck.project, journal=None) if kept else None


def lost(deck: "Deck") -> list[str]:
    """Every run with a genuine anchor that the store does not list."""
    from steersman.runtime.audit.anchoring import lost_runs

    if not deck.has_store():
        world = world_without_store(deck)
        return lost_runs(world, lambda _run: False) if world is not None else []
    journal = deck.journal
    world = deck.helm.open_world(deck.project, journal=journal)
    return lost_runs(world, lambda run: journal.matching(run)[:1] == [run])


def hint(deck: "Deck", runs: list[str]) -> str:
    """What is missing, and the next step."""
    where = "the store lacks" if deck.has_store() else "the store is gone, and with it"
    names = ", ".join(runs[:5]) + (f" and {len(runs) - 5} more" if len(runs) > 5 else "")
    return (
        f"{where} what anchors vouch for: {names}; restore it from a backup, or see `{deck.me} audit verify`"
    )
