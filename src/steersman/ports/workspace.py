"""The port to the user's repository: private working trees, changes, delivery."""

from collections.abc import Sequence
from typing import Protocol

from steersman.contracts.workspace import (
    Change,
    Checkout,
    Delivery,
    FileText,
    RebasedChange,
    RecordedRef,
    RunBase,
)


class Workspace(Protocol):
    """One repository. Every method may be repeated with the same arguments and then does nothing new."""

    def find_start_problem(self) -> str | None:
        """Why no run can start here (no git, no repository, no commit), with the next step; or None."""
        ...

    def base(self, ref: str | None) -> RunBase:
        """Reads the commit a run starts from; raises WorkspaceError when it is not there."""
        ...

    def base_commit(self, ref: str | None) -> str:
        """The commit of `base` alone, without a look at the checkout's files."""
        ...

    def checkout(self, run: str, commit: str, effect: str, *, untouched: bool = False) -> Checkout:
        """A working tree of this run whose tracked and untracked files are exactly `commit`.

        A kept one is handed out again only when its tree still is `commit`; otherwise a new one is made and the
        old one removed: an attempt never starts on half-edited files. What a repository ignores may be left from
        before, unless the tree is to be `untouched`: one that no other effect has had.
        """
        ...

    def capture(self, run: str, path: str, base: str, label: str) -> Change:
        """Records what is in `path` now as a commit pinned under refs/steersman/<run>/ (untracked files included).

        UnrecordableError, and nothing recorded, where the tree holds what a commit cannot hold exactly.
        """
        ...

    def change(self, commit: str, base: str) -> Change:
        """What a recorded commit changes in another one; nothing is recorded."""
        ...

    def compose(self, run: str, commit: str, other: str, paths: Sequence[str], label: str) -> RunBase:
        """`commit` with these paths as they are in `other`, absent ones removed; pinned as `capture` pins.

        Paths are those of `change`. Without a difference the tree is that of `commit`.
        """
        ...

    def rebase_change(self, run: str, commit: str, base: str, target: str, label: str) -> RebasedChange:
        """A recorded change of `base` on top of what the branch `target` is now, pinned as `capture` pins.

        What `commit` changed in `base` is changed there, whatever way the branch has gone since; without files where
        the branch has all of it. Not moved is a branch that is at `base`, where `commit` was made on that. Where both changed the same the paths are named and nothing is pinned; the branch
        itself is only looked at, and a WorkspaceError where it is gone.
        """
        ...

    def contains_deliveries(self, tip: str, commits: Sequence[str]) -> bool:
        """Whether `tip` has what these deliveries of a run, the newest first, have brought together.

        All of it is there, in whatever commits: yes. Nothing of it is left: no. Where others
        have gone on from it, the history says: every one of them is in it, and no revert of any. Only looked at.
        """
        ...

    def compose_delivery_base(self, run: str, commits: Sequence[str], label: str) -> RunBase:
        """What these deliveries of a run, the newest first, were made on: the newest without any of them, pinned as
        `capture` pins. WorkspaceError where others have changed the same in between."""
        ...

    def write_files(self, path: str, commit: str, names: Sequence[str], *, links: bool) -> None:
        """Makes these names in a working tree what they are in `commit`: written, or removed where it has none.

        A symbolic link of the commit is made with `links` and removed without.
        """
        ...

    def read_contents(self, commit: str, names: Sequence[str]) -> dict[str, bytes]:
        """Those of these names that are plain files of a commit, with what is in them; a link is none."""
        ...

    def paths(self, commit: str) -> tuple[str, ...]:
        """The plain files of a commit, sorted; bytes of a name that are no text are escaped as in `Touched`."""
        ...

    def read_texts(self, commit: str, names: Sequence[str], each: int, total: int) -> tuple[FileText, ...]:
        """Those of these names that are plain files of a commit, with what is in them.

        One that is longer than `each` bytes, or does not fit into what is left of `total`, comes without its content.
        """
        ...

    def project_path(self, word: str) -> str:
        """The path from the top of the repository that a word of `steersman.toml` means; "" where it leads out."""
        ...

    def keep_program(self, commit: str, path: str, *, alone: bool) -> str:
        """Copies a file of `commit` to where no agent can write, with its folder unless `alone`; the copy's folder.
        A path that ends with a slash is a folder.

        A script (`alone`) that the commit does not have is copied from the person's checkout; "" for another file.
        WorkspaceError where the path leads through a link, or the folder is too large. The same content has one copy.
        """
        ...

    def checked_out(self, path: str) -> bytes | None:
        """A plain file of the person's checkout, read without following a link; None where it is none."""
        ...

    def links(self, commit: str) -> tuple[str, ...]:
        """The symbolic links of a commit, sorted."""
        ...

    def link_targets(self, commit: str) -> dict[str, str]:
        """The symbolic links of a commit with what each leads to; names and targets escaped as in `Touched`."""
        ...

    def find_delivery_problem(self, form: str, target: str | None) -> str | None:
        """What is missing here for handing a change over in this form, with the next step; or None.

        Asked before a run begins, without contacting the forge: the delivery itself may still be refused.
        """
        ...

    def deliver(
        self,
        run: str,
        commit: str,
        base: str,
        form: str,
        target: str | None,
        message: str,
        body: str = "",
        *,
        at: int = 0,
    ) -> Delivery:
        """Delivers a recorded tree: `branch` makes steersman/<run>, `merge` moves `target` forward to it, `draft-pr`
        sends that branch to the remote and opens a draft pull request into `target`, with `body`; what fails on the way
        leaves the branch.

        What is delivered is exactly the recorded tree on top of `base`: where `target` is no longer at `base`, unless
        the change is in it already, a merge is refused with BranchMovedError. The commit carries the time `at`
        (milliseconds; without one, that of `base`), so that the same arguments give the same commit. One delivery at a
        time is made into a repository. Branch, index and files of the person move together or not at all."""
        ...

    def revert(
        self, run: str, commit: str, target: str, message: str, *, also: Sequence[str] = (), at: int = 0
    ) -> Delivery:
        """Undoes a delivered commit on the branch `target` by a commit of its own, after whatever came later.

        `also` are earlier deliveries of the run, the newest first: those that the branch has are undone by the same
        commit.
        WorkspaceError, and nothing changed, where it is not there, is undone already or conflicts.
        """
        ...

    def list_interrupted_runs(self) -> tuple[str, ...]:
        """The runs whose delivery was cut short (a kill, a full disk) and is neither finished nor undone yet."""
        ...

    def settle_interrupted_deliveries(self) -> tuple[str, ...]:
        """Finishes each of these where the branch has moved, undoes it where it has not; says what was done.

        `deliver` and `revert` do this first. Files that were changed since are left as they are.
        """
        ...

    def recorded_refs(self, run: str = "") -> dict[str, RecordedRef]:
        """The refs below refs/steersman/<run>/ and the branch steersman/<run>, each with what it names and the entry that
        asked for it; without a run, of all runs. The entry of a branch is that of the newest commit that this run
        delivered: people may have gone on from it."""
        ...

    def remove(self, run: str) -> None:
        """Removes the working trees of a run; what is pinned stays."""
        ...
