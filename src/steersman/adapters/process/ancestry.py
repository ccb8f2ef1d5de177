"""Whether a process works for a run, or for a chat, that some store on this machine keeps.

**Invariant:** a store that cannot be read is no proof of innocence.
"""

import os
from collections.abc import Iterable, Iterator

from steersman.adapters.config import state_paths
from steersman.errors import SteersmanError


def find_recorded_effect(state: str, effects: Iterable[str]) -> str:
    """The first of these effects whose run is in the store of `state` or in one beside it; nothing where none is."""
    return next(
        (
            effect
            for effect in effects
            if any(_is_effect_in_store(store, effect) for store in _list_neighbour_stores(state))
        ),
        "",
    )


def _list_neighbour_stores(state: str) -> Iterator[str]:
    """The store itself and those of its neighbours, found from its real path, not through a link."""
    real = os.path.realpath(state)
    parent = os.path.dirname(real)
    neighbour_names = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    for directory in (real, *(os.path.join(parent, name) for name in neighbour_names)):
        store = os.path.join(directory, state_paths.STORE_FILE_NAME)
        if os.path.isfile(store):
            yield store


def _is_effect_in_store(store: str, effect: str) -> bool:
    from steersman.adapters.storage.sqlite.chat import SqliteChats
    from steersman.adapters.storage.sqlite.reader import SqliteJournalReader

    try:
        reader = SqliteJournalReader(store)
        try:
            owner = effect.split(":", 1)[0]
            return reader.head(owner) is not None or SqliteChats(reader).thread(owner) is not None
        finally:
            reader.close()
    except (SteersmanError, OSError):
        return True
