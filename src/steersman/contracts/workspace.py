"""What steersman knows of a working tree."""

import msgspec


class RunBase(msgspec.Struct, frozen=True):
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
    changed: bool = False  # a recorded change, not a commit of the person's: an agent wrote it


class TouchedPath(msgspec.Struct, frozen=True):
    """One path that differs from the base, by the digests of its content; nothing where it is absent."""

    path: str  # outside text
    old: str
    new: str
    kind: str = "file"  # what it is now, or was: file | link | other
    empty: bool = False  # there is nothing in it any more


class FileText(msgspec.Struct, frozen=True):
    """What is in one plain file of a commit."""

    path: str  # outside text
    content: str  # outside text; what is no UTF-8 is replaced
    whole: bool = True  # False: it is too long, and nothing of it is here


class Change(msgspec.Struct, frozen=True):
    """What a working tree holds now, pinned so that git keeps it."""

    commit: str
    tree: str
    files: tuple[str, ...]  # paths that differ from the base, sorted
    patch: str  # outside text: `git diff` from the base, bounded
    added: int
    removed: int
    touched: tuple[TouchedPath, ...] = ()  # the same paths as `files`, in the same order
    whole: bool = True  # whether the patch is all of it; the tree always is


class RebasedChange(msgspec.Struct, frozen=True):
    """Where the branch is that a change goes to, and the change on top of it where that has moved."""

    moved: bool
    base: str  # the commit that the branch is at
    base_tree: str
    change: Change | None = None  # nothing where it did not move or where both changed the same
    conflicts: tuple[str, ...] = ()  # outside text: the paths that both changed, sorted
    # Outside text: commits that `base` has and the branch no longer, the newest first.
    dropped: tuple[str, ...] = ()


class Delivery(msgspec.Struct, frozen=True):
    """What was delivered or reverted."""

    form: str  # branch | merge | draft-pr | revert
    ref: str
    commit: str
    tree: str
    url: str = ""  # outside text: where a pull request is


class RecordedRef(msgspec.Struct, frozen=True):
    """A ref that a run has left in the repository."""

    commit: str  # what it names, whatever kind of object that is
    tree: str = ""  # nothing where it names no commit
    run: str = ""  # the run that the commit says it is of
    entry: int = 0  # the entry of the tape that asked for it, 0 if none is given
