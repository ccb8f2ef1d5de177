"""A registry as bytes that can be read back: kept under its digest, so that what changed since can be shown.

**Invariant:** bytes that do not give the registry of their digest give none.
"""

import msgspec

from steersman.contracts.planning.content import KINDS
from steersman.contracts.planning.words import Kind
from steersman.judges.planning.registry import Item, Origin, Registry
from steersman.kernel.canonical import canonical


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Kind
    origin: Origin
    content: msgspec.Raw
    file: str = ""


_read = msgspec.json.Decoder(tuple[_Kept, ...]).decode


def archived(registry: Registry) -> bytes:
    """Everything that holds, sorted by kind and id."""
    kept = (
        {"kind": kind, "origin": item.origin, "content": item.content, "file": item.file}
        for kind, items in sorted(registry.held.items())
        for item in items.values()
    )
    return canonical(list(kept))


def items_archived(data: bytes) -> tuple[Item, ...]:
    """What an archive holds. Raises msgspec.DecodeError."""
    return tuple(
        Item(msgspec.json.decode(one.content, type=KINDS[one.kind]), one.origin, one.file)
        for one in _read(data)
    )


def unarchived(data: bytes, digest: str) -> Registry | None:
    """The registry of this digest; None where the bytes are not of it."""
    try:
        items = items_archived(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    registry = Registry(items)
    return registry if registry.digest == digest else None
