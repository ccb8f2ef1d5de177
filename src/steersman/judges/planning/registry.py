"""A registry as a value: its content with versions and digests, the pins of an intent, and what has changed since.

**Invariant:** only the content decides, never the place it was read from. A kept registry is used only if its bytes give
its digest.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast, get_args

import msgspec

from steersman.contracts.planning.content import (
    CONTENT_TYPES,
    RegistryContent,
    RegistryEntry,
    RegistrySnapshot,
)
from steersman.contracts.planning.decisions import RegistryReference
from steersman.contracts.planning.words import ContentKind, ContentStatus
from steersman.kernel.canonical import canonical_bytes, digest_of, plain_value

ContentOrigin = Literal["built-in", "project"]
ContentPath = tuple[str | int, ...]
# (kind, id): (version, first twelve hex of the digest).
ContentPins = Mapping[tuple[ContentKind, str], tuple[str, str]]

USABLE_STATUSES: tuple[ContentStatus, ...] = ("active", "frozen")
_KIND_BY_TYPE: dict[type[RegistryContent], ContentKind] = {s: kind for kind, s in CONTENT_TYPES.items()}
CONFLICTING_PINS_TEXT = "two pins that differ"
_PIN_REF_PATTERN = re.compile(
    r"registry://(workflow|agent|command|rule)/([a-z][a-z0-9_]{2,79})@(\d+\.\d+\.\d+)#([0-9a-f]{12})",
    re.ASCII,
)
_CITED_REF_PATTERN = re.compile(
    r"(?:rule://|registry://(workflow|agent|command|rule)/)([a-z][a-z0-9_]{2,79})(?:@([0-9.]+))?(?:#([0-9a-f]+))?",
    re.ASCII,
)
_CONFLICTING_PIN = ("", "")  # two pins that differ: whatever the registry has, it is not what both say


class RegistryItem(NamedTuple):
    """One piece of content, and where it stands: the file, and the lines of its fields where they are known."""

    content: RegistryContent
    origin: ContentOrigin
    file: str = ""
    lines: Mapping[ContentPath, int] = MappingProxyType({})


class RegistryDifference(msgspec.Struct, frozen=True):
    """What one of two registries has otherwise: `fields` are paths with both values, for what both have."""

    kind: ContentKind
    id: str
    old: RegistryEntry | None
    new: RegistryEntry | None
    fields: tuple[tuple[str, str, str], ...] = ()


class Registry(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Everything that was read, in that order; of two with one id the later holds."""

    items: tuple[RegistryItem, ...]

    @cached_property
    def held(self) -> Mapping[ContentKind, Mapping[str, RegistryItem]]:
        """What holds, by kind and id, sorted by id."""
        by_kind: dict[ContentKind, dict[str, RegistryItem]] = {kind: {} for kind in get_args(ContentKind)}
        for item in self.items:
            by_kind[get_content_kind(item.content)][item.content.id] = item
        return {kind: dict(sorted(items.items())) for kind, items in by_kind.items()}

    @cached_property
    def entries(self) -> Mapping[tuple[ContentKind, str], RegistryEntry]:
        """One entry for everything that holds, sorted by kind and id."""
        return {
            (kind, id_): build_registry_entry(item)
            for kind, items in sorted(self.held.items())
            for id_, item in items.items()
        }

    @cached_property
    def digest(self) -> str:
        """The digest of the registry: over its entries."""
        return digest_of(list(self.entries.values()))

    def snapshot(self) -> RegistrySnapshot:
        """The registry as a document, without the content itself."""
        return RegistrySnapshot(entries=tuple(self.entries.values()), digest=self.digest)

    def get(self, kind: ContentKind, id_: str) -> RegistryContent | None:
        """What holds under this id, whatever its status."""
        item = self.held[kind].get(id_)
        return item.content if item else None

    def usable(self, kind: ContentKind, id_: str) -> RegistryContent | None:
        """What may be planned with: active or frozen."""
        content = self.get(kind, id_)
        return content if content is not None and content.status in USABLE_STATUSES else None

    def all_usable(self, kind: ContentKind) -> tuple[RegistryContent, ...]:
        """Everything of a kind that may be planned with, sorted by id."""
        return tuple(i.content for i in self.held[kind].values() if i.content.status in USABLE_STATUSES)

    def reference(self, kind: ContentKind, id_: str, pins: ContentPins) -> RegistryReference:
        """What the registry has for a name in an intent, held against its pin."""
        entry, pinned = self.entries.get((kind, id_)), pins.get((kind, id_))
        pin_text = (
            ""
            if pinned is None
            else CONFLICTING_PINS_TEXT
            if pinned == _CONFLICTING_PIN
            else "#".join(pinned)
        )
        if entry is None:
            return RegistryReference(kind=kind, id=id_, found="missing", pinned=pin_text)
        state: Literal["usable", "inactive", "drifted", "unpinned"]
        if entry.status not in USABLE_STATUSES:
            state = "inactive"
        elif pinned is None:
            state = "unpinned"
        else:
            state = "usable" if pinned == (entry.version, entry.digest[:12]) else "drifted"
        return RegistryReference(
            kind=kind, id=id_, found=state, version=entry.version, pinned=pin_text, digest=entry.digest
        )

    def citation(self, kind: ContentKind, id_: str, version: str, digest: str) -> RegistryReference:
        """What the registry has for content that evidence cites, with or without a version and the start of a digest."""
        entry, pin_text = self.entries.get((kind, id_)), version + (f"#{digest}" if digest else "")
        if entry is None:
            return RegistryReference(kind=kind, id=id_, found="missing", pinned=pin_text)
        state: Literal["usable", "inactive", "drifted"] = "usable"
        if entry.status not in USABLE_STATUSES:
            state = "inactive"
        elif version not in ("", entry.version) or not entry.digest.startswith(digest):
            state = "drifted"
        return RegistryReference(
            kind=kind, id=id_, found=state, version=entry.version, pinned=pin_text, digest=entry.digest
        )


