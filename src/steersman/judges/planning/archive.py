"""A registry as bytes that can be read back: kept under its digest, so that what changed since can be shown.

**Invariant:** bytes that do not give the registry of their digest give none.
"""

import msgspec

from steersman.contracts.planning.content import CONTENT_TYPES
from steersman.contracts.planning.words import ContentKind
from steersman.judges.planning.registry import ContentOrigin, Registry, RegistryItem
from steersman.kernel.canonical import canonical_bytes


class _ArchivedItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: ContentKind
    origin: ContentOrigin
    content: msgspec.Raw
    file: str = ""


_decode_archived_items = msgspec.json.Decoder(tuple[_ArchivedItem, ...]).decode


def encode_registry_archive(registry: Registry) -> bytes:
    """Everything that holds, sorted by kind and id."""
    records = (
        {"kind": kind, "origin": item.origin, "content": item.content, "file": item.file}
        for kind, items in sorted(registry.held.items())
        for item in items.values()
    )
    return canonical_bytes(list(records))


def decode_registry_archive(data: bytes) -> tuple[RegistryItem, ...]:
    """What an archive holds. Raises msgspec.DecodeError."""
    return tuple(
        RegistryItem(
            msgspec.json.decode(record.content, type=CONTENT_TYPES[record.kind]), record.origin, record.file
        )
        for record in _decode_archived_items(data)
    )


def restore_archived_registry(data: bytes, digest: str) -> Registry | None:
    """The registry of this digest; None where the bytes are not of it."""
    try:
        items = decode_registry_archive(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    registry = Registry(items)
    return registry if registry.digest == digest else None
