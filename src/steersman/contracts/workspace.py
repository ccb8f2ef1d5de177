"""What steersman knows of a working tree."""

import msgspec


class Base(msgspec.Struct, frozen=True):
    """Where a run starts: a commit of the user's repository."""

    commit: str
    tree: str
    branch: str | None = None  # the branch it was read from, None when detached
    dirty: bool = False  # the user's own checkout has uncommitted changes (they are not part of the run)


class Checkout(msgspec.Struct, frozen=True):
    """A private working tree at a recorded commit."""

    path: str
    commit: str
    tree: str
    fresh: bool  # made now (setup has to run), not kept from before


class Change(msgspec.Struct, frozen=True):
    """What a working tree holds now, pinned so that git keeps it."""

    commit: str
    tree: str
    files: tuple[str, ...]  # paths that differ from the base, sorted
    patch: str  # outside text: `git diff` from the base
    added: int
    removed: int


class Delivery(msgspec.Struct, frozen=True):
    """What was handed over."""

    form: str
    ref: str
    commit: str
    tree: str
