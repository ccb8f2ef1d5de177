"""The port to where anchors are kept: outside the store, signed, so that a cut or rewritten tape is noticed."""

from collections.abc import Iterable
from typing import Protocol

import msgspec


class Anchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed statement: this run had this many entries, and the last of them had this hash."""

    run: str
    seq: int
    hash: str
    at: int
    key: str = ""  # the public key, base64
    signature: str = ""  # over the canonical bytes of the four first fields, base64


class RunAnchors(msgspec.Struct, frozen=True):
    """What a place says about one run."""

    genuine: tuple[Anchor, ...] = ()  # signed by this project's key, oldest first
    doubts: tuple[str, ...] = ()  # anchors of this run without a signature of the key, in words
    blanks: int = 0  # lines that cannot be read at all


class Anchors(Protocol):
    """One place for anchors."""

    def store_anchor(self, run: str, seq: int, hash_: str, at: int) -> Anchor:
        """Signs and keeps a statement, durable when this returns; raises UserError with the next step."""
        ...

    def list_anchors(self, run: str) -> RunAnchors:
        """What is kept here of a run; a place that only takes has nothing."""
        ...

    def runs(self) -> Iterable[str]:
        """The runs that something is kept of here, genuine or not."""
        ...
