"""Delivers a recorded tree to the person's branches.

One delivery runs at a time for a repository, even from different state directories. The lock is on a file in the directory that
all checkouts share. Every git that is started under it keeps the file open, so the lock outlives a killed driver until
its last git has ended. It is not held while a check runs or a forge is called.
**Invariant:** a branch moves only forward, or from one commit of this run to another, and only if it still is where it
was read; a checkout with uncommitted changes is never touched; nothing is pushed.
"""

import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from steersman.adapters.git.git_command import (
    COMMITTER_EMAIL,
    COMMITTER_NAME,
    decode_git_path,
    inherited_git_fds,
    start_git,
)
from steersman.adapters.git.repository import GitRepository, is_commit_complete, store_commit_despite_gc
from steersman.adapters.git.user_checkout import UserCheckouts
from steersman.contracts.workspace import Delivery, FileText
from steersman.errors import BranchMovedError, WorkspaceError

DELIVERY_LOCK_NAME = "steersman-delivery.lock"
DELIVERY_LOCK_SECONDS = 300.0
_IDENTITY_SECONDS = 60
# Settings of the person or the system (`trace2.eventTarget` and others) can have git write to files and sockets.
_UNTRACED_ENVIRONMENT = dict.fromkeys(("GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF"), "0")


class BranchDeliverer:
    """Delivers for one repository."""

    def __init__(self, git: GitRepository, checkouts: UserCheckouts) -> None:
        self._git = git
        self._checkouts = checkouts

    @contextmanager
    def hold_delivery_turn(self) -> Iterator[list[str]]:
        """Holds the delivery lock; a delivery that was cut short before is settled first."""
        try:
            with hold_delivery_lock(self._git.require_repository.common):
                # Only deliveries lock the HEAD of the isolated git directory. A lock file still there was left by a
                # killed git.
                (self._git.isolated_directory.path / "HEAD.lock").unlink(missing_ok=True)
                yield self._checkouts.settle_interrupted_moves()
        except OSError as error:
            raise WorkspaceError(f"delivery failed: {error}; fix this and try again") from error

    def deliver_branch(self, run: str, commit: str) -> Delivery:
        """Makes `steersman/<run>` point to `commit`, or moves it there from an earlier delivery of the run."""
        ref = f"refs/heads/steersman/{run}"
        tip = self._git.resolve(ref)
        if tip is None or not self._git.contains(tip, commit):
            self._check_ours(run, ref, tip)
            self._checkouts.forward(run, ref, tip or "", commit)
        return self._delivery("branch", ref, commit)

    def merge_into_target(self, run: str, commit: str, target: str, base: str) -> Delivery:
        """Moves `target` from `base`, where the change was checked, to `commit`; from nowhere else."""
        ref = f"refs/heads/{target}"
        tip = self.tip(target)
        if not self._git.contains(tip, commit):
            if tip != base:
                raise BranchMovedError(
                    f"{target} has moved from {base} to {tip}: run {run} was verified on what it was; "
                    "verify the change on the new base and deliver that"
                )
            self._checkouts.forward(run, ref, tip, commit)
        return self._delivery("merge", ref, commit)

    def tip(self, target: str) -> str:
        """Where a branch is that has to be there."""
        ref = f"refs/heads/{target}"
        tip = self._git.resolve(ref) if self._git.call("check-ref-format", ref).code == 0 else None
        if tip is None:
            raise WorkspaceError(f"there is no branch {target!r} here; create it or name another one")
        return tip

    def store(self, run: str, tree: str, parent: str, message: str, at: int) -> str:
        """Stores the commit of a delivery under a reference of the run; asking again gives the same commit."""
        key = sha256("\0".join((tree, parent, message, str(at))).encode()).hexdigest()[:16]
        ref = f"refs/steersman/{run}/delivery-{key}"
        # A lock file still there was left by a killed git.
        (self._git.require_repository.common / f"{ref}.lock").unlink(missing_ok=True)
        existing = self._git.resolve(ref)
        if existing is not None and is_commit_complete(self._git, existing, parent):
            return existing
        identity = read_git_identity(self._git.place)
        return store_commit_despite_gc(
            self._git,
            ref,
            parent,
            lambda: self._git.commit(tree, (parent,), message, at=at, committer=identity),
        )

    def forward(self, run: str, target: str, old: str, new: str) -> None:
        """Moves a branch from `old` to `new`, with the checkout that the person has of it, if there is one."""
        self._checkouts.forward(run, f"refs/heads/{target}", old, new)

    def is_ours(self, run: str, commit: str) -> bool:
        """Whether a commit is one that this run has delivered."""
        return bool(self._git.line("for-each-ref", f"--points-at={commit}", f"refs/steersman/{run}/"))

    def merged_trees(self, base: str, ours: str, theirs: str) -> tuple[str | None, list[str], str]:
        """The same for three commits of any history: their trees are merged, in a history made for that alone."""
        base_commit = self._git.commit(self._git.tree_of(base), (), "base")
        sides = [self._git.commit(self._git.tree_of(side), (base_commit,), "side") for side in (ours, theirs)]
        return self.merged_tree(*sides)

    def merged_tree(self, ours: str, theirs: str) -> tuple[str | None, list[str], str]:
        """The tree of a merge, or None with the files that conflict; or with what git said."""
        with tempfile.TemporaryDirectory(dir=self._git.folder, prefix=".merge-") as name:
            directory = Path(name)
            env = {"GIT_WORK_TREE": name, "GIT_INDEX_FILE": f"{name}/.index"}
            self._lay_out_attributes(ours, directory, env)
            flags = ("--write-tree", "-z", "--name-only", "--no-messages")
            answer = self._git.call("merge-tree", *flags, ours, theirs, cwd=directory, env=env)
        tree, *names = [decode_git_path(part) for part in answer.out.split(b"\0")[:-1]] or [""]
        if answer.code == 0:
            return tree, [], ""
        return None, sorted(names) if answer.code == 1 else [], answer.err.strip()[:500]

    def _lay_out_attributes(self, commit: str, directory: Path, env: dict[str, str]) -> None:
        """git finds in files alone which merge a path asks for: a union, none at all, or a program that is not run."""
        self._git.read("read-tree", commit, cwd=directory, env=env)
        names = self._git.read("ls-files", "-z", cwd=directory, env=env).split(b"\0")
        attribute_files = [name for name in names if name.rpartition(b"/")[2] == b".gitattributes"]
        feed = b"".join(name + b"\0" for name in attribute_files)
        self._git.read("checkout-index", "--quiet", "-z", "--stdin", cwd=directory, env=env, feed=feed)

    def _delivery(self, form: str, ref: str, commit: str) -> Delivery:
        return Delivery(form, ref, commit, self._git.tree_of(commit))

    def _check_ours(self, run: str, ref: str, tip: str | None) -> None:
        name = ref.removeprefix("refs/heads/")
        if tip is not None and not self.is_ours(run, tip):
            raise WorkspaceError(
                f"the branch {name} has commits that are not of this run; rename it with "
                f"`git branch -m {name} <new name>` and deliver again"
            )
        if (checkout_path := self._checkouts.find_checkouts(ref)) is not None:
            raise WorkspaceError(
                f"the branch {name} is checked out in {checkout_path}; switch to another one and deliver again"
            )


