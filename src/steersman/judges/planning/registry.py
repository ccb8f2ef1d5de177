"""A registry as a value: what it holds, under which version and digest, and what an intent's names find in it.

**Invariant:** what a registry holds decides; where it was read from is only told.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast, get_args

import msgspec

from steersman.contracts.planning.content import KINDS, Content, Entry, Snapshot
from steersman.contracts.planning.decisions import Reference
from steersman.contracts.planning.words import Kind, Status
from steersman.kernel.canonical import digest_of, plain

Origin = Literal["built-in", "project"]
Path = tuple[str | int, ...]
Pins = Mapping[tuple[Kind, str], tuple[str, str]]  # (kind, id): (version, first twelve hex of the digest)

USABLE: tuple[Status, ...] = ("active", "frozen")
_KIND_OF: dict[type[Content], Kind] = {shape: kind for kind, shape in KINDS.items()}
TORN = "two pins that differ"
_PIN = re.compile(
    r"registry://(workflow|agent|command|rule)/([a-z][a-z0-9_]{2,79})@(\d+\.\d+\.\d+)#([0-9a-f]{12})",
    re.ASCII,
)
_CITED = re.compile(
    r"(?:rule://|registry://(workflow|agent|command|rule)/)([a-z][a-z0-9_]{2,79})(?:@([0-9.]+))?(?:#([0-9a-f]+))?",
    re.ASCII,
)
_TORN = ("", "")  # two pins that differ: whatever the registry has, it is not what both say


class Item(NamedTuple):
    """One piece of content, and where it stands: the file, and the lines of its fields where they are known."""

    content: Content
    origin: Origin
    file: str = ""
    lines: Mapping[Path, int] = MappingProxyType({})


class Difference(msgspec.Struct, frozen=True):
    """What one of two registries has otherwise: `fields` are paths with both values, for what both have."""

    kind: Kind
    id: str
    old: Entry | None
    new: Entry | None
    fields: tuple[tuple[str, str, str], ...] = ()


class Registry(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Everything that was read, in that order; of two with one id the later holds."""

    items: tuple[Item, ...]

    @cached_property
    def held(self) -> Mapping[Kind, Mapping[str, Item]]:
        """What holds, by kind and id, sorted by id."""
        found: dict[Kind, dict[str, Item]] = {kind: {} for kind in get_args(Kind)}
        for item in self.items:
            found[kind_of(item.content)][item.content.id] = item
        return {kind: dict(sorted(items.items())) for kind, items in found.items()}

    @cached_property
    def entries(self) -> Mapping[tuple[Kind, str], Entry]:
        """One entry for everything that holds, sorted by kind and id."""
        return {
            (kind, id_): entry_of(item)
            for kind, items in sorted(self.held.items())
            for id_, item in items.items()
        }

    @cached_property
    def digest(self) -> str:
        """The digest of the registry: over its entries."""
        return digest_of(list(self.entries.values()))

    def snapshot(self) -> Snapshot:
        """The registry as a document, without the content itself."""
        return Snapshot(entries=tuple(self.entries.values()), digest=self.digest)

    def get(self, kind: Kind, id_: str) -> Content | None:
        """What holds under this id, whatever its status."""
        item = self.held[kind].get(id_)
        return item.content if item else None

    def usable(self, kind: Kind, id_: str) -> Content | None:
        """What may be planned with: active or frozen."""
        content = self.get(kind, id_)
        return content if content is not None and content.status in USABLE else None

    def all_usable(self, kind: Kind) -> tuple[Content, ...]:
        """Everything of a kind that may be planned with, sorted by id."""
        return tuple(i.content for i in self.held[kind].values() if i.content.status in USABLE)

    def reference(self, kind: Kind, id_: str, pins: Pins) -> Reference:
        """What the registry has for a name in an intent, held against its pin."""
        entry, pinned = self.entries.get((kind, id_)), pins.get((kind, id_))
        shown = "" if pinned is None else TORN if pinned == _TORN else "#".join(pinned)
        if entry is None:
            return Reference(kind=kind, id=id_, found="missing", pinned=shown)
        found: Literal["usable", "inactive", "drifted", "unpinned"]
        if entry.status not in USABLE:
            found = "inactive"
        elif pinned is None:
            found = "unpinned"
        else:
            found = "usable" if pinned == (entry.version, entry.digest[:12]) else "drifted"
        return Reference(
            kind=kind, id=id_, found=found, version=entry.version, pinned=shown, digest=entry.digest
        )

    def citation(self, kind: Kind, id_: str, version: str, digest: str) -> Reference:
        """What the registry has for content that evidence cites, with or without a version and the start of a digest."""
        entry, shown = self.entries.get((kind, id_)), version + (f"#{digest}" if digest else "")
        if entry is None:
            return Reference(kind=kind, id=id_, found="missing", pinned=shown)
        found: Literal["usable", "inactive", "drifted"] = "usable"
        if entry.status not in USABLE:
            found = "inactive"
        elif version not in ("", entry.version) or not entry.digest.startswith(digest):
            found = "drifted"
        return Reference(
            kind=kind, id=id_, found=found, version=entry.version, pinned=shown, digest=entry.digest
        )


