"""People's own words on their way to a tape: without secrets, without what a terminal would obey, bounded.

**Invariant:** what an entry keeps of a person's words has passed here.
"""

import re
from typing import Any

from steersman.judges.redaction import redact
from steersman.judges.text import clip, one_line, printable, visible, well_formed
from steersman.runtime.world import World

REASON = 500  # characters of a person's reason that stay in the entry
NAME = 200
_PLAIN = re.compile(r"[A-Za-z0-9_.:/@+ -]{0,60}")


def reason(world: World, run: str, words: str) -> str:
    """A reason as it stays in an entry of this run; words that nobody can see are none."""
    if not visible(words):
        return ""
    return clip(_safe(world, _key(world, run), words).strip(), REASON)


def carried(world: World, run: str, value: Any) -> Any:
    """What a person's event carries, with every text in it made safe."""
    key = _key(world, run)

    def walk(part: Any) -> Any:
        match part:
            case str():
                return _safe(world, key, part)
            case dict():
                return {_safe(world, key, str(name)): walk(item) for name, item in part.items()}
            case list() | tuple():
                return [walk(item) for item in part]
            case _:
                return part

    return walk(value)


def outside_name(world: World, words: str) -> str:
    """A name that an agent gives (a model, a session) as an entry keeps it: one line, bounded, without secrets."""
    if _PLAIN.fullmatch(words):
        return words
    return clip(one_line(well_formed(redact(words, world.secrets(()), world.chance.key()))), NAME)


def _safe(world: World, key: bytes, words: str) -> str:
    return printable(well_formed(redact(words, world.secrets(()), key)))


def _key(world: World, run: str) -> bytes:
    """The key of the run's tree: its markers are those of its texts; a new one where that was pruned."""
    head = world.journal.head(run)
    return (world.journal.key(head.root) if head is not None else None) or world.chance.key()
