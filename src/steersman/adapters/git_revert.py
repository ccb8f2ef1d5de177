"""Takes a delivered change back: a commit that undoes it, on top of whatever came after.

**Invariant:** nothing is rewritten and nothing is left half done: the branch gets one commit more, or stays.
"""

from collections.abc import Sequence

from steersman.adapters.git_delivery import Courier
from steersman.adapters.git_repository import Git
from steersman.contracts.workspace import Delivery
from steersman.errors import ConflictError, NotThereError, UndoneError, WorkspaceError

TRAILER = "Steersman-Reverts"
NAMED = 5  # branches that are named


def revert(
    git: Git, courier: Courier, run: str, commits: Sequence[str], target: str, message: str, at: int
) -> Delivery:
    """Undoes these deliveries of a run, the newest first, on the branch `target`; once done, asking again gives the same
    answer."""
    made, tip = [git.commit_of(commit) for commit in commits], courier.tip(target)
    there = {one: _earlier(git, tip, one) for one in made if git.contains(tip, one)}
    tree = _undone(git, courier, made, tip)
    if not there and tree in (None, git.tree_of(tip)):
        raise NotThereError(_elsewhere(git, run, made[0], target))
    by = next(filter(None, there.values()), "")
    left = [one for one, done in there.items() if done is None]
    if tree is None and left:
        tree = _one_by_one(git, courier, run, left, target, tip)
    if tree is None or (tree == git.tree_of(tip) and by):
        return Delivery("revert", f"refs/heads/{target}", by, git.tree_of(by))
    if tree == git.tree_of(tip):
        raise _undone_already(git, run, made, target, tip)
    new = courier.store(run, tree, tip, _signed(message, made), at)
    courier.forward(run, target, tip, new)
    return Delivery("revert", f"refs/heads/{target}", new, git.tree_of(new))


def held(git: Git, courier: Courier, tip: str, commits: Sequence[str]) -> bool:
    """Whether a branch that is at `tip` has what these deliveries have brought together."""
    made, at = [git.commit_of(commit) for commit in commits], git.commit_of(tip)
    now, before = git.tree_of(at), standing_on(git, courier, made)
    if before is not None and courier.merged_trees(before, at, made[0])[0] == now:
        return True
    if before is not None and courier.merged_trees(made[0], at, before)[0] == now:
        return False  # nothing of it is left
    return all(git.contains(at, one) and _earlier(git, at, one) is None for one in made)


def standing_on(git: Git, courier: Courier, made: Sequence[str]) -> str | None:
    """The tree of the newest of these deliveries without any of them; None where that cannot be told."""
    tree: str | None = git.tree_of(made[0])
    for one in made:
        before = git.resolve(f"{one}^1")
        if tree is None or before is None:
            return None
        tree = courier.merged_trees(one, tree, before)[0]
    return tree


def _elsewhere(git: Git, run: str, made: str, target: str) -> str:
    """Where a change is that a branch does not have."""
    found = git.line("for-each-ref", "--format=%(refname:short)", f"--contains={made}", "refs/heads").split()
    kept = f"the branch {found[0]} has" if len(found) == 1 else f"{', '.join(found[:NAMED])} have"
    drop = f"; drop it with `git branch -D steersman/{run}`" if f"steersman/{run}" in found else ""
    where = f"{kept} it{drop}" if found else "no branch here has it"
    return (
        f"run {run} is not in {target}: there is nothing to take back from {target}, and {where}. If it came there as "
        f"other commits (squashed, rebased), find those with `git log --grep 'Steersman-Run: {run}' {target}` and use "
        "`git revert`"
    )


def _earlier(git: Git, tip: str, commit: str) -> str | None:
    """The commit that has undone it already, ours or one of git's own, unless that was undone in its turn."""
    for wanted in (f"^{TRAILER}: {commit}$", f"^This reverts commit {commit}[.,]"):
        flags = ("--extended-regexp", "--max-count=1", f"--grep={wanted}")
        found = git.line("rev-list", *flags, tip, f"^{commit}")
        if found and _earlier(git, tip, found) is None:
            return found
    return None


def _undone(git: Git, courier: Courier, made: Sequence[str], tip: str) -> str | None:
    """The tree of `tip` without what these deliveries brought, in whatever commits it came; None where that conflicts."""
    before = standing_on(git, courier, made)
    return None if before is None else courier.merged_trees(made[0], tip, before)[0]


def _one_by_one(git: Git, courier: Courier, run: str, left: Sequence[str], target: str, tip: str) -> str:
    """The tree of `tip` without these commits of it; what is in the way is told."""
    tree = git.tree_of(tip)
    for one in left:
        tree = _without(git, courier, run, one, target, tree)
    return tree


def _undone_already(git: Git, run: str, made: Sequence[str], target: str, tip: str) -> UndoneError:
    by = _last_touched(git, f"{made[-1]}^1", made[0], tip)
    return UndoneError(
        f"run {run} is undone in {target} already, by {by[:12]}: taking it back changes nothing there; "
        f"see `git log {target}`",
        by,
    )


def _without(git: Git, courier: Courier, run: str, made: str, target: str, of: str) -> str:
    """A tree without what one commit brought."""
    before = git.resolve(f"{made}^1")
    if before is None:
        raise WorkspaceError(f"run {run} began the history of {target}: there is nothing to go back to")
    tree, names, said = courier.merged_trees(made, of, before)
    if tree is None and names:
        raise ConflictError(
            f"run {run} cannot be taken back from {target}: later commits have changed the same lines of "
            f"{', '.join(names)}; nothing was changed. Undo it by hand with "
            f"`git revert {'-m 1 ' if git.resolve(f'{made}^2') else ''}{made[:12]}`, then ask again"
        )
    if tree is None:
        raise WorkspaceError(f"run {run} cannot be taken back from {target}: {said}; nothing was changed")
    return tree


def _last_touched(git: Git, before: str, made: str, tip: str) -> str:
    """The commit that left the files of a change as they are now."""
    names = git.read("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, made).split(b"\0")[:-1]
    feed = b"--\n" + b"".join(name + b"\n" for name in names)
    return git.read("rev-list", "--max-count=1", tip, f"^{made}", "--stdin", feed=feed).decode().strip()


def _signed(message: str, left: Sequence[str]) -> str:
    """Trailers stand together at the end."""
    return f"{message.rstrip()}\n" + "".join(f"{TRAILER}: {made}\n" for made in left)
