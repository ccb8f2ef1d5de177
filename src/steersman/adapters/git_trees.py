"""The private working trees of runs: made, handed out again, read as a tree hash, removed.

A tree `<root>/<run>/<n>` has three companions beside it: `<n>.json` (whose it is), `<n>.index` (git's index as it was
when the tree was handed out, out of the reach of whoever works inside) and `<n>.git`, a repository of its own.
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

from steersman.adapters.git_berth import make_berth, remove_berth
from steersman.adapters.git_repository import Git
from steersman.adapters.git_scan import Scan, Scanner
from steersman.adapters.include import copy_included, listed_patterns
from steersman.adapters.processes import alive
from steersman.adapters.removal import delete
from steersman.adapters.setup_layers import read_attached
from steersman.adapters.tree_places import find_tree_place
from steersman.contracts.workspace import Checkout
from steersman.errors import WorkspaceError


class Kept(msgspec.Struct, frozen=True):
    """What is remembered of a tree."""

    commit: str  # what it was handed out at
    maker: str  # the effect it was made for
    owner: str  # the effect it was handed to last
    included: tuple[str, ...] = ()  # copied in by us: not part of the tree
    holder: int = 0  # the process it was handed to last
    untouched: bool = False  # for the effect it was made for and no other


class Trees:
    """All private trees of one repository."""

    def __init__(self, git: Git, root: Path, include: tuple[str, ...]) -> None:
        self._git = git
        self.root = root.resolve()
        self._include = include

    def checkout(self, run: str, commit: str, effect: str, *, untouched: bool = False) -> Checkout:
        """Hands out a kept tree that still is `commit`, or makes one and removes those of its kind that nobody uses."""
        wanted = self._git.tree_of(commit)
        with self._locked(run), tempfile.TemporaryDirectory(dir=self.root, prefix=".index-") as folder:
            free = [path for path in self._paths(run) if self._is_free(path, effect, untouched=untouched)]
            for path in free:
                index = Path(folder, path.name)
                if self._serves(path, effect) and self._is(path, wanted, index):
                    return self._handed_out(
                        path, Checkout(str(path), commit, wanted, fresh=False), effect, index
                    )
            made = self._made(run, commit, wanted, effect, untouched=untouched)
            for path in free:
                self._remove(path)
            return Checkout(str(made), commit, wanted, fresh=True)

    def tree(self, path: Path) -> str:
        """The tree hash of the files in `path`: tracked and untracked, without ignored and included ones."""
        with tempfile.TemporaryDirectory(dir=self.root, prefix=".index-") as folder:
            return self._scan(path, Path(folder, "index")).tree

    def holds(self, run: str, path: Path) -> bool:
        """Is this a tree of the run?"""
        return path.parent == self.root / run and path.name.isdecimal() and self._kept(path) is not None

    def remove(self, run: str) -> None:
        """Removes every tree of a run."""
        if not (self.root / run).is_dir():
            return
        with self._locked(run):
            for path in self._paths(run):
                self._remove(path)
            delete(self.root / run)

    def _scan(self, path: Path, index: Path) -> Scan:
        kept = self._kept(path)
        if kept is None:
            raise WorkspaceError(f"{path} is no working tree any more; check one out first")
        return Scanner(self._git, path, index, (*kept.included, *_set_up(path))).scan(
            kept.commit, _index(path)
        )

    def _is(self, path: Path, wanted: str, index: Path) -> bool:
        """Does the tree at `path` hold exactly `wanted`?"""
        try:
            scan = self._scan(path, index)
        except WorkspaceError:  # what cannot be recorded is not what is wanted
            return False
        return scan.tree == wanted and not scan.special

    def _is_free(self, path: Path, effect: str, *, untouched: bool) -> bool:
        kept = self._kept(path)
        return kept is None or (kept.untouched == untouched and not _in_use(kept, effect))

    def _serves(self, path: Path, effect: str) -> bool:
        kept = self._kept(path)
        return kept is not None and (not kept.untouched or kept.maker == effect)

    def _made(self, run: str, commit: str, wanted: str, effect: str, *, untouched: bool) -> Path:
        path = self._new_place(run)
        try:
            index = _index(path)
            env = {"GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(index)}
            self._git.read("read-tree", commit, cwd=path, env=env)
            self._git.read("checkout-index", "--all", "--force", "--index", "--quiet", cwd=path, env=env)
            top = self._git.found.top
            included = copy_included(top, path, (*self._include, *listed_patterns(top)))
            kept = Kept(commit, effect, effect, included, os.getpid(), untouched)
            make_berth(self._git, path, commit, index)
            _write(_note(path), msgspec.json.encode(kept))
            self._check_faithful(path, wanted)
        except BaseException:
            self._remove(path)
            raise
        return path

    def _check_faithful(self, path: Path, wanted: str) -> None:
        """A disk that does not tell two names apart, or a conversion that does not lead back, is told at once."""
        if self.tree(path) != wanted:
            raise WorkspaceError(
                "the files of this commit cannot be laid out on this disk as they are recorded (names that differ only "
                "in case, or an encoding that cannot be written): mend that in the repository first"
            )

    def _handed_out(self, path: Path, checkout: Checkout, effect: str, index: Path) -> Checkout:
        kept = msgspec.json.decode(_note(path).read_bytes(), type=Kept)
        shutil.copy2(index, _index(path))
        make_berth(self._git, path, checkout.commit, index)
        now = msgspec.structs.replace(kept, commit=checkout.commit, owner=effect, holder=os.getpid())
        _write(_note(path), msgspec.json.encode(now))
        # The one it was made for has to set it up; whoever comes later finds it set up.
        return msgspec.structs.replace(checkout, fresh=kept.maker == effect)

    def _new_place(self, run: str) -> Path:
        folder = self.root / run
        number = max((int(path.name) for path in self._paths(run)), default=0) + 1
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).mkdir()
        return folder / str(number)

    def _paths(self, run: str) -> list[Path]:
        """Every place a tree of this run has or had, also one whose directory somebody deleted."""
        folder = self.root / run
        numbers = {entry.name.partition(".")[0] for entry in folder.iterdir()} if folder.is_dir() else set()
        return [folder / number for number in sorted(filter(str.isdecimal, numbers), key=int)]

    def _kept(self, path: Path) -> Kept | None:
        """What is remembered of a tree that is there; None for a half-made or vanished one."""
        try:
            kept = msgspec.json.decode(_note(path).read_bytes(), type=Kept)
        except (OSError, msgspec.DecodeError):
            return None
        return kept if path.is_dir() and not path.is_symlink() else None

    def _remove(self, path: Path) -> None:
        remove_berth(path)
        beside = path.parent.glob(f"{path.name}.*") if path.parent.is_dir() else ()
        for companion in (path, *beside):  # its index, its note, what was set up for it
            delete(companion)

    @contextlib.contextmanager
    def _locked(self, run: str) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / f".{run}.lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _in_use(kept: Kept, effect: str) -> bool:
    """Works somebody else there: an effect planned together with this one, one whose processes are alive, or another
    living process, such as an owner that was stopped and taken over?"""
    if kept.holder not in (0, os.getpid()) and _lives(kept.holder):
        return True
    if kept.owner == effect or not kept.owner.strip(":"):
        return False
    planned = effect.rpartition(":")[0]
    return (planned != "" and kept.owner.rpartition(":")[0] == planned) or bool(alive(kept.owner))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _set_up(path: Path) -> tuple[str, ...]:
    """What setup has created for a tree: no part of it."""
    place = find_tree_place(path)
    return read_attached(place).created if place is not None else ()


def _index(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _write(path: Path, content: bytes) -> None:
    young = path.with_name(f"{path.name}.new")
    young.write_bytes(content)
    young.replace(path)