def get_content_kind(content: RegistryContent) -> ContentKind:
    """Which of the four it is."""
    return _KIND_BY_TYPE[type(content)]


def build_registry_entry(item: RegistryItem) -> RegistryEntry:
    """One piece of content in a snapshot."""
    content = item.content
    return RegistryEntry(
        kind=get_content_kind(content),
        id=content.id,
        version=content.version,
        status=content.status,
        origin=item.origin,
        digest=digest_of(content),
    )


def format_pin(entry: RegistryEntry) -> str:
    """The name under which an intent fixes a piece of content: its version and the start of its digest."""
    return f"registry://{entry.kind}/{entry.id}@{entry.version}#{entry.digest[:12]}"


def parse_cited_content(ref: str) -> tuple[ContentKind, str, str, str] | None:
    """Kind, id, version and digest of the content that a reference names; None where it names none."""
    match = _CITED_REF_PATTERN.fullmatch(ref)
    return (
        (cast("ContentKind", match[1] or "rule"), match[2], match[3] or "", match[4] or "") if match else None
    )


def parse_pins(refs: Iterable[str]) -> ContentPins:
    """The pins among some references; an id with two that differ fits nothing."""
    pins_by_content: dict[tuple[ContentKind, str], tuple[str, str]] = {}
    for match in filter(None, map(_PIN_REF_PATTERN.fullmatch, refs)):
        kind, id_, version, digest = match.groups()
        key, pin = (cast("ContentKind", kind), id_), (version, digest)
        pins_by_content[key] = pin if pins_by_content.get(key, pin) == pin else _CONFLICTING_PIN
    return pins_by_content


def compare_registries(old: Registry, new: Registry) -> tuple[RegistryDifference, ...]:
    """What changed from one registry to another, sorted by kind and id, down to the fields."""
    keys = sorted({*old.entries, *new.entries})
    pairs = ((key, old.entries.get(key), new.entries.get(key)) for key in keys)
    return tuple(
        RegistryDifference(
            kind, id_, old_entry, new_entry, compare_content_fields(old.get(kind, id_), new.get(kind, id_))
        )
        for (kind, id_), old_entry, new_entry in pairs
        if old_entry is None or new_entry is None or old_entry.digest != new_entry.digest
    )


def compare_content_fields(
    old: RegistryContent | None, new: RegistryContent | None
) -> tuple[tuple[str, str, str], ...]:
    """Every field in which two pieces of content differ: its path, and both values."""
    if old is None or new is None:
        return ()
    old_values, new_values = _flatten_content(plain_value(old)), _flatten_content(plain_value(new))
    paths = sorted({*old_values, *new_values})
    return tuple(
        (path, old_values.get(path, ""), new_values.get(path, ""))
        for path in paths
        if old_values.get(path) != new_values.get(path)
    )


def _flatten_content(value: Any, path: str = "") -> dict[str, str]:
    """A plain value as its leaves, each under its path."""
    match value:
        case dict():
            parts = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
        case list():
            parts = [(f"{path}[{n}]", item) for n, item in enumerate(value)]
        case _:
            return {path: str(value)}
    return {
        name: text for part_path, item in parts for name, text in _flatten_content(item, part_path).items()
    }


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
        RegistryItem(msgspec.json.decode(r.content, type=CONTENT_TYPES[r.kind]), r.origin, r.file)
        for r in _decode_archived_items(data)
    )


def restore_archived_registry(data: bytes, digest: str) -> Registry | None:
    """The registry of this digest; None where the bytes are not of it."""
    try:
        items = decode_registry_archive(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    registry = Registry(items)
    return registry if registry.digest == digest else None


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
    for (kind, id_), (version, start) in sorted(pins_by_content.items()):
        reference = current.reference(kind, id_, pins_by_content)
        if reference.found == "usable":
            continue
        registry = next((r for r in archived if _has_pinned_version(r, kind, id_, version, start)), None)
        changes = compare_content_fields(registry.get(kind, id_), current.get(kind, id_)) if registry else ()
        current_version = f"{reference.version}#{reference.digest[:12]}" if reference.version else ""
        drifts.append(
            PinDrift(
                kind, id_, reference.found, reference.pinned, current_version, changes, registry is not None
            )
        )
    return tuple(drifts)


def _has_pinned_version(registry: Registry, kind: ContentKind, id_: str, version: str, start: str) -> bool:
    entry = registry.entries.get((kind, id_))
    return entry is not None and (entry.version, entry.digest[:12]) == (version, start)
