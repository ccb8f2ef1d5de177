"""The user's repository through the git command line.

Each run works in trees of its own outside the repository; what they hold is recorded as commits whose hashes depend
only on content and parent, pinned under refs/steersman/<run>/.
**Invariant:** the user's branches and checkout change in `deliver` and `revert` and nowhere else; nothing of theirs
is executed.
"""

import os
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steersman.adapters.agents.program_copies import PROGRAMS_DIRECTORY, ProgramCopies
from steersman.adapters.git.deliver_tree import CommitTexts
from steersman.adapters.git.git_command import decode_git_path, require_ref_part, run_git
from steersman.adapters.git.repository import GitRepository, list_recorded_refs, store_commit_despite_gc
from steersman.adapters.git.run_trees import (
    RunWorkingTrees,
    check_include_patterns,
    list_commit_links,
    read_checked_out_file,
    read_commit_files,
    read_link_targets,
    restore_tree_files,
)
from steersman.adapters.git.tree_hash import read_commit_change
from steersman.adapters.git.user_checkout import UserCheckouts, read_move_markers
from steersman.contracts.commands import Argv
from steersman.contracts.workspace import (
    Change,
    Checkout,
    Delivery,
    FileText,
    RebasedChange,
    RecordedRef,
    RunBase,
)
from steersman.errors import ChangeConflictError, WorkspaceError

if TYPE_CHECKING:
    from steersman.adapters.git.deliver_tree import BranchDeliverer
    from steersman.adapters.git.forge import ForgeClient

_OLDEST_GIT_VERSION = (2, 38)  # the first git with `merge-tree --write-tree`
_MAX_DROPPED_COMMITS = 50
_FORMS_WITH_TARGET = ("merge", "draft-pr")
# The same for every run: same tree and parent, same commit.
_RECORDED_TREE_MESSAGE = "steersman: recorded tree"


