"""What has become of everything that an intent has pinned: the same, another version, gone.

**Invariant:** a pin is held against the registry alone; what was kept only helps to show what it meant.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steersman.contracts.planning.words import ContentKind
from steersman.judges.planning.registry import Registry, compare_content_fields, parse_pins


class PinDrift(NamedTuple):
    """One pin that no longer fits."""

    kind: ContentKind
    id: str
    found: str  # drifted, missing or inactive
    pinned: str
    now: str  # version and digest; empty where there is nothing
    fields: tuple[tuple[str, str, str], ...]
    kept: bool  # whether the pinned content could be found to compare


def find_pin_drift(
    refs: Iterable[str], current: Registry, archived: Sequence[Registry]
) -> tuple[PinDrift, ...]:
    """Every pin that does not fit the registry as it is now, sorted by kind and id."""
    pins_by_content = parse_pins(refs)
    drifts = []
    for (kind, id_), (version, digest_start) in sorted(pins_by_content.items()):
        reference = current.reference(kind, id_, pins_by_content)
        if reference.found == "usable":
            continue
        pinned_registry = next(
            (r for r in archived if _has_pinned_version(r, kind, id_, version, digest_start)), None
        )
        changes = (
            compare_content_fields(pinned_registry.get(kind, id_), current.get(kind, id_))
            if pinned_registry
            else ()
        )
        current_version = f"{reference.version}#{reference.digest[:12]}" if reference.version else ""
        drifts.append(
            PinDrift(
                kind,
                id_,
                reference.found,
                reference.pinned,
                current_version,
                changes,
                pinned_registry is not None,
            )
        )
    return tuple(drifts)


def _has_pinned_version(
    registry: Registry, kind: ContentKind, id_: str, version: str, digest_start: str
) -> bool:
    entry = registry.entries.get((kind, id_))
    return entry is not None and (entry.version, entry.digest[:12]) == (version, digest_start)
