"""A task's files put right by a person's word: documents as they were recorded, the rest made again from the tape.

**Invariant:** nobody else drives the run meanwhile, and the run is where it was.
"""

from steersman.faces.deck import Deck
from steersman.judges.text import one_line


def wrong(deck: Deck, run: str) -> list[str]:
    """Names of files that are not what they should be; one that will be laid down again by itself is none."""
    from steersman.runtime.mending import damaged
    from steersman.runtime.projections import by_hand

    world, live = deck.bridge.world, deck.bridge.live(run)
    return [*(d.name for d in damaged(world, live)), *by_hand(world, live)]


def put_right(deck: Deck, run: str) -> list[str]:
    """Puts the files of a run right and says what became of each; the names of those that still are not."""
    from steersman.runtime.drive import Busy
    from steersman.runtime.mending import damaged, mended
    from steersman.runtime.projections import write

    world, live = deck.bridge.world, deck.bridge.live(run)
    before = damaged(world, live)
    held = world.locks.acquire(run)
    if held is None:
        raise Busy(f"run {run} is driven by {world.locks.owner(run) or 'another process'}: try again later")
    try:
        told, left = mended(world, live) if before else ([], [])
    finally:
        held.release()
    told += write(world, run, older=True)
    still = wrong(deck, run)
    back = [d for d in before if d.name not in still and d.recorded]
    told = [*(f"{one_line(d.name)} {d.problem}: it was put back" for d in back), *told, *left]
    for line in told:
        deck.say(line)
    deck.tell({"run": run, "put_back": [d.name for d in back], "left": still, "told": told})
    return still
