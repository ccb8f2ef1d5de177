"""The user's repository through the git command line.

Each run works in trees of its own outside the repository; what they hold is recorded as commits whose hashes depend
only on content and parent, pinned under refs/steersman/<run>/.
**Invariant:** the user's branches and checkout change in `deliver` and nowhere else; nothing of theirs is executed.
"""

import re
from pathlib import Path

from steersman.adapters.git_cli import Git, checked_name
from steersman.adapters.git_delivery import Courier
from steersman.adapters.git_trees import Trees
from steersman.adapters.include import checked_patterns
from steersman.contracts.commands import Argv
from steersman.contracts.workspace import Base, Change, Checkout, Delivery
from steersman.errors import WorkspaceError

_OLDEST = (2, 38)  # the first git with `merge-tree --write-tree`
_DIFF = (
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
)
_RECORDED = "steersman: recorded tree"  # the same for every run: same tree and parent, same commit
_GITLINK = b"160000"


class GitWorkspace:
    """The `Workspace` port for one repository; `setup` is what a fresh tree needs and is run by others, on tape."""

    def __init__(
        self, repo: Path, state_dir: Path, *, include: tuple[str, ...] = (), setup: tuple[Argv, ...] = ()
    ) -> None:
        self.setup = setup
        self._git = Git(repo)
        self._trees = Trees(self._git, state_dir / "worktrees", checked_patterns(include))
        self._courier = Courier(self._git, self._trees.root)

    def problem(self) -> str | None:
        """Why no run can start here, with the next step; or None."""
        try:
            return self._problem()
        except WorkspaceError as error:
            return str(error)

    def base(self, ref: str | None) -> Base:
        """Reads the commit a run starts from; raises WorkspaceError when it is not there."""
        name = ref or "HEAD"
        commit = self._git.resolve(f"{name}^{{commit}}")
        if commit is None:
            reason = (
                self.problem() or f"there is no commit called {name!r}; choose one that `git branch -a` lists"
            )
            raise WorkspaceError(reason)
        full = self._git.line("rev-parse", "--symbolic-full-name", "--verify", "--end-of-options", name)
        branch = full.removeprefix("refs/heads/") if full.startswith("refs/heads/") else None
        dirty = bool(self._git.read("status", "--porcelain", "-z"))
        return Base(commit, self._git.tree_of(commit), branch, dirty)

    def checkout(self, run: str, commit: str, effect: str, attempt: int) -> Checkout:  # noqa: ARG002  a tree that still is `commit` serves any attempt
        """A working tree of this run whose tracked and untracked files are exactly `commit`."""
        return self._trees.checkout(checked_name("run", run), self._commit(commit), effect)

    def capture(self, run: str, path: str, base: str, label: str) -> Change:
        """Records what is in `path` now as a commit pinned under refs/steersman/<run>/."""
        place = Path(path)
        if not self._trees.holds(checked_name("run", run), place):
            raise WorkspaceError(f"{path} is not a working tree of run {run}; check one out first")
        ref = f"refs/steersman/{run}/{checked_name('label', label)}"
        parent = self._commit(base)
        commit = self._git.commit(self._trees.tree(place), (parent,), _RECORDED)
        change = self._change(parent, commit)
        self._git.read("update-ref", ref, commit)
        return change

    def deliver(
        self, run: str, commit: str, base: str, form: str, target: str | None, message: str
    ) -> Delivery:
        """Hands a recorded tree over as a branch of its own or into `target`."""
        checked_name("run", run)
        made = self._git.commit(self._git.tree_of(commit), (self._commit(base),), message)
        match form, target:
            case "branch", _:
                return self._courier.branch(run, made)
            case "merge", str():
                return self._courier.merge(run, made, target, message)
            case "merge", None:
                raise WorkspaceError("a merge needs a branch to merge into; name it as the target")
            case _:
                raise WorkspaceError(f"{form!r} is no form of delivery here; choose branch or merge")

    def remove(self, run: str) -> None:
        """Removes the working trees of a run; what is pinned stays."""
        self._trees.remove(checked_name("run", run))

    def _problem(self) -> str | None:
        place = self._git.place
        version = self._git.line("version")
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < _OLDEST:
            return f"{version} is too old; install git 2.38 or newer and try again"
        answer = self._git.call("rev-parse", "--is-bare-repository", "--is-inside-work-tree")
        bare, _, inside = answer.out.decode().strip().partition("\n")
        if answer.code != 0:
            return _no_repository(place, answer.err)
        if inside != "true":
            what = "a bare repository" if bare == "true" else "inside a .git directory"
            return f"{place} is {what}, without files to work on; clone it and run steersman in the clone"
        if self._git.resolve("HEAD^{commit}") is None:
            return (
                f"{place} has no commit yet; run `git add -A && git commit -m 'First commit'` and try again"
            )
        return None

    def _commit(self, name: str) -> str:
        commit = self._git.resolve(f"{name}^{{commit}}")
        if commit is None:
            raise WorkspaceError(
                f"the commit {name!r} is not in {self._git.place}; fetch it or start from another"
            )
        return commit

    def _change(self, base: str, commit: str) -> Change:
        raw = self._git.read(*_DIFF, "--raw", "-z", base, commit).split(b"\0")
        names = [name.decode("utf-8", "backslashreplace") for name in raw[1::2]]
        for fields, name in zip(raw[::2], names, strict=False):
            old, new, *_ = fields.removeprefix(b":").split(b" ")
            if new == _GITLINK != old:  # its files would be tested but not recorded
                raise WorkspaceError(
                    f"a repository inside the tree cannot be recorded: {name}; remove its .git"
                )
        patch = self._git.read(*_DIFF, "--patch", "--full-index", base, commit).decode("utf-8", "replace")
        added, removed = self._counts(base, commit)
        return Change(commit, self._git.tree_of(commit), tuple(sorted(names)), patch, added, removed)

    def _counts(self, base: str, commit: str) -> tuple[int, int]:
        """Lines added and removed; git writes a dash for binary files, which count as none."""
        records = self._git.read(*_DIFF, "--numstat", "-z", base, commit).split(b"\0")[:-1]
        pairs = [record.split(b"\t", 2)[:2] for record in records]
        added, removed = (sum(int(pair[side]) for pair in pairs if pair[side] != b"-") for side in (0, 1))
        return added, removed


def _no_repository(place: Path, said: str) -> str:
    if "dubious ownership" in said:
        return f"{place} belongs to somebody else; run `git config --global --add safe.directory {place}` if you trust it"
    return (
        f"{place} is not inside a git repository; run `git init` there and commit, or go to your repository"
    )
