"""The tape: one entry per step, canonical bytes, a chain of hashes.

Kinds: an entry that takes a row is a `transition`, whatever caused it (`cause` says); the other kinds are for the same
things happening without a row.
**Invariant:** an entry holds enums, numbers, ids, digests and people's own bounded reasons; never outside text.
"""

from hashlib import sha256
from typing import Any, Literal

import msgspec

from steersman.kernel.canonical import canonical, encode
from steersman.kernel.snapshot import Item

FORMAT = 1
GENESIS = "0" * 64

Kind = Literal[
    "created", "transition", "refused", "effect_started", "part_finished", "effect_finished", "gate_opened",
    "gate_answered", "child_started", "child_ended", "timer_set", "timer_fired", "claimed", "override", "migrated",
    "note", "sealed", "pruned",
]  # fmt: skip


class Retry(msgspec.Struct, frozen=True):
    """Why there is a further attempt."""

    retry_count: int
    retry_reason: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One record; absent fields have their default."""

    run: str
    seq: int
    at: int
    kind: Kind
    prev: str
    actor: str = "steersman"
    cause: str = ""  # id of the item, inbox row or child that brought it about
    source: str | None = msgspec.field(default=None, name="from")
    event: str = ""
    event_version: int = 1
    data: Any = None
    guards: dict[str, bool] = {}
    to: str = ""
    stay: bool = False
    ops: tuple[Any, ...] = ()
    counts: tuple[Any, ...] = ()
    planned: tuple[Item, ...] = ()
    closed: tuple[str, ...] = ()  # items that are over with this entry
    held: tuple[Item, ...] = ()  # items replaced by their next attempt, or with a part more
    spent: dict[str, int] = {}  # budget figures, added
    retry: Retry | None = None
    took: int | None = None  # microseconds, monotonic
    late: bool = False  # arrived after its state was left: journaled, not folded
    why: str = ""  # of a refusal, a person, a migration
    legal: tuple[str, ...] = ()
    epoch: int | None = None
    definition: str = ""
    machine: str = ""
    context: dict[str, Any] | None = None  # of the creation and a migration
    context_version: int | None = None
    root: str = ""
    parent: str = ""
    title: str = ""
    state_hash: str = ""
    ended: str = ""
    format: int = FORMAT


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """An entry as it is stored: its bytes and their hash."""

    entry: Entry
    body: bytes
    hash: str


_decoder = msgspec.json.Decoder(Entry)


def sealed(entry: Entry) -> Sealed:
    """The entry with its canonical bytes and hash."""
    body = encode(entry)
    if not body.isascii():
        body = canonical(entry)
    return Sealed(entry, body, sha256(body).hexdigest())


def read(body: bytes) -> Entry:
    """The entry in these bytes; raises msgspec.DecodeError or ValidationError when they are none."""
    return _decoder.decode(body)