@contextmanager
def hold_delivery_lock(common: Path) -> Iterator[None]:
    """Waits for its turn; WorkspaceError where another delivery does not end."""
    try:
        fd = os.open(common / DELIVERY_LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise WorkspaceError(
            f"{common / DELIVERY_LOCK_NAME} cannot be opened: {error}; put that right and try again"
        ) from error
    try:
        _wait_for_delivery_lock(fd, common)
        token = inherited_git_fds.set((*inherited_git_fds.get(), fd))
        try:
            yield
        finally:
            inherited_git_fds.reset(token)
    finally:
        os.close(fd)


def _wait_for_delivery_lock(fd: int, common: Path) -> None:
    deadline = time.monotonic() + DELIVERY_LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WorkspaceError(
                    f"another delivery into {common} has been at work for {DELIVERY_LOCK_SECONDS:.0f} s; try again when it has ended"
                ) from None
        time.sleep(0.05)


def read_git_identity(directory: Path) -> tuple[str, str]:
    """The person's `user.name` and `user.email` in the repository around `directory`; ours where either is not set.

    Only these two are read, by `git config`, which runs nothing and here traces nothing.
    """
    name, email = (_read_user_setting(directory, key) for key in ("user.name", "user.email"))
    return (name, email) if name and email else (COMMITTER_NAME, COMMITTER_EMAIL)


def _read_user_setting(directory: Path, key: str) -> str:
    home = {n: os.environ[n] for n in ("HOME", "XDG_CONFIG_HOME") if n in os.environ}
    args = ("config", "--get", key)
    with start_git(
        args,
        directory,
        {"LC_ALL": "C", **_UNTRACED_ENVIRONMENT, **home},
        subprocess.DEVNULL,
        subprocess.DEVNULL,
    ) as process:
        out, _ = process.communicate(timeout=_IDENTITY_SECONDS)
    # git refuses a commit with these characters in it, and so would we.
    return "".join(char for char in out.decode("utf-8", "replace").strip() if char not in "<>\n\0")


# ── commit texts ────────────────────────────────────────────────────────────────────────────────────────────────────────

# What the files of a commit say: names, and texts of bounded size, from git's objects alone.
#
# Content is written by strangers: sizes are asked for before anything is read, and what is too long is not read at all.
# **Invariant:** no working tree is looked at, no link followed, no filter or conversion of the repository applied.


_MAX_CACHED_LISTINGS = 2  # listings: those of a base and of a change
_PLAIN_FILE_MODE = "100"


class CommitTexts:
    """The files of one repository's commits."""

    def __init__(self, git: GitRepository) -> None:
        self._git = git
        self._listed: dict[str, dict[str, str]] = {}

    def paths(self, commit: str) -> tuple[str, ...]:
        """The plain files of a commit, sorted."""
        return tuple(sorted(self._listing(commit)))

    def read(self, commit: str, names: Sequence[str], each: int, total: int) -> tuple[FileText, ...]:
        """Those of these names that are plain files; one above a bound comes without its content."""
        blobs = self._listing(commit)
        requested = {name: blobs[name] for name in names if name in blobs}
        sizes = self._sizes(list(dict.fromkeys(requested.values())))
        remaining, selected = total, set()
        for blob, size in sizes.items():
            if size <= min(each, remaining):
                selected.add(blob)
                remaining -= size
        blob_contents = self._git.read_blobs(blob for blob in sizes if blob in selected)
        contents = {blob: content.decode("utf-8", "replace") for blob, content in blob_contents.items()}
        return tuple(
            FileText(name, contents.get(blob, ""), blob in selected) for name, blob in requested.items()
        )

    def _listing(self, commit: str) -> dict[str, str]:
        tree = self._git.tree_of(commit)
        listing = self._listed.get(tree)  # threads share this cache, and each may clear it
        if listing is None:
            if len(self._listed) >= _MAX_CACHED_LISTINGS:
                self._listed.clear()
            listing = self._listed[tree] = {
                decode_git_path(entry.path): entry.object_id
                for entry in self._git.list_tree(tree, recursive=True)
                if entry.mode.startswith(_PLAIN_FILE_MODE)
            }
        return listing

    def _sizes(self, blobs: list[str]) -> dict[str, int]:
        feed = "".join(f"{blob}\n" for blob in blobs).encode()
        format_flag = "--batch-check=%(objectname) %(objectsize)"
        lines = self._git.read("cat-file", format_flag, feed=feed).decode().split("\n")[:-1] if blobs else []
        return {blob: int(size) for blob, _, size in (line.partition(" ") for line in lines)}
