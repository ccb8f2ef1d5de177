"""Hands a recorded tree over to the person's branches.

**Invariant:** a branch moves only forward, or from one commit of ours to another, and only if it still is where we
saw it; a checkout with uncommitted changes is never touched; nothing is pushed.
"""

import tempfile
from pathlib import Path

from steersman.adapters.git_checkout import Checkouts
from steersman.adapters.git_cli import EMAIL
from steersman.adapters.git_repository import Git
from steersman.adapters.git_survey import shown
from steersman.contracts.workspace import Delivery
from steersman.errors import WorkspaceError

MOVED = "steersman: deliver"


class Courier:
    """Delivers for one repository."""

    def __init__(self, git: Git, checkouts: Checkouts) -> None:
        self._git = git
        self._checkouts = checkouts

    def branch(self, run: str, made: str) -> Delivery:
        """Makes `steersman/<run>` point to `made`, or moves it there from an earlier commit of ours."""
        ref = f"refs/heads/steersman/{run}"
        tip = self._git.resolve(ref)
        if tip is None or not self._git.contains(tip, made):
            self._check_ours(ref, tip)
            self._move(ref, made, tip)
        return self._delivery("branch", ref, made)

    def merge(self, run: str, made: str, target: str, message: str, only_at: str | None = None) -> Delivery:
        """Moves `target` forward to `made`, or to a merge of both; from nowhere else than `only_at`."""
        ref = f"refs/heads/{target}"
        tip = self.tip(target)
        if self._git.contains(tip, made):
            return self._delivery("merge", ref, self.brought(tip, made))
        if only_at not in (None, tip):
            raise WorkspaceError(
                f"{target} has moved from {only_at} to {tip}: run {run} was verified on what it was; "
                "verify the change on the new base and deliver that"
            )
        new = made if self._git.contains(made, tip) else self._merged(run, tip, made, target, message)
        self.forward(target, tip, new)
        return self._delivery("merge", ref, new)

    def tip(self, target: str) -> str:
        """Where a branch is that has to be there."""
        ref = f"refs/heads/{target}"
        tip = self._git.resolve(ref) if self._git.call("check-ref-format", ref).code == 0 else None
        if tip is None:
            raise WorkspaceError(f"there is no branch {target!r} here; create it or name another one")
        return tip

    def brought(self, tip: str, made: str) -> str:
        """The commit that brought `made` into the branch: itself, or the merge that has it as its other parent."""
        merges = self._git.line("rev-list", "--first-parent", "--merges", "--parents", tip, f"^{made}")
        for commit, _, *others in reversed([line.split() for line in merges.splitlines()]):
            if any(self._git.contains(other, made) for other in others):
                return commit
        return made

    def forward(self, target: str, old: str, new: str) -> None:
        """Moves a branch from `old` to `new`, with the checkout that the person has of it, if there is one."""
        ref = f"refs/heads/{target}"
        place = self._checkouts.of(ref)
        if place is None:
            self._move(ref, new, old)
        else:
            self._checkouts.forward(place, ref, old, new)

    def merged_trees(self, base: str, ours: str, theirs: str) -> tuple[str | None, list[str], str]:
        """The same for three commits of any history: their trees are merged, in a history made for that alone."""
        start = self._git.commit(self._git.tree_of(base), (), "base")
        sides = [self._git.commit(self._git.tree_of(side), (start,), "side") for side in (ours, theirs)]
        return self.merged_tree(*sides)

    def merged_tree(self, ours: str, theirs: str) -> tuple[str | None, list[str], str]:
        """The tree of a merge, or None with the files that conflict; or with what git said."""
        with tempfile.TemporaryDirectory(dir=self._git.folder, prefix=".merge-") as name:
            folder = Path(name)
            env = {"GIT_WORK_TREE": name, "GIT_INDEX_FILE": f"{name}/.index"}
            self._lay_out_attributes(ours, folder, env)
            flags = ("--write-tree", "-z", "--name-only", "--no-messages")
            answer = self._git.call("merge-tree", *flags, ours, theirs, cwd=folder, env=env)
        tree, *names = [shown(part) for part in answer.out.split(b"\0")[:-1]] or [""]
        if answer.code == 0:
            return tree, [], ""
        return None, sorted(names) if answer.code == 1 else [], answer.err.strip()[:500]

    def _lay_out_attributes(self, commit: str, folder: Path, env: dict[str, str]) -> None:
        """git finds in files alone which merge a path asks for: a union, none at all, or a program that is not run."""
        self._git.read("read-tree", commit, cwd=folder, env=env)
        names = self._git.read("ls-files", "-z", cwd=folder, env=env).split(b"\0")
        wanted = [name for name in names if name.rpartition(b"/")[2] == b".gitattributes"]
        feed = b"".join(name + b"\0" for name in wanted)
        self._git.read("checkout-index", "--quiet", "-z", "--stdin", cwd=folder, env=env, feed=feed)

    def _delivery(self, form: str, ref: str, commit: str) -> Delivery:
        return Delivery(form, ref, commit, self._git.tree_of(commit))

    def _merged(self, run: str, tip: str, made: str, target: str, message: str) -> str:
        tree, names, said = self.merged_tree(tip, made)
        if names:
            raise WorkspaceError(
                f"{target} conflicts with run {run} in {', '.join(names)}; merge the branch steersman/{run} by hand, "
                f"or start a new run from {target}"
            )
        if tree is None:
            raise WorkspaceError(
                f"git cannot merge run {run} into {target}: {said}; "
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
        if (place := self._checkouts.of(ref)) is not None:
            raise WorkspaceError(
                f"the branch {name} is checked out in {place}; switch to another one and deliver again"
            )

    def _move(self, ref: str, new: str, old: str | None) -> None:
        """Moves a reference that still is at `old`; an empty `old` means that it may not exist."""
        answer = self._git.call("update-ref", "-m", MOVED, ref, new, old or "")
        if answer.code != 0:
            raise WorkspaceError(
                f"{ref} could not be moved: {answer.err.strip()[:500]}; look at it and deliver again"
            )
