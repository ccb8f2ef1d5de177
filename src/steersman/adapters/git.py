"""The user's repository through the git command line.

Each run works in trees of its own outside the repository; what they hold is recorded as commits whose hashes depend
only on content and parent, pinned under refs/steersman/<run>/.
**Invariant:** the user's branches and checkout change in `deliver` and `revert` and nowhere else; nothing of theirs
is executed.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from steersman.adapters.git_branch_move import read_markers
from steersman.adapters.git_change import change_of
from steersman.adapters.git_checkout import Checkouts
from steersman.adapters.git_cli import checked_name, run
from steersman.adapters.git_compose import compose_tree
from steersman.adapters.git_delivery import Courier
from steersman.adapters.git_files import contents, lay, link_targets, links, read_checked_out
from steersman.adapters.git_forge import Forge, letter
from steersman.adapters.git_gc import store_commit
from steersman.adapters.git_refs import recorded_refs
from steersman.adapters.git_repository import Git
from steersman.adapters.git_revert import held, revert, standing_on
from steersman.adapters.git_survey import shown
from steersman.adapters.git_texts import Texts
from steersman.adapters.git_trees import Trees
from steersman.adapters.include import checked_patterns
from steersman.adapters.kept_programs import PROGRAMS, KeptPrograms
from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Base, Change, Checkout, Delivery, Rebased, RecordedRef, Text
from steersman.errors import ConflictError, WorkspaceError

_OLDEST = (2, 38)  # the first git with `merge-tree --write-tree`
_MOST_DROPPED = 50
_INTO_A_BRANCH = ("merge", "draft-pr")
_RECORDED = "steersman: recorded tree"  # the same for every run: same tree and parent, same commit


class GitWorkspace:
    """The `Workspace` port for one repository; `setup` is what a fresh tree needs and is run by others, on tape."""

    def __init__(
        self, repo: Path, state_dir: Path, *, include: tuple[str, ...] = (), setup: tuple[Argv, ...] = ()
    ) -> None:
        self.setup = setup
        self._git = Git(repo, state_dir / "hulls")
        self._texts = Texts(self._git)
        self._programs = KeptPrograms(self._git, state_dir / PROGRAMS)
        self._trees = Trees(self._git, state_dir / "worktrees", checked_patterns(include))
        self._checkouts = Checkouts(self._git, self._trees.root)
        self._courier = Courier(self._git, self._checkouts)
        self._forge = Forge(self._git, self._courier)

    def problem(self) -> str | None:
        """Why no run can start here, with the next step; or None."""
        try:
            return self._problem()
        except WorkspaceError as error:
            return str(error)

    def base(self, ref: str | None) -> Base:
        """Reads the commit a run starts from; raises WorkspaceError when it is not there."""
        name, commit = ref or "HEAD", self.base_commit(ref)
        full = self._git.line("rev-parse", "--symbolic-full-name", "--verify", "--end-of-options", name)
        branch = full.removeprefix("refs/heads/") if full.startswith("refs/heads/") else None
        return Base(commit, self._git.tree_of(commit), branch, self._checkouts.dirty())

    def base_commit(self, ref: str | None) -> str:
        """The commit of `base` alone, without a look at the checkout's files."""
        name = ref or "HEAD"
        commit = self._git.resolve(f"{name}^{{commit}}")
        if commit is None:
            reason = (
                self.problem() or f"there is no commit called {name!r}; choose one that `git branch -a` lists"
            )
            raise WorkspaceError(reason)
        return commit

    def checkout(self, run: str, commit: str, effect: str, *, untouched: bool = False) -> Checkout:
        """A working tree of this run whose tracked and untracked files are exactly `commit`."""
        checked_name("run", run)
        found = self._git.commit_of(commit)
        checkout = self._trees.checkout(run, found, effect, untouched=untouched)
        if self._git.message(found).rstrip("\n") == _RECORDED:
            checkout = msgspec.structs.replace(checkout, changed=True)
        if checkout.fresh:  # a commit that nothing else holds must not be tidied away while it is worked on
            self._git.read("update-ref", f"refs/steersman/{run}/start-{found[:16]}", found)
        return checkout

    def capture(self, run: str, path: str, base: str, label: str) -> Change:
        """Records what is in `path` now as a commit pinned under refs/steersman/<run>/."""
        place = Path(path)
        if not self._trees.holds(checked_name("run", run), place):
            raise WorkspaceError(f"{path} is not a working tree of run {run}; check one out first")
        ref = f"refs/steersman/{run}/{checked_name('label', label)}"
        parent = self._git.commit_of(base)
        made = store_commit(
            self._git, ref, parent, lambda: self._git.commit(self._trees.tree(place), (parent,), _RECORDED)
        )
        return change_of(self._git, parent, made)

    def change(self, commit: str, base: str) -> Change:
        """What a recorded commit changes in another one."""
        return change_of(self._git, self._git.commit_of(base), self._git.commit_of(commit))

    def compose(self, run: str, commit: str, other: str, paths: Sequence[str], label: str) -> Base:
        """`commit` with these paths as they are in `other`, pinned."""
        ref = f"refs/steersman/{checked_name('run', run)}/{checked_name('label', label)}"
        kept, source = self._git.commit_of(commit), self._git.commit_of(other)
        tree = compose_tree(self._git, kept, source, paths)
        made = self._git.commit(tree, (kept,), _RECORDED)
        self._git.read("update-ref", ref, made)
        return Base(made, tree)

    def rebased(self, run: str, commit: str, base: str, target: str, label: str) -> Rebased:
        """A recorded change of `base` on top of what the branch `target` is now."""
        ref = f"refs/steersman/{checked_name('run', run)}/{checked_name('label', label)}"
        tip, old, new = self._courier.tip(target), self._git.commit_of(base), self._git.commit_of(commit)
        if tip == old and self._git.resolve(f"{new}^1") == old:
            return Rebased(False, tip, self._git.tree_of(tip))
        found: list[str] = []
        dropped = self._dropped(old, tip)

        def build() -> str:
            tree, names, said = self._courier.merged_trees(old, tip, new)
            found[:] = names
            if tree is None and not names:
                raise WorkspaceError(
                    f"git cannot bring run {run} onto {target}: {said}; put that right and try again"
                )
            if tree is None:
                raise ConflictError(f"{target} has changed the same as run {run}")
            return self._git.commit(tree, (tip,), _RECORDED)

        try:
            change = change_of(self._git, tip, store_commit(self._git, ref, tip, build))
        except ConflictError:
            return Rebased(True, tip, self._git.tree_of(tip), None, tuple(found), dropped)
        return Rebased(True, tip, self._git.tree_of(tip), change, (), dropped)

    def _dropped(self, base: str, tip: str) -> tuple[str, ...]:
        """Commits of the person's that `base` stands on and `tip` does not have."""
        while self._git.message(base).rstrip("\n") == _RECORDED and (above := self._git.resolve(f"{base}^1")):
            base = above  # a commit of ours that no branch has
        if self._git.contains(tip, base):
            return ()
        flags = ("--no-commit-header", "--format=%h %s", f"--max-count={_MOST_DROPPED}")
        return tuple(map(shown, self._git.read("rev-list", *flags, base, f"^{tip}").splitlines()))

    def lay(self, path: str, commit: str, names: Sequence[str], *, links: bool) -> None:
        """Makes these names in a working tree what they are in `commit`; what is absent there is removed."""
        lay(self._git, Path(path), self._git.commit_of(commit), names, links=links)

    def contents(self, commit: str, names: Sequence[str]) -> dict[str, bytes]:
        """Those of these names that are plain files of a commit, with what is in them."""
        return contents(self._git, self._git.commit_of(commit), names)

    def paths(self, commit: str) -> tuple[str, ...]:
        """The plain files of a commit, sorted."""
        return self._texts.paths(self._git.commit_of(commit))

    def texts(self, commit: str, names: Sequence[str], each: int, total: int) -> tuple[Text, ...]:
        """Those of these names that are plain files of a commit, within the bounds with what is in them."""
        return self._texts.read(self._git.commit_of(commit), names, each, total)

    def project_path(self, word: str) -> str:
        """The path from the top of the repository that a word means; "" where it leads out."""
        top = str(self._git.found.top)
        path = os.path.relpath(os.path.normpath(os.path.join(top, word)), top)
        return "" if path in {".", ".."} or path.startswith("../") else path

    def keep_program(self, commit: str, path: str, *, alone: bool) -> str:
        """Copies a file of `commit` to where no agent can write; the name of the copy."""
        return self._programs.keep(self._git.commit_of(commit), path, alone=alone)

    def checked_out(self, path: str) -> bytes | None:
        """A plain file of the person's checkout, read without following a link."""
        return read_checked_out(self._git.found.top, path)

    def links(self, commit: str) -> tuple[str, ...]:
        """The symbolic links of a commit."""
        return links(self._git, self._git.commit_of(commit))

    def link_targets(self, commit: str) -> dict[str, str]:
        """The symbolic links of a commit with what each leads to."""
        return link_targets(self._git, self._git.commit_of(commit))

    def undeliverable(self, form: str, target: str | None) -> str | None:
        """What is missing here for handing a change over in this form, with the next step; or None."""
        try:
            if form in _INTO_A_BRANCH and target is None:
                raise _no_target(form)
            if form == "draft-pr":
                self._forge.reach()
        except WorkspaceError as error:
            return (
                f'deliver = "{form}" cannot be done here: {error}; or choose another form in steersman.toml'
            )
        return None

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
        """Hands a recorded tree over as a branch of its own, into `target`, or as a draft pull request into it."""
        checked_name("run", run)
        if form not in ("branch", *_INTO_A_BRANCH):
            raise WorkspaceError(f"{form!r} is no form of delivery here; choose branch, merge or draft-pr")
        if form in _INTO_A_BRANCH and target is None:
            raise _no_target(form)
        start = self._git.commit_of(base)
        with self._courier.hold_turn():
            if form == "merge" and target is not None:
                self._courier.tip(target)
            made = self._courier.store(run, self._git.tree_of(commit), start, message, at)
            if form == "merge" and target is not None:
                return self._courier.merge(run, made, target, start)
            delivery = self._courier.branch(run, made)
        if form == "draft-pr" and target is not None:
            return self._forge.draft(run, delivery, target, letter(message, body))
        return delivery

    def revert(
        self, run: str, commit: str, target: str, message: str, *, also: Sequence[str] = (), at: int = 0
    ) -> Delivery:
        """Undoes a delivered commit, and earlier ones of the same run, on the branch `target` by one commit."""
        made = (commit, *also)
        with self._courier.hold_turn():
            return revert(self._git, self._courier, checked_name("run", run), made, target, message, at)

    def interrupted(self) -> tuple[str, ...]:
        """The runs whose delivery was cut short and is neither finished nor undone yet."""
        return tuple(marker.run for _, marker in read_markers(self._git.found.common))

    def settle(self) -> tuple[str, ...]:
        """Finishes or undoes deliveries that were cut short; says what was done."""
        if not self.interrupted():
            return ()
        with self._courier.hold_turn() as done:
            return tuple(done)

    def holds(self, tip: str, commits: Sequence[str]) -> bool:
        """Whether `tip` has what these deliveries of a run have brought together."""
        return held(self._git, self._courier, tip, commits)

    def whole(self, run: str, commits: Sequence[str], label: str) -> Base:
        """What these deliveries of a run were made on, pinned."""
        ref = f"refs/steersman/{checked_name('run', run)}/{checked_name('label', label)}"
        made = [self._git.commit_of(commit) for commit in commits]
        tree = standing_on(self._git, self._courier, made)
        if tree is None:
            raise WorkspaceError(
                f"what run {run} has delivered as {', '.join(one[:12] for one in made)} cannot be told from what others "
                "did in between"
            )
        commit = self._git.commit(tree, (self._git.commit_of(f"{made[-1]}^1"),), _RECORDED)
        self._git.read("update-ref", ref, commit)
        return Base(commit, tree)

    def recorded_refs(self, run: str = "") -> dict[str, RecordedRef]:
        """The refs below refs/steersman/<run>/ and the branch steersman/<run>, with the entries that they came from."""
        return recorded_refs(self._git, checked_name("run", run) if run else "")

    def remove(self, run: str) -> None:
        """Removes the working trees of a run; what is pinned stays."""
        self._trees.remove(checked_name("run", run))

    def _problem(self) -> str | None:
        place = self._git.place
        version = run(("version",), Path("/"), {}).out.decode().strip()
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST:
            return f"{version} is too old; install git 2.38 or newer and try again"
        if self._git.resolve("HEAD^{commit}") is None:
            return (
                f"{place} has no commit yet; run `git add -A && git commit -m 'First commit'` and try again"
            )
        return None


def _no_target(form: str) -> WorkspaceError:
    return WorkspaceError(f"a {form} needs a branch to go into; start the run on one")
