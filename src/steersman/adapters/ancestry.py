"""Whether a process works for a run, or for a chat, that some store on this machine keeps.

**Invariant:** a store that cannot be read is no proof of innocence.
"""

import os
from collections.abc import Iterable, Iterator

from steersman.adapters import places
from steersman.errors import SteersmanError


def known_effect(state: str, effects: Iterable[str]) -> str:
    """The first of these effects whose run is in the store of `state` or in one beside it; nothing where none is."""
    return next((effect for effect in effects if any(_holds(store, effect) for store in _stores(state))), "")


def _stores(state: str) -> Iterator[str]:
    """The store itself and those of its neighbours, found from where it really is: a link leads nobody astray."""
    real = os.path.realpath(state)
    beside = os.path.dirname(real)
    folders = sorted(os.listdir(beside)) if os.path.isdir(beside) else []
    for folder in (real, *(os.path.join(beside, name) for name in folders)):
        store = os.path.join(folder, places.STORE)
        if os.path.isfile(store):
            yield store


def _holds(store: str, effect: str) -> bool:
    from steersman.adapters.sqlite.chat import SqliteChats
    from steersman.adapters.sqlite.reader import SqliteReader

    try:
        reader = SqliteReader(store)
        try:
            owner = effect.split(":", 1)[0]
            return reader.head(owner) is not None or SqliteChats(reader).thread(owner) is not None
        finally:
            reader.close()
    except (SteersmanError, OSError):
        return True
