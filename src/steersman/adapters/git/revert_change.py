"""Reverts a delivered change: one commit that undoes it, on top of whatever came after.

**Invariant:** nothing is rewritten and nothing is left half done: the branch gets one commit more, or stays.
"""

from collections.abc import Sequence

from steersman.adapters.git.deliver_tree import BranchDeliverer
from steersman.adapters.git.repository import GitRepository
from steersman.contracts.workspace import Delivery
from steersman.errors import AlreadyRevertedError, ChangeConflictError, ChangeNotOnBranchError, WorkspaceError

REVERT_TRAILER = "Steersman-Reverts"
MAX_NAMED_BRANCHES = 5  # branches that are named


def revert_deliveries(
    git: GitRepository,
    deliverer: BranchDeliverer,
    run: str,
    commits: Sequence[str],
    target: str,
    message: str,
    at: int,
) -> Delivery:
    """Undoes these deliveries of a run, the newest first, on the branch `target`; once done, asking again gives the same
    answer."""
    delivered_commits, tip = [git.commit_of(commit) for commit in commits], deliverer.tip(target)
    reverts = {c: _find_earlier_revert(git, tip, c) for c in delivered_commits if git.contains(tip, c)}
    tree = _revert_together(git, deliverer, delivered_commits, tip)
    if not reverts and tree in (None, git.tree_of(tip)):
        raise ChangeNotOnBranchError(_not_delivered_message(git, run, delivered_commits[0], target))
    revert_commit = next(filter(None, reverts.values()), "")
    remaining = [delivered_commit for delivered_commit, reverted_by in reverts.items() if reverted_by is None]
    if tree is None and remaining:
        tree = _revert_one_by_one(git, deliverer, run, remaining, target, tip)
    if tree is None or (tree == git.tree_of(tip) and revert_commit):
        return Delivery("revert", f"refs/heads/{target}", revert_commit, git.tree_of(revert_commit))
    if tree == git.tree_of(tip):
        raise _already_reverted_error(git, run, delivered_commits, target, tip)
    new_commit = deliverer.store(run, tree, tip, _add_revert_trailers(message, delivered_commits), at)
    deliverer.forward(run, target, tip, new_commit)
    return Delivery("revert", f"refs/heads/{target}", new_commit, git.tree_of(new_commit))


def has_delivered_changes(
    git: GitRepository, deliverer: BranchDeliverer, tip: str, commits: Sequence[str]
) -> bool:
    """Whether a branch that is at `tip` has what these deliveries have brought together."""
    delivered_commits, tip_commit = [git.commit_of(commit) for commit in commits], git.commit_of(tip)
    tip_tree, tree = git.tree_of(tip_commit), tree_before_deliveries(git, deliverer, delivered_commits)
    if tree is not None and deliverer.merged_trees(tree, tip_commit, delivered_commits[0])[0] == tip_tree:
        return True
    if tree is not None and deliverer.merged_trees(delivered_commits[0], tip_commit, tree)[0] == tip_tree:
        return False  # nothing of it is left
    return all(
        git.contains(tip_commit, delivered_commit)
        and _find_earlier_revert(git, tip_commit, delivered_commit) is None
        for delivered_commit in delivered_commits
    )


def tree_before_deliveries(
    git: GitRepository, deliverer: BranchDeliverer, delivered_commits: Sequence[str]
) -> str | None:
    """The tree of the newest of these deliveries without any of them; None where that is undecided."""
    tree: str | None = git.tree_of(delivered_commits[0])
    for commit in delivered_commits:
        parent = git.resolve(f"{commit}^1")
        if tree is None or parent is None:
            return None
        tree = deliverer.merged_trees(commit, tree, parent)[0]
    return tree