def kind_of(content: Content) -> Kind:
    """Which of the four it is."""
    return _KIND_OF[type(content)]


def entry_of(item: Item) -> Entry:
    """One piece of content in a snapshot."""
    content = item.content
    return Entry(
        kind=kind_of(content),
        id=content.id,
        version=content.version,
        status=content.status,
        origin=item.origin,
        digest=digest_of(content),
    )


def pin(entry: Entry) -> str:
    """The name under which an intent fixes a piece of content: its version and the start of its digest."""
    return f"registry://{entry.kind}/{entry.id}@{entry.version}#{entry.digest[:12]}"


def cited_content(ref: str) -> tuple[Kind, str, str, str] | None:
    """Kind, id, version and digest of the content that a reference names; None where it names none."""
    match = _CITED.fullmatch(ref)
    return (cast("Kind", match[1] or "rule"), match[2], match[3] or "", match[4] or "") if match else None


def pins(refs: Iterable[str]) -> Pins:
    """The pins among some references; an id with two that differ fits nothing."""
    found: dict[tuple[Kind, str], tuple[str, str]] = {}
    for match in filter(None, map(_PIN.fullmatch, refs)):
        kind, id_, version, digest = match.groups()
        key, said = (cast("Kind", kind), id_), (version, digest)
        found[key] = said if found.get(key, said) == said else _TORN
    return found


def differences(old: Registry, new: Registry) -> tuple[Difference, ...]:
    """What changed from one registry to another, sorted by kind and id, down to the fields."""
    keys = sorted({*old.entries, *new.entries})
    pairs = ((key, old.entries.get(key), new.entries.get(key)) for key in keys)
    return tuple(
        Difference(kind, id_, was, now, fields(old.get(kind, id_), new.get(kind, id_)))
        for (kind, id_), was, now in pairs
        if was is None or now is None or was.digest != now.digest
    )


def fields(old: Content | None, new: Content | None) -> tuple[tuple[str, str, str], ...]:
    """Every field in which two pieces of content differ: its path, and both values."""
    if old is None or new is None:
        return ()
    was, now = _flat(plain(old)), _flat(plain(new))
    paths = sorted({*was, *now})
    return tuple((at, was.get(at, ""), now.get(at, "")) for at in paths if was.get(at) != now.get(at))


def _flat(value: Any, path: str = "") -> dict[str, str]:
    """A plain value as its leaves, each under its path."""
    match value:
        case dict():
            parts = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
        case list():
            parts = [(f"{path}[{n}]", item) for n, item in enumerate(value)]
        case _:
            return {path: str(value)}
    return {name: text for at, item in parts for name, text in _flat(item, at).items()}
