"""The tape: one entry for each step, in canonical bytes, linked by a chain of hashes.

An entry that takes a row has the kind `transition`, and `cause` says what caused it. The other kinds are for things that
happen without a row.
**Invariant:** an entry holds enums, numbers, ids, digests and people's own bounded reasons, and no text from outside.
"""

from hashlib import sha256
from typing import Any, Literal

import msgspec

from steersman.kernel.canonical import canonical_bytes, encode_sorted_json
from steersman.kernel.snapshot import JobItem

TAPE_FORMAT = 1
GENESIS_HASH = "0" * 64

EntryKind = Literal[
    "created", "transition", "refused", "effect_started", "part_finished", "effect_finished", "gate_opened",
    "gate_answered", "child_started", "child_ended", "timer_set", "timer_fired", "claimed", "override", "migrated",
    "note", "sealed", "pruned",
]  # fmt: skip


class EntryRetry(msgspec.Struct, frozen=True):
    """Why there is a further attempt."""

    retry_count: int
    retry_reason: str


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One record; absent fields have their default."""

    run: str
    seq: int
    at: int
    kind: EntryKind
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
    planned: tuple[JobItem, ...] = ()
    closed: tuple[str, ...] = ()  # items that are over with this entry
    held: tuple[JobItem, ...] = ()  # items replaced by their next attempt, or with a part more
    spent: dict[str, int] = {}  # budget figures, added
    retry: EntryRetry | None = None
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
    format: int = TAPE_FORMAT


class SealedEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry as it is stored: its bytes and their hash."""

    entry: Entry
    body: bytes
    hash: str


_entry_decoder = msgspec.json.Decoder(Entry)


def seal_entry(entry: Entry) -> SealedEntry:
    """The entry with its canonical bytes and hash."""
    body = encode_sorted_json(entry)
    if not body.isascii():
        body = canonical_bytes(entry)
    return SealedEntry(entry, body, sha256(body).hexdigest())


def read_entry(body: bytes) -> Entry:
    """The entry in these bytes; raises msgspec.DecodeError or ValidationError when they are none."""
    return _entry_decoder.decode(body)
