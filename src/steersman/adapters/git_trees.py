"""The private working trees of runs: made, handed out again, read as a tree hash, removed.

A tree `<root>/<run>/<n>` has two companions beside it: `<n>.json` (whose it is) and `<n>.index` (git's index as it
was when the tree was handed out, out of the reach of whoever works inside).
**Invariant:** what is in a tree is read from its files, never from what its own `.git` claims.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from steersman.adapters.git_cli import Git
from steersman.adapters.include import copy_included
from steersman.adapters.processes import alive
from steersman.contracts.workspace import Checkout
from steersman.errors import WorkspaceError


class Kept(msgspec.Struct, frozen=True):
    """What is remembered of a tree."""

    commit: str  # what it was handed out at
    admin: str  # git's own directory for it
    maker: str  # the effect it was made for
    owner: str  # the effect it was handed to last
    included: tuple[str, ...] = ()  # copied in by us: not part of the tree
    holder: int = 0  # the process it was handed to last


class Trees:
    """All private trees of one repository."""

    def __init__(self, git: Git, root: Path, include: tuple[str, ...]) -> None:
        self._git = git
        self.root = root.resolve()
        self._include = include

    def checkout(self, run: str, commit: str, effect: str) -> Checkout:
        """Hands out a kept tree that still is `commit`, or makes one and removes those that nobody uses."""
        wanted = self._git.tree_of(commit)
        with self._locked(run), tempfile.TemporaryDirectory(dir=self.root, prefix=".index-") as folder:
            free = [path for path in self._paths(run) if not self._in_use(path, effect)]
            for path in free:
                index = Path(folder, path.name)
                if self._is(path, wanted, index):
                    return self._handed_out(
                        path, Checkout(str(path), commit, wanted, fresh=False), effect, index
                    )
            made = self._made(run, commit, effect)
            for path in free:
                self._remove(path)
            return Checkout(str(made), commit, wanted, fresh=True)

    def tree(self, path: Path) -> str:
        """The tree hash of the files in `path`: tracked and untracked, without ignored and included ones."""
        with tempfile.TemporaryDirectory(dir=self.root, prefix=".index-") as folder:
            return self._scan(path, Path(folder, "index"))

    def remove(self, run: str) -> None:
        """Removes every tree of a run and what git knows of them."""
        if not (self.root / run).is_dir():
            return
        with self._locked(run):
            for path in self._paths(run):
                self._remove(path)
            _delete(self.root / run)

    def holds(self, run: str, path: Path) -> bool:
        """Is this path the place of a tree of this run?"""
        return path.parent == self.root / run and path.name.isdecimal()

    def _scan(self, path: Path, index: Path) -> str:
        """Writes an index of what is in `path` now; it starts from the one of the hand-out and saves the hashing."""
        kept = self._kept(path)
        if kept is None:
            raise WorkspaceError(f"there is no working tree at {path}; check one out first")
        env = {"GIT_DIR": str(self._git.common), "GIT_WORK_TREE": str(path), "GIT_INDEX_FILE": str(index)}
        if _index(path).exists():
            shutil.copy2(
                _index(path), index
            )  # with its date: git looks twice at files as young as their index
        else:
            self._git.read("read-tree", kept.commit, env=env)
        self._git.read("add", "-u", cwd=path, env=env)
        names = self._untracked(path, kept, env)
        self._update(path, env, names, "--add", "--remove", "--replace", "--stdin")
        self._update(path, env, self._only_converted(path, kept, env), "--index-info")
        return self._git.line("write-tree", env=env)

    def _update(self, path: Path, env: dict[str, str], feed: bytes, *flags: str) -> None:
        if feed:
            self._git.read("update-index", "-z", *flags, cwd=path, env=env, feed=feed)

    def _only_converted(self, path: Path, kept: Kept, env: dict[str, str]) -> bytes:
        """The old entries of files that only git's own conversion of line endings made look changed."""
        raw = self._git.read(
            "diff-index", "--cached", "--raw", "-z", "--no-renames", kept.commit, env=env
        ).split(b"\0")
        entries = []
        for fields, name in zip(raw[::2], raw[1::2], strict=False):
            mode, new_mode, blob, _, _ = fields.removeprefix(b":").split(b" ")
            if mode == new_mode and mode.startswith(b"100") and _blob(path, name, len(blob)) == blob:
                entries.append(b"%s %s\t%s\0" % (mode, blob, name))
        return b"".join(entries)

    def _untracked(self, path: Path, kept: Kept, env: dict[str, str]) -> bytes:
        listed = self._git.read("ls-files", "--others", "--exclude-standard", "-z", cwd=path, env=env)
        names = [name for name in listed.split(b"\0") if name and os.fsdecode(name) not in kept.included]
        nested = [os.fsdecode(name) for name in names if name.endswith(b"/")]
        if nested:
            raise WorkspaceError(
                f"a repository inside the tree cannot be recorded: {nested[0]}; remove its .git"
            )
        return b"".join(name + b"\0" for name in names)

    def _is(self, path: Path, wanted: str, index: Path) -> bool:
        """Does the tree at `path` stand where we left it and hold exactly `wanted`?"""
        kept = self._kept(path)
        if kept is None or not _points_to(path, kept.admin) or not os.path.isdir(kept.admin):
            return False
        try:
            return self._scan(path, index) == wanted
        except WorkspaceError:  # what cannot be recorded is not what is wanted
            return False

    def _in_use(self, path: Path, effect: str) -> bool:
        """Works somebody else there: an effect planned together with this one, one whose processes are alive, or
        another living process, such as an owner that was stopped and taken over?"""
        kept = self._kept(path)
        if kept is not None and kept.holder not in (0, os.getpid()) and _lives(kept.holder):
            return True
        if kept is None or kept.owner == effect or not kept.owner.strip(":"):
            return False
        planned = effect.rpartition(":")[0]
        return (planned != "" and kept.owner.rpartition(":")[0] == planned) or bool(alive(kept.owner))

    def _made(self, run: str, commit: str, effect: str) -> Path:
        path = self._new_place(run)
        try:
            # Forced, twice: git may still know a tree of this name, locked or not, that somebody deleted by hand.
            self._git.read("worktree", "add", "--quiet", "--force", "--force", "--detach", str(path), commit)
            top = Path(self._git.line("rev-parse", "--show-toplevel"))
            included = copy_included(top, path, self._include)
            admin = (path / ".git").read_text().removeprefix("gitdir: ").removesuffix("\n")
            self._settle(
                path, Kept(commit, admin, effect, effect, included, os.getpid()), Path(admin, "index")
            )
        except BaseException:
            self._remove(path)
            raise
        return path

    def _handed_out(self, path: Path, checkout: Checkout, effect: str, index: Path) -> Checkout:
        kept = msgspec.json.decode(_note(path).read_bytes(), type=Kept)
        self._settle(
            path,
            msgspec.structs.replace(kept, commit=checkout.commit, owner=effect, holder=os.getpid()),
            index,
        )
        # The one it was made for has to set it up; whoever comes later finds it set up.
        return msgspec.structs.replace(checkout, fresh=kept.maker == effect)

    def _settle(self, path: Path, kept: Kept, index: Path) -> None:
        """Makes git's own view of the tree say `commit` as well, and remembers it."""
        env = {"GIT_DIR": kept.admin, "GIT_WORK_TREE": str(path)}
        self._git.read("update-ref", "--no-deref", "HEAD", kept.commit, cwd=path, env=env)
        Path(kept.admin, "index.lock").unlink(missing_ok=True)  # of a git that was stopped inside
        for goal in {Path(kept.admin, "index"), _index(path)} - {index}:
            shutil.copy2(index, goal)
        _write(_note(path), msgspec.json.encode(kept))

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
        _delete(path)
        # The files first: git refuses to remove a tree whose .git was tampered with, but not one that is gone.
        self._git.call("worktree", "remove", "--force", "--force", str(path))
        for companion in (_index(path), _note(path)):
            companion.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self, run: str) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / f".{run}.lock", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _index(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _points_to(path: Path, admin: str) -> bool:
    try:
        return not (path / ".git").is_symlink() and (path / ".git").read_text() == f"gitdir: {admin}\n"
    except (OSError, UnicodeDecodeError):
        return False


def _blob(path: Path, name: bytes, digits: int) -> bytes:
    """The hash of a file's own bytes, as git stores them without any conversion."""
    with open(os.path.join(os.fsencode(path), name), "rb") as file:
        content = file.read()
    kind = "sha1" if digits == 40 else "sha256"
    return (
        hashlib.new(kind, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest().encode()
    )


def _write(path: Path, content: bytes) -> None:
    young = path.with_name(f"{path.name}.new")
    young.write_bytes(content)
    young.replace(path)


def _delete(path: Path) -> None:
    """Removes a directory with everything in it, write-protected or not; links are removed, not followed."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        try:
            shutil.rmtree(path)
        except PermissionError:
            _open_up(path)
            shutil.rmtree(path)


def _open_up(directory: Path) -> None:
    os.chmod(directory, stat.S_IRWXU)
    for entry in os.scandir(directory):
        if entry.is_dir(follow_symlinks=False):
            _open_up(Path(entry))
