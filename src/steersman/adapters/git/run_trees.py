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
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from steersman.adapters.checks.setup_layers import find_tree_place, read_attached_setup
from steersman.adapters.git.git_command import decode_git_path
from steersman.adapters.git.repository import GitRepository, make_worktree_repo, remove_worktree_repo
from steersman.adapters.git.tree_hash import TreeScan, WorkingTreeScanner
from steersman.adapters.process.program_runner import alive
from steersman.adapters.storage.durable_files import delete_path, open_directory_below, read_file_below
from steersman.contracts.workspace import Checkout
from steersman.errors import UserError, WorkspaceError

# ── include files ───────────────────────────────────────────────────────────────────────────────────────────────────────

# Copies files that git does not keep (`.env.test`, local settings) from the user's checkout into a working tree.
#
# Which ones, `[worktree] include` of steersman.toml and `.worktreeinclude` of that checkout say.
# **Invariant:** nothing is read from outside the checkout or written outside the tree, whatever links say; a file that
# is already there is never replaced; `.git` is never touched.


INCLUDE_FILE_NAME = ".worktreeinclude"
_MAX_INCLUDE_BYTES = 64 << 10


def check_include_patterns(patterns: tuple[str, ...], source: str = "[worktree] include") -> tuple[str, ...]:
    """The patterns, if each is a relative glob that stays inside the repository."""
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if not parts or pattern.startswith("/") or ".." in parts or "\0" in pattern:
            raise UserError(f"{source}: {pattern!r} has to be a relative path or glob inside the repository")
    return patterns


def read_include_patterns(top: Path) -> tuple[str, ...]:
    """The patterns of a checkout's own list: one a line, `#` begins a comment, a leading slash means the top."""
    try:
        fd = os.open(top / INCLUDE_FILE_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ()
    with open(fd, "rb") as file:
        data = file.read(_MAX_INCLUDE_BYTES) if os.path.isfile(fd) else b""
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    patterns = tuple(line.removeprefix("/") for line in lines if line and not line.startswith("#"))
    if negated := next((line for line in patterns if line.startswith("!")), None):
        raise UserError(
            f"{INCLUDE_FILE_NAME}: {negated!r} takes something out again, which is not done here: take the line out"
        )
    return check_include_patterns(patterns, INCLUDE_FILE_NAME)


def copy_included_files(top: Path, tree: Path, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Copies what matches and is not there yet; returns the copied paths, sorted."""
    top, tree = top.resolve(), tree.resolve()
    paths = {
        path for pattern in patterns for match in top.glob(pattern) for path in _expand_include_match(match)
    }
    names = sorted(path.relative_to(top).as_posix() for path in paths)
    return tuple(name for name in names if _copy_included_file(top, tree, name))


def _expand_include_match(match: Path) -> Iterator[Path]:
    """The match itself, or everything below it when it is a directory."""
    if not match.is_dir() or match.is_symlink():
        yield match
        return
    for directory, _, names in os.walk(match, followlinks=False):
        yield from (Path(directory, name) for name in names)


def _copy_included_file(top: Path, tree: Path, name: str) -> bool:
    source, target = (top / name).resolve(), tree / name
    inside = source.is_relative_to(top) and source.is_file() and ".git" not in source.relative_to(top).parts
    # A directory of the tree may be a link that leads out of it.
    if not inside or os.path.lexists(target) or not target.parent.resolve().is_relative_to(tree):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
    return True


# ── run trees ────────────────────────────────────────────────────────────────────────────────


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
        """Returns a kept tree that still is `commit`, or makes one and removes unused ones of its kind."""
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


# ── worktree files ──────────────────────────────────────────────────────────────────────────────────────────────────────

# Single files of a working tree, put as a commit has them.
#
# **Invariant:** never outside the tree and never through a link: every part of a path is opened by itself, without
# following; no filter of the repository is asked.


_CREATE_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_MODE, _EXECUTABLE_MODE = "120000", "100755"
MAX_CHECKED_OUT_BYTES = 4 << 20  # bytes of a file of the person's checkout

BlobEntry = tuple[str, bytes]  # mode, content


def restore_tree_files(
    git: GitRepository, tree: Path, commit: str, names: Sequence[str], *, links: bool
) -> None:
    """Makes these names what they are in `commit`; a link only where `links` says so."""
    for name in names:
        entry = _read_blob_entries(git, commit, (name,)).get(name)
        wanted_entry = entry if entry is not None and (links or entry[0] != _LINK_MODE) else None
        try:
            _restore_tree_file(tree, name, wanted_entry)
        except OSError as error:
            raise WorkspaceError(f"{name} cannot be put as it was: {error.strerror}") from error


def list_commit_links(git: GitRepository, commit: str) -> tuple[str, ...]:
    """The symbolic links of a commit, sorted."""
    return tuple(sorted(os.fsdecode(name) for name in _list_link_blobs(git, commit)))


def read_link_targets(git: GitRepository, commit: str) -> dict[str, str]:
    """The symbolic links of a commit with what each leads to."""
    blobs = _list_link_blobs(git, commit)
    targets = git.read_blobs(blobs.values())
    return {decode_git_path(name): decode_git_path(targets[blob]) for name, blob in blobs.items()}


def _list_link_blobs(git: GitRepository, commit: str) -> dict[bytes, str]:
    entries = git.list_tree(commit, recursive=True)
    return {entry.path: entry.object_id for entry in entries if entry.mode == _LINK_MODE}


def read_commit_files(git: GitRepository, commit: str, names: Sequence[str]) -> dict[str, bytes]:
    """Those of these names that are plain files of a commit, with what is in them."""
    entries = _read_blob_entries(git, commit, names)
    return {name: content for name, (mode, content) in entries.items() if mode != _LINK_MODE}


def read_checked_out_file(top: Path, name: str) -> bytes | None:
    """A plain file of a checkout, read without following a link; None where it is none, or too long."""
    return read_file_below(top, name, MAX_CHECKED_OUT_BYTES)


def _read_blob_entries(git: GitRepository, commit: str, names: Sequence[str]) -> dict[str, BlobEntry]:
    entries = {os.fsdecode(e.path): e for e in git.list_tree(commit, names) if e.kind == "blob"}
    contents = git.read_blobs(entry.object_id for name, entry in entries.items() if name in names)
    return {name: (entry.mode, contents[entry.object_id]) for name, entry in entries.items() if name in names}


def _restore_tree_file(tree: Path, name: str, entry: BlobEntry | None) -> None:
    *parents, file_name = name.split("/")
    if any(part in ("", ".", "..") or part.casefold() == ".git" for part in (*parents, file_name)):
        raise WorkspaceError(f"{name!r} is no file of a tree")
    try:
        with open_directory_below(tree, parents, make=entry is not None) as directory_fd:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(file_name, dir_fd=directory_fd)
            if entry is not None:
                _write_blob_entry(directory_fd, file_name, entry)
    except FileNotFoundError:
        if entry is not None:
            raise


def _write_blob_entry(directory_fd: int, name: str, entry: BlobEntry) -> None:
    mode, content = entry
    if mode == _LINK_MODE:
        os.symlink(os.fsdecode(content), name, dir_fd=directory_fd)
        return
    with open(
        os.open(name, _CREATE_FILE_FLAGS, 0o755 if mode == _EXECUTABLE_MODE else 0o644, dir_fd=directory_fd),
        "wb",
    ) as file:
        file.write(content)
