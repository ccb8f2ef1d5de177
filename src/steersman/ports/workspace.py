"""The port to the user's repository: private working trees, changes, delivery."""

from typing import Protocol

from steersman.contracts.workspace import Base, Change, Checkout, Delivery


class Workspace(Protocol):
    """One repository. Every method may be repeated with the same arguments and then does nothing new."""

    def problem(self) -> str | None:
        """Why no run can start here (no git, no repository, no commit), with the next step; or None."""
        ...

    def base(self, ref: str | None) -> Base:
        """Reads the commit a run starts from; raises WorkspaceError when it is not there."""
        ...

    def checkout(self, run: str, commit: str, effect: str, attempt: int) -> Checkout:
        """A working tree of this run whose tracked and untracked files are exactly `commit`.

        A kept one is handed out again only when its tree still is `commit`; otherwise a new one is made and the
        old one removed: an attempt never starts on half-edited files.
        """
        ...

    def capture(self, run: str, path: str, base: str, label: str) -> Change:
        """Records what is in `path` now as a commit pinned under refs/steersman/<run>/ (untracked files included)."""
        ...

    def deliver(
        self, run: str, commit: str, base: str, form: str, target: str | None, message: str
    ) -> Delivery:
        """Hands a recorded tree over: `branch` makes steersman/<run>, `merge` moves `target` (fast-forward or a
        merge commit; refuses with WorkspaceError when it conflicts)."""
        ...

    def remove(self, run: str) -> None:
        """Removes the working trees of a run; what is pinned stays."""
        ...
