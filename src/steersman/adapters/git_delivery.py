"""Hands a recorded tree over to the user's branches.

**Invariant:** a branch moves only forward, or from one commit of ours to another, and only if it still is where we
saw it; a checkout with uncommitted changes is never touched; nothing is pushed.
"""

import os
from pathlib import Path

from steersman.adapters.git_cli import EMAIL, Git
from steersman.contracts.workspace import Delivery
from steersman.errors import WorkspaceError


class Courier:
    """Delivers for one repository; the private trees below `trees` do not count as the user's checkouts."""

    def __init__(self, git: Git, trees: Path) -> None:
        self._git = git
        self._trees = trees

    def branch(self, run: str, made: str) -> Delivery:
        """Makes `steersman/<run>` point to `made`, or moves it there from an earlier commit of ours."""
        ref = f"refs/heads/steersman/{run}"
        tip = self._git.resolve(ref)
        if tip is None or not self._git.contains(tip, made):
            self._check_ours(ref, tip)
            self._move(ref, made, tip)
        return self._delivery("branch", ref, made)

    def merge(self, run: str, made: str, target: str, message: str) -> Delivery:
        """Moves `target` forward to `made`, or to a merge of both."""
        ref = f"refs/heads/{target}"
        tip = self._git.resolve(ref) if self._git.call("check-ref-format", ref).code == 0 else None
        if tip is None:
            raise WorkspaceError(
                f"there is no branch {target!r} to merge into; create it or name another one"
            )
        if self._git.contains(tip, made):
            return self._delivery("merge", ref, self._delivered_as(tip, made))
        new = made if self._git.contains(made, tip) else self._merged(run, tip, made, target, message)
        place = self._checked_out_at(ref)
        if place is None:
            self._move(ref, new, tip)
        else:
            self._move_with_checkout(place, target, tip, new)
        return self._delivery("merge", ref, new)

    def _delivery(self, form: str, ref: str, commit: str) -> Delivery:
        return Delivery(form, ref, commit, self._git.tree_of(commit))

    def _delivered_as(self, tip: str, made: str) -> str:
        """The commit that brought `made` into the branch: itself, or the merge that has it as its other parent."""
        merges = self._git.line("rev-list", "--first-parent", "--merges", "--parents", tip, f"^{made}")
        for commit, _, *others in (line.split() for line in merges.splitlines()):
            if made in others:
                return commit
        return made

    def _merged(self, run: str, tip: str, made: str, target: str, message: str) -> str:
        answer = self._git.call("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", tip, made)
        tree, *names = [os.fsdecode(part) for part in answer.out.split(b"\0")[:-1]] or [""]
        if answer.code == 1:
            files = ", ".join(sorted(names))
            raise WorkspaceError(
                f"{target} conflicts with run {run} in {files}; merge the branch steersman/{run} by hand, "
                f"or start a new run from {target}"
            )
        if answer.code != 0:
            raise WorkspaceError(
                f"git cannot merge run {run} into {target}: {answer.err.strip()[:500]}; "
                "in a shallow clone run `git fetch --unshallow` first"
            )
        return self._git.commit(tree, (tip, made), f"Merge steersman/{run} into {target}\n\n{message}")

    def _check_ours(self, ref: str, tip: str | None) -> None:
        name = ref.removeprefix("refs/heads/")
        if tip is not None and f"<{EMAIL}>" not in self._git.committer(tip)[0]:
            raise WorkspaceError(
                f"the branch {name} has commits that are not of this run; rename it with "
                f"`git branch -m {name} <new name>` and deliver again"
            )
        if (place := self._checked_out_at(ref)) is not None:
            raise WorkspaceError(
                f"the branch {name} is checked out in {place}; switch to another one and deliver again"
            )

    def _move(self, ref: str, new: str, old: str | None) -> None:
        """Moves a reference that still is at `old`; an empty `old` means that it may not exist."""
        answer = self._git.call("update-ref", "-m", "steersman: deliver", ref, new, old or "")
        if answer.code != 0:
            raise WorkspaceError(
                f"{ref} could not be moved: {answer.err.strip()[:500]}; look at it and deliver again"
            )

    def _checked_out_at(self, ref: str) -> Path | None:
        """Where the user has this branch checked out."""
        listed = os.fsdecode(self._git.read("worktree", "list", "--porcelain", "-z"))
        for record in listed.split("\0\0"):
            fields = dict(field.partition(" ")[::2] for field in record.split("\0"))
            place = Path(fields.get("worktree", ""))
            if fields.get("branch") == ref and place.is_dir() and not place.is_relative_to(self._trees):
                return place
        return None

    def _move_with_checkout(self, place: Path, target: str, old: str, new: str) -> None:
        if self._git.read("status", "--porcelain", "-z", "--untracked-files=no", cwd=place):
            raise WorkspaceError(
                f"{target} is checked out in {place} with uncommitted changes; "
                "commit or stash them there, or switch to another branch, and deliver again"
            )
        if filtered := self._filtered(place, old, new):
            raise WorkspaceError(
                f"{filtered} passes a filter of {place} that steersman does not run; "
                "switch to another branch there and deliver again"
            )
        flags = ("--ff-only", "--no-autostash", "--no-verify-signatures", "--no-stat", "--quiet")
        answer = self._git.call("merge", *flags, new, cwd=place)
        if answer.code != 0:
            raise WorkspaceError(
                f"{target} in {place} could not be moved forward: {answer.err.strip()[:500]}; "
                "put that right there and deliver again"
            )

    def _filtered(self, place: Path, old: str, new: str) -> str | None:
        """A changed file whose content the user's git would convert (large file storage, encryption)."""
        names = self._git.read("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        listed = self._git.read("check-attr", "-z", "--stdin", "filter", cwd=place, feed=names).split(b"\0")
        for name, value in zip(listed[::3], listed[2::3], strict=False):
            if value not in {b"unspecified", b"unset"}:
                return os.fsdecode(name)
        return None
