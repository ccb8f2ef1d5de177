"""What has become of everything that an intent has pinned: the same, another version, gone.

**Invariant:** a pin is held against the registry alone; what was kept only helps to show what it meant.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steersman.contracts.planning.words import Kind
from steersman.judges.planning.registry import Registry, fields, pins


class Drift(NamedTuple):
    """One pin that no longer fits."""

    kind: Kind
    id: str
    found: str  # drifted, missing or inactive
    pinned: str
    now: str  # version and digest; empty where there is nothing
    fields: tuple[tuple[str, str, str], ...]
    kept: bool  # whether the pinned content could be found to compare


def drift(refs: Iterable[str], now: Registry, kept: Sequence[Registry]) -> tuple[Drift, ...]:
    """Every pin that does not fit the registry as it is now, sorted by kind and id."""
    fixed = pins(refs)
    found = []
    for (kind, id_), (version, start) in sorted(fixed.items()):
        reference = now.reference(kind, id_, fixed)
        if reference.found == "usable":
            continue
        meant = next((r for r in kept if _is(r, kind, id_, version, start)), None)
        changes = fields(meant.get(kind, id_), now.get(kind, id_)) if meant else ()
        held = f"{reference.version}#{reference.digest[:12]}" if reference.version else ""
        found.append(Drift(kind, id_, reference.found, reference.pinned, held, changes, meant is not None))
    return tuple(found)


def _is(registry: Registry, kind: Kind, id_: str, version: str, start: str) -> bool:
    entry = registry.entries.get((kind, id_))
    return entry is not None and (entry.version, entry.digest[:12]) == (version, start)
