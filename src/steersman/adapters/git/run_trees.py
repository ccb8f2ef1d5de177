"""The private working trees of runs: made, handed out again, read as a tree hash, removed.

A tree `<root>/<run>/<n>` has three companions beside it: `<n>.json` (whose it is), `<n>.index` (git's index as it was
when the tree was handed out, out of the agent's reach) and `<n>.git`, a repository of its own.
**Invariant:** an attempt never starts on half-edited files; checks never start in a tree that an agent has worked in.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from steersman.adapters.checks.setup_layers import read_attached_setup
from steersman.adapters.checks.tree_places import find_tree_place
from steersman.adapters.git.include_files import copy_included_files, read_include_patterns
from steersman.adapters.git.repository import GitRepository
from steersman.adapters.git.tree_hash import TreeScan, WorkingTreeScanner
from steersman.adapters.git.worktree_repo import make_worktree_repo, remove_worktree_repo
from steersman.adapters.process.program_runner import alive
from steersman.adapters.storage.remove_directory import delete_path
from steersman.contracts.workspace import Checkout
from steersman.errors import WorkspaceError


class TreeRecord(msgspec.Struct, frozen=True):
    """What is remembered of a tree."""

    commit: str  # what it was handed out at
    maker: str  # the effect it was made for
    owner: str  # the effect it was handed to last
    included: tuple[str, ...] = ()  # copied in by us: not part of the tree
    holder: int = 0  # the process it was handed to last
    untouched: bool = False  # for the effect it was made for and no other


class RunWorkingTrees:
    """All private trees of one repository."""

    def __init__(self, git: GitRepository, root: Path, include: tuple[str, ...]) -> None:
        self._git = git
        self.root = root.resolve()
        self._include = include

    def checkout(self, run: str, commit: str, effect: str, *, untouched: bool = False) -> Checkout:
        """Hands out a kept tree that still is `commit`, or makes one and removes unused ones of its kind."""
        wanted_tree = self._git.tree_of(commit)
        with self._lock_run(run), tempfile.TemporaryDirectory(dir=self.root, prefix=".index-") as directory:
            free_trees = [
                path
                for path in self._list_tree_paths(run)
                if self._is_free(path, effect, untouched=untouched)
            ]
            for path in free_trees:
                index = Path(directory, path.name)
                if self._can_serve(path, effect) and self._holds_tree(path, wanted_tree, index):
                    return self._handed_out(
                        path, Checkout(str(path), commit, wanted_tree, fresh=False), effect, index
                    )
            new_tree = self._make_tree(run, commit, wanted_tree, effect, untouched=untouched)
            for path in free_trees:
                self._remove_tree(path)
            return Checkout(str(new_tree), commit, wanted_tree, fresh=True)

    def tree(self, path: Path) -> str:
        """The tree hash of the files in `path`: tracked and untracked, without ignored and included ones."""
        with tempfile.TemporaryDirectory(dir=self.root, prefix=".index-") as directory:
            return self._scan_tree(path, Path(directory, "index")).tree

    def is_tree_of_run(self, run: str, path: Path) -> bool:
        """Is this a tree of the run?"""
        return (
            path.parent == self.root / run and path.name.isdecimal() and self._read_record(path) is not None
        )

    def remove(self, run: str) -> None:
        """Removes every tree of a run."""
        if not (self.root / run).is_dir():
            return
        with self._lock_run(run):
            for path in self._list_tree_paths(run):
                self._remove_tree(path)
            delete_path(self.root / run)

    def _scan_tree(self, path: Path, index: Path) -> TreeScan:
        record = self._read_record(path)
        if record is None:
            raise WorkspaceError(f"{path} is no working tree any more; check one out first")
        return WorkingTreeScanner(self._git, path, index, (*record.included, *_list_setup_paths(path))).scan(
            record.commit, _tree_index_path(path)
        )

    def _holds_tree(self, path: Path, wanted_tree: str, index: Path) -> bool:
        """Does the tree at `path` hold exactly `wanted`?"""
        try:
            scan = self._scan_tree(path, index)
        except WorkspaceError:  # what cannot be recorded is not what is wanted
            return False
        return scan.tree == wanted_tree and not scan.special

    def _is_free(self, path: Path, effect: str, *, untouched: bool) -> bool:
        record = self._read_record(path)
        return record is None or (
            record.untouched == untouched and not _is_tree_held_elsewhere(record, effect)
        )

    def _can_serve(self, path: Path, effect: str) -> bool:
        record = self._read_record(path)
        return record is not None and (not record.untouched or record.maker == effect)

    def _make_tree(self, run: str, commit: str, wanted_tree: str, effect: str, *, untouched: bool) -> Path:
        path = self._new_place(run)
        try:
            index = _tree_index_path(path)
            env = {"GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(index)}
            self._git.read("read-tree", commit, cwd=path, env=env)
            self._git.read("checkout-index", "--all", "--force", "--index", "--quiet", cwd=path, env=env)
            top = self._git.require_repository.top
            included = copy_included_files(top, path, (*self._include, *read_include_patterns(top)))
            record = TreeRecord(commit, effect, effect, included, os.getpid(), untouched)
            make_worktree_repo(self._git, path, commit, index)
            _write_tree_record(_tree_record_path(path), msgspec.json.encode(record))
            self._check_faithful(path, wanted_tree)
        except BaseException:
            self._remove_tree(path)
            raise
        return path

    def _check_faithful(self, path: Path, wanted_tree: str) -> None:
        """Refuses a disk that does not tell two names apart, and a conversion that does not lead back."""
        if self.tree(path) != wanted_tree:
            raise WorkspaceError(
                "the files of this commit cannot be written to this disk as they are recorded (names that differ only "
                "in case, or an encoding that cannot be written): correct that in the repository first"
            )

    def _handed_out(self, path: Path, checkout: Checkout, effect: str, index: Path) -> Checkout:
        record = msgspec.json.decode(_tree_record_path(path).read_bytes(), type=TreeRecord)
        shutil.copy2(index, _tree_index_path(path))
        make_worktree_repo(self._git, path, checkout.commit, index)
        new_record = msgspec.structs.replace(record, commit=checkout.commit, owner=effect, holder=os.getpid())
        _write_tree_record(_tree_record_path(path), msgspec.json.encode(new_record))
        # The effect it was made for sets it up; a later one finds it set up.
        return msgspec.structs.replace(checkout, fresh=record.maker == effect)

    def _new_place(self, run: str) -> Path:
        run_dir = self.root / run
        number = max((int(path.name) for path in self._list_tree_paths(run)), default=0) + 1
        run_dir.mkdir(parents=True, exist_ok=True)
        (run_dir / str(number)).mkdir()
        return run_dir / str(number)

    def _list_tree_paths(self, run: str) -> list[Path]:
        """Every place a tree of this run has or had, also one whose directory was deleted."""
        run_dir = self.root / run
        numbers = {entry.name.partition(".")[0] for entry in run_dir.iterdir()} if run_dir.is_dir() else set()
        return [run_dir / number for number in sorted(filter(str.isdecimal, numbers), key=int)]

    def _read_record(self, path: Path) -> TreeRecord | None:
        """What is remembered of a tree that is there; None for a half-made or vanished one."""
        try:
            record = msgspec.json.decode(_tree_record_path(path).read_bytes(), type=TreeRecord)
        except (OSError, msgspec.DecodeError):
            return None
        return record if path.is_dir() and not path.is_symlink() else None

    def _remove_tree(self, path: Path) -> None:
        remove_worktree_repo(path)
        companions = path.parent.glob(f"{path.name}.*") if path.parent.is_dir() else ()
        for companion in (path, *companions):  # its index, its note, what was set up for it
            delete_path(companion)

    @contextlib.contextmanager
    def _lock_run(self, run: str) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / f".{run}.lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _is_tree_held_elsewhere(record: TreeRecord, effect: str) -> bool:
    """Whether another works there: an effect planned together with this one, one whose processes are alive, or another
    living process, such as an owner that was stopped and taken over?"""
    if record.holder not in (0, os.getpid()) and _is_holder_alive(record.holder):
        return True
    if record.owner == effect or not record.owner.strip(":"):
        return False
    plan_id = effect.rpartition(":")[0]
    return (plan_id != "" and record.owner.rpartition(":")[0] == plan_id) or bool(alive(record.owner))


def _is_holder_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _list_setup_paths(path: Path) -> tuple[str, ...]:
    """What setup has created for a tree: no part of it."""
    tree_place = find_tree_place(path)
    return read_attached_setup(tree_place).created if tree_place is not None else ()


def _tree_index_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def _tree_record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _write_tree_record(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_bytes(content)
    temporary.replace(path)