def _not_delivered_message(git: GitRepository, run: str, commit: str, target: str) -> str:
    """Where a change is that a branch does not have."""
    branches = git.line(
        "for-each-ref", "--format=%(refname:short)", f"--contains={commit}", "refs/heads"
    ).split()
    holder_text = (
        f"the branch {branches[0]} has"
        if len(branches) == 1
        else f"{', '.join(branches[:MAX_NAMED_BRANCHES])} have"
    )
    drop_hint = f". Delete it with `git branch -D steersman/{run}`" if f"steersman/{run}" in branches else ""
    location_text = f"{holder_text} it{drop_hint}" if branches else "no branch here has it"
    return (
        f"run {run} is not in {target}: there is nothing to revert, and {location_text}. If it came there as "
        f"other commits (squashed, rebased), find those with `git log --grep 'Steersman-Run: {run}' {target}` and use "
        "`git revert`"
    )


def _find_earlier_revert(git: GitRepository, tip: str, commit: str) -> str | None:
    """The commit that has undone it already, ours or one of git's own, unless that was undone in its turn."""
    for pattern in (f"^{REVERT_TRAILER}: {commit}$", f"^This reverts commit {commit}[.,]"):
        flags = ("--extended-regexp", "--max-count=1", f"--grep={pattern}")
        revert_commit = git.line("rev-list", *flags, tip, f"^{commit}")
        if revert_commit and _find_earlier_revert(git, tip, revert_commit) is None:
            return revert_commit
    return None


def _revert_together(
    git: GitRepository, deliverer: BranchDeliverer, delivered_commits: Sequence[str], tip: str
) -> str | None:
    """The tree of `tip` without what these deliveries brought, in whatever commits it came; None where that conflicts."""
    base_tree = tree_before_deliveries(git, deliverer, delivered_commits)
    return None if base_tree is None else deliverer.merged_trees(delivered_commits[0], tip, base_tree)[0]


def _revert_one_by_one(
    git: GitRepository, deliverer: BranchDeliverer, run: str, commits: Sequence[str], target: str, tip: str
) -> str:
    """The tree of `tip` without these commits of it; an error names what is in the way."""
    tree = git.tree_of(tip)
    for commit in commits:
        tree = _revert_commit_in_tree(git, deliverer, run, commit, target, tree)
    return tree


def _already_reverted_error(
    git: GitRepository, run: str, delivered_commits: Sequence[str], target: str, tip: str
) -> AlreadyRevertedError:
    revert_commit = _find_last_touching_commit(git, f"{delivered_commits[-1]}^1", delivered_commits[0], tip)
    return AlreadyRevertedError(
        f"run {run} is undone in {target} already, by {revert_commit[:12]}: reverting it changes nothing there; "
        f"see `git log {target}`",
        revert_commit,
    )


def _revert_commit_in_tree(
    git: GitRepository, deliverer: BranchDeliverer, run: str, commit: str, target: str, current_tree: str
) -> str:
    """A tree without what one commit brought."""
    parent = git.resolve(f"{commit}^1")
    if parent is None:
        raise WorkspaceError(f"run {run} began the history of {target}: there is nothing to go back to")
    tree, names, git_error = deliverer.merged_trees(commit, current_tree, parent)
    if tree is None and names:
        raise ChangeConflictError(
            f"run {run} cannot be reverted on {target}: later commits have changed the same lines of "
            f"{', '.join(names)}; nothing was changed. Undo it by hand with "
            f"`git revert {'-m 1 ' if git.resolve(f'{commit}^2') else ''}{commit[:12]}`, then ask again"
        )
    if tree is None:
        raise WorkspaceError(f"run {run} cannot be reverted on {target}: {git_error}; nothing was changed")
    return tree


def _find_last_touching_commit(git: GitRepository, base: str, commit: str, tip: str) -> str:
    """The commit that left the files of a change as they are now."""
    names = git.read("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, commit).split(b"\0")[:-1]
    feed = b"--\n" + b"".join(name + b"\n" for name in names)
    return git.read("rev-list", "--max-count=1", tip, f"^{commit}", "--stdin", feed=feed).decode().strip()


def _add_revert_trailers(message: str, commits: Sequence[str]) -> str:
    """Trailers stand together at the end."""
    return f"{message.rstrip()}\n" + "".join(f"{REVERT_TRAILER}: {commit}\n" for commit in commits)
