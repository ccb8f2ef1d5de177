"""Takes a delivered change back: a commit that undoes it, on top of whatever came after.

**Invariant:** nothing is rewritten and nothing is left half done: the branch gets one commit more, or stays.
"""

from steersman.adapters.git_cli import EMAIL
from steersman.adapters.git_delivery import Courier
from steersman.adapters.git_repository import Git
from steersman.contracts.workspace import Delivery
from steersman.errors import WorkspaceError

TRAILER = "Steersman-Reverts"


def revert(git: Git, courier: Courier, run: str, commit: str, target: str, message: str) -> Delivery:
    """Undoes `commit` on the branch `target`; once done, asking again gives the same answer."""
    made, ref, tip = git.commit_of(commit), f"refs/heads/{target}", courier.tip(target)
    if not git.contains(tip, made):
        raise WorkspaceError(
            f"run {run} is not in {target}: it was not merged there, or as other commits (squashed, rebased); find those "
            f"with `git log --grep 'Steersman-Run: {run}' {target}` and use `git revert`"
        )
    new = _earlier(git, tip, made)
    if new is None:
        new = git.commit(_undone(git, courier, run, made, target, tip), (tip,), _signed(message, made))
        courier.forward(target, tip, new)
    return Delivery("revert", ref, new, git.tree_of(new))


def _earlier(git: Git, tip: str, made: str) -> str | None:
    """The commit of ours that has undone it already."""
    wanted = ("--extended-regexp", f"--grep=^{TRAILER}: {made}$", f"--committer=<{EMAIL}>")
    found = git.line("rev-list", "--first-parent", "--max-count=1", *wanted, tip, f"^{made}")
    return found or None


def _undone(git: Git, courier: Courier, run: str, made: str, target: str, tip: str) -> str:
    """The tree of `tip` without what `made` brought."""
    before = git.resolve(f"{made}^1")
    if before is None:
        raise WorkspaceError(f"run {run} began the history of {target}: there is nothing to go back to")
    tree, names, said = courier.merged_trees(made, tip, before)
    if tree is None:
        where = f"later commits have changed the same lines of {', '.join(names)}" if names else said
        raise WorkspaceError(
            f"run {run} cannot be taken back from {target}: {where}; nothing was changed. Undo it by hand: "
            f"`git revert {'-m 1 ' if git.resolve(f'{made}^2') else ''}{made[:12]}`"
        )
    if tree == git.tree_of(tip):
        raise WorkspaceError(
            f"run {run} is undone in {target} already: taking it back changes nothing there; see `git log {target}`"
        )
    return tree


def _signed(message: str, made: str) -> str:
    """Trailers stand together at the end."""
    return f"{message.rstrip()}\n{TRAILER}: {made}\n"