class GitWorkspace:
    """The `Workspace` port for one repository; `setup` is what a fresh tree needs and is run by others, on tape."""

    def __init__(
        self, repo: Path, state_dir: Path, *, include: tuple[str, ...] = (), setup: tuple[Argv, ...] = ()
    ) -> None:
        self.setup = setup
        self._git = GitRepository(repo, state_dir / "hulls")
        self._texts = CommitTexts(self._git)
        self._programs = ProgramCopies(self._git, state_dir / PROGRAMS_DIRECTORY)
        self._trees = RunWorkingTrees(self._git, state_dir / "worktrees", check_include_patterns(include))
        self._checkouts = UserCheckouts(self._git, self._trees.root)

    # Most runs end without a delivery, and many without a pull request or a revert: these modules are imported late.

    @cached_property
    def _deliverer(self) -> "BranchDeliverer":
        from steersman.adapters.git.deliver_tree import BranchDeliverer

        return BranchDeliverer(self._git, self._checkouts)

    @cached_property
    def _forge(self) -> "ForgeClient":
        from steersman.adapters.git.forge import ForgeClient

        return ForgeClient(self._git, self._deliverer)

    def refresh(self) -> None:
        """Reads HEAD and settings of the repository again at the next call, so that one object can serve for long."""
        self._git.refresh()

    def find_start_problem(self) -> str | None:
        """Why no run can start here, with the next step; or None."""
        try:
            return self._find_repository_problem()
        except WorkspaceError as error:
            return str(error)

    def base(self, ref: str | None) -> RunBase:
        """Reads the commit a run starts from; raises WorkspaceError when it is not there."""
        name, commit = ref or "HEAD", self.base_commit(ref)
        full_name = self._git.line("rev-parse", "--symbolic-full-name", "--verify", "--end-of-options", name)
        branch = full_name.removeprefix("refs/heads/") if full_name.startswith("refs/heads/") else None
        return RunBase(commit, self._git.tree_of(commit), branch, self._checkouts.has_uncommitted_changes())

    def base_commit(self, ref: str | None) -> str:
        """The commit of `base` alone, without a look at the checkout's files."""
        name = ref or "HEAD"
        commit = self._git.resolve(f"{name}^{{commit}}")
        if commit is None:
            reason = (
                self.find_start_problem()
                or f"there is no commit called {name!r}; choose one that `git branch -a` lists"
            )
            raise WorkspaceError(reason)
        return commit

    def checkout(self, run: str, commit: str, effect: str, *, untouched: bool = False) -> Checkout:
        """A working tree of this run whose tracked and untracked files are exactly `commit`."""
        require_ref_part("run", run)
        commit_id = self._git.commit_of(commit)
        checkout = self._trees.checkout(run, commit_id, effect, untouched=untouched)
        if self._git.message(commit_id).rstrip("\n") == _RECORDED_TREE_MESSAGE:
            checkout = msgspec.structs.replace(checkout, changed=True)
        if checkout.fresh:  # a commit that nothing else holds must not be tidied away while it is worked on
            self._git.read("update-ref", f"refs/steersman/{run}/start-{commit_id[:16]}", commit_id)
        return checkout

    def capture(self, run: str, path: str, base: str, label: str) -> Change:
        """Records what is in `path` now as a commit pinned under refs/steersman/<run>/."""
        tree_path = Path(path)
        if not self._trees.is_tree_of_run(require_ref_part("run", run), tree_path):
            raise WorkspaceError(f"{path} is not a working tree of run {run}; check one out first")
        ref = f"refs/steersman/{run}/{require_ref_part('label', label)}"
        parent = self._git.commit_of(base)
        recorded_commit = store_commit_despite_gc(
            self._git,
            ref,
            parent,
            lambda: self._git.commit(self._trees.tree(tree_path), (parent,), _RECORDED_TREE_MESSAGE),
        )
        return read_commit_change(self._git, parent, recorded_commit)

    def change(self, commit: str, base: str) -> Change:
        """What a recorded commit changes in another one."""
        return read_commit_change(self._git, self._git.commit_of(base), self._git.commit_of(commit))

    def compose(self, run: str, commit: str, other: str, paths: Sequence[str], label: str) -> RunBase:
        """`commit` with these paths as they are in `other`, pinned."""
        ref = f"refs/steersman/{require_ref_part('run', run)}/{require_ref_part('label', label)}"
        commit_id, other_id = self._git.commit_of(commit), self._git.commit_of(other)
        tree = self._git.compose_tree(commit_id, other_id, paths)
        composed_commit = self._git.commit(tree, (commit_id,), _RECORDED_TREE_MESSAGE)
        self._git.read("update-ref", ref, composed_commit)
        return RunBase(composed_commit, tree)

    def rebase_change(self, run: str, commit: str, base: str, target: str, label: str) -> RebasedChange:
        """A recorded change of `base` on top of what the branch `target` is now."""
        ref = f"refs/steersman/{require_ref_part('run', run)}/{require_ref_part('label', label)}"
        tip = self._deliverer.tip(target)
        old_base = self._git.commit_of(base)
        recorded_commit = self._git.commit_of(commit)
        if tip == old_base and self._git.resolve(f"{recorded_commit}^1") == old_base:
            return RebasedChange(False, tip, self._git.tree_of(tip))
        conflict_paths: list[str] = []
        commits = self._list_dropped_commits(old_base, tip)

        def build() -> str:
            tree, conflicts, git_error = self._deliverer.merged_trees(old_base, tip, recorded_commit)
            conflict_paths[:] = conflicts
            if tree is None and not conflicts:
                raise WorkspaceError(
                    f"git cannot bring run {run} onto {target}: {git_error}; put that right and try again"
                )
            if tree is None:
                raise ChangeConflictError(f"{target} has changed the same as run {run}")
            return self._git.commit(tree, (tip,), _RECORDED_TREE_MESSAGE)

        try:
            change = read_commit_change(self._git, tip, store_commit_despite_gc(self._git, ref, tip, build))
        except ChangeConflictError:
            return RebasedChange(True, tip, self._git.tree_of(tip), None, tuple(conflict_paths), commits)
        return RebasedChange(True, tip, self._git.tree_of(tip), change, (), commits)

    def _list_dropped_commits(self, base: str, tip: str) -> tuple[str, ...]:
        """Commits of the person's that `base` stands on and `tip` does not have."""
        while self._git.message(base).rstrip("\n") == _RECORDED_TREE_MESSAGE and (
            parent := self._git.resolve(f"{base}^1")
        ):
            base = parent  # a commit that steersman recorded and no branch has
        if self._git.contains(tip, base):
            return ()
        flags = ("--no-commit-header", "--format=%h %s", f"--max-count={_MAX_DROPPED_COMMITS}")
        return tuple(map(decode_git_path, self._git.read("rev-list", *flags, base, f"^{tip}").splitlines()))

    def write_files(self, path: str, commit: str, names: Sequence[str], *, links: bool) -> None:
        """Makes these names in a working tree what they are in `commit`; what is absent there is removed."""
        restore_tree_files(self._git, Path(path), self._git.commit_of(commit), names, links=links)

    def read_contents(self, commit: str, names: Sequence[str]) -> dict[str, bytes]:
        """Those of these names that are plain files of a commit, with what is in them."""
        return read_commit_files(self._git, self._git.commit_of(commit), names)

    def paths(self, commit: str) -> tuple[str, ...]:
        """The plain files of a commit, sorted."""
        return self._texts.paths(self._git.commit_of(commit))

    def read_texts(self, commit: str, names: Sequence[str], each: int, total: int) -> tuple[FileText, ...]:
        """Those of these names that are plain files of a commit, within the bounds with what is in them."""
        return self._texts.read(self._git.commit_of(commit), names, each, total)

    def project_path(self, word: str) -> str:
        """The path from the top of the repository that a word means; "" where it leads out."""
        top = str(self._git.require_repository.top)
        path = os.path.relpath(os.path.normpath(os.path.join(top, word)), top)
        return "" if path in {".", ".."} or path.startswith("../") else path

    def keep_program(self, commit: str, path: str, *, alone: bool) -> str:
        """Copies a file of `commit` to where no agent can write; the name of the copy."""
        return self._programs.store_copy(self._git.commit_of(commit), path, alone=alone)

    def checked_out(self, path: str) -> bytes | None:
        """A plain file of the person's checkout, read without following a link."""
        return read_checked_out_file(self._git.require_repository.top, path)

    def links(self, commit: str) -> tuple[str, ...]:
        """The symbolic links of a commit."""
        return list_commit_links(self._git, self._git.commit_of(commit))

    def link_targets(self, commit: str) -> dict[str, str]:
        """The symbolic links of a commit with what each leads to."""
        return read_link_targets(self._git, self._git.commit_of(commit))

    def find_delivery_problem(self, form: str, target: str | None) -> str | None:
        """What is missing here for handing a change over in this form, with the next step; or None."""
        try:
            if form in _FORMS_WITH_TARGET and target is None:
                raise _missing_target_error(form)
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
        """Delivers a recorded tree as a branch of its own, into `target`, or as a draft pull request into it."""
        require_ref_part("run", run)
        if form not in ("branch", *_FORMS_WITH_TARGET):
            raise WorkspaceError(f"{form!r} is no form of delivery here; choose branch, merge or draft-pr")
        if form in _FORMS_WITH_TARGET and target is None:
            raise _missing_target_error(form)
        base_commit = self._git.commit_of(base)
        with self._deliverer.hold_delivery_turn():
            if form == "merge" and target is not None:
                self._deliverer.tip(target)
            delivery_commit = self._deliverer.store(run, self._git.tree_of(commit), base_commit, message, at)
            if form == "merge" and target is not None:
                return self._deliverer.merge_into_target(run, delivery_commit, target, base_commit)
            delivery = self._deliverer.deliver_branch(run, delivery_commit)
        if form == "draft-pr" and target is not None:
            return self._forge.draft(run, delivery, target, message, body)
        return delivery

    def revert(
        self, run: str, commit: str, target: str, message: str, *, also: Sequence[str] = (), at: int = 0
    ) -> Delivery:
        """Undoes a delivered commit, and earlier ones of the same run, on the branch `target` by one commit."""
        from steersman.adapters.git.revert_change import revert_deliveries

        commits = (commit, *also)
        with self._deliverer.hold_delivery_turn():
            return revert_deliveries(
                self._git, self._deliverer, require_ref_part("run", run), commits, target, message, at
            )

    def list_interrupted_runs(self) -> tuple[str, ...]:
        """The runs whose delivery was cut short and is neither finished nor undone yet."""
        return tuple(marker.run for _, marker in read_move_markers(self._git.require_repository.common))

    def settle_interrupted_deliveries(self) -> tuple[str, ...]:
        """Finishes or undoes deliveries that were cut short; says what was done."""
        if not self.list_interrupted_runs():
            return ()
        with self._deliverer.hold_delivery_turn() as messages:
            return tuple(messages)

    def contains_deliveries(self, tip: str, commits: Sequence[str]) -> bool:
        """Whether `tip` has what these deliveries of a run have brought together."""
        from steersman.adapters.git.revert_change import has_delivered_changes

        return has_delivered_changes(self._git, self._deliverer, tip, commits)

    def compose_delivery_base(self, run: str, commits: Sequence[str], label: str) -> RunBase:
        """What these deliveries of a run were made on, pinned."""
        ref = f"refs/steersman/{require_ref_part('run', run)}/{require_ref_part('label', label)}"
        from steersman.adapters.git.revert_change import tree_before_deliveries

        delivered_commits = [self._git.commit_of(commit) for commit in commits]
        tree = tree_before_deliveries(self._git, self._deliverer, delivered_commits)
        if tree is None:
            raise WorkspaceError(
                f"what run {run} has delivered as {', '.join(delivered_commit[:12] for delivered_commit in delivered_commits)} cannot be separated from what "
                "others did in between"
            )
        commit = self._git.commit(
            tree, (self._git.commit_of(f"{delivered_commits[-1]}^1"),), _RECORDED_TREE_MESSAGE
        )
        self._git.read("update-ref", ref, commit)
        return RunBase(commit, tree)

    def recorded_refs(self, run: str = "") -> dict[str, RecordedRef]:
        """The refs below refs/steersman/<run>/ and the branch steersman/<run>, with the entries that they came from."""
        return list_recorded_refs(self._git, require_ref_part("run", run) if run else "")

    def remove(self, run: str) -> None:
        """Removes the working trees of a run; what is pinned stays."""
        self._trees.remove(require_ref_part("run", run))

    def _find_repository_problem(self) -> str | None:
        directory = self._git.place
        version = run_git(("version",), Path("/"), {}).out.decode().strip()
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST_GIT_VERSION:
            return f"{version} is too old; install git 2.38 or newer and try again"
        if self._git.resolve("HEAD^{commit}") is None:
            return f"{directory} has no commit yet; run `git add -A && git commit -m 'First commit'` and try again"
        return None


def _missing_target_error(form: str) -> WorkspaceError:
    return WorkspaceError(f"a {form} needs a branch to go into; start the run on one")
