"""A person's word to a run. **Invariant:** nothing that works for a run speaks here: that is refused, and on tape."""

from typing import Any

from steersman.faces.deck import Deck
from steersman.faces.voyage import spoken


def insider(deck: Deck, run: str, word: str) -> int | None:
    """The exit code of a refusal when this process works for a run of this machine; None when a person speaks."""
    effect = deck.helm.inside(deck.top)
    if not effect:
        return None
    body: dict[str, Any] = {"event": word, "inside": effect, "person": deck.person}
    journal, clock = deck.bridge.world.journal, deck.bridge.world.clock
    return spoken(deck, run, journal.post(run, "event", body, clock.now()))
