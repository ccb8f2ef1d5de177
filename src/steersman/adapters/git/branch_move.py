"""Moves a branch, and the checkout that a person has of it, so that a kill or a full disk cannot leave a mixture.

New files are written beside the checkout first. Then, under git's own `index.lock` and `HEAD.lock`, each file is
renamed into place (the old one is kept), the branch moves, and the new index is renamed into place. A marker that is
on disk before the first lock says what was under way: `settle` puts the old files back while the branch has not moved,
and puts the new index in place once it has.
**Invariant:** a lock or a file that is not exactly the one we made is never removed or written over.
"""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from steersman.adapters.git.git_command import GitResult
from steersman.adapters.git.isolated_dir import (
    IsolatedGitDir,
    RepositoryLocation,
    locate_repository,
    make_isolated_dir,
    query_real_repository,
    read_small_file,
)
from steersman.adapters.git.repository import GitRepository, TreeDifference, parse_raw_differences
from steersman.adapters.git.user_checkout import (
    DELIVERY_DIRECTORY,
    FileId,
    FileMove,
    MoveMarker,
    write_move_marker,
)
from steersman.adapters.storage.durable_files import delete_path
from steersman.errors import BranchMovedError, WorkspaceError

DELIVERY_REFLOG_MESSAGE = "steersman: deliver"
GIT_LOCK_SECONDS = 5.0
_GIT_LOCK_NAMES = ("index.lock", "HEAD.lock")
_GIT_SWITCH_SECONDS = 0.1  # longer than a `git switch` takes from one of its steps to the next
_MIN_FREE_DISK_BYTES = 1 << 20  # bytes that have to be left
_SUBMODULE_MODE = "160000"

CallGit = Callable[..., GitResult]


class CheckedOutError(BranchMovedError):
    """The branch was checked out while it was about to move alone."""


CheckDifferences = Callable[[IsolatedGitDir, RepositoryLocation, list[TreeDifference]], None]


class BranchMove:
    """One move of one branch from `old` to `new`; the caller has the delivery lock."""

    def __init__(self, git: GitRepository, call: CallGit, marker: MoveMarker) -> None:
        self._git = git
        self._call = call
        self._marker = marker
        self._found: RepositoryLocation | None = locate_repository(Path(marker.top)) if marker.top else None
        gitdir = self._found.gitdir if self._found else git.require_repository.common
        self._folder = gitdir / DELIVERY_DIRECTORY
        self._gitdir = gitdir
        self._own: IsolatedGitDir = make_isolated_dir(self._found or git.require_repository, git.folder)

    def carry_out(self, check: CheckDifferences) -> None:
        """Moves branch, files and index; after an error everything is as it was."""
        try:
            self._begin()
            if self._found is not None:
                self._move_files(self._found, check)
            elif self._marker.old:
                self._lock_checkouts()
            self._move_ref()
            if self._found is None and self._marker.old:
                time.sleep(_GIT_SWITCH_SECONDS)  # a switch that had read the old commit meets the lock
        except BaseException as error:
            if self._git.resolve(self._marker.ref) == self._marker.new:
                self.finish()
            else:
                self._undo_after_error(error)
            raise
        self.finish()

    def carry_along(self) -> None:
        """Moves files and index of a checkout whose branch has moved already while it still has the old files."""
        try:
            self._begin()
            if self._found is not None and self._stands_at_old(self._found):
                self._move_files(self._found, lambda *_: None)
        except BaseException as error:
            self._undo_after_error(error)
            raise
        self.finish()

    def finish(self) -> None:
        """The branch has moved: files and index follow, unless the person has put them in order already."""
        if self._found is not None and self._marker.staged and self._has_head(self._found):
            for name in _GIT_LOCK_NAMES:
                self._lock(name)
            if (self._folder / "index").exists() and self._stands_at_old(self._found):
                self._put_files()
                self._in_index("update-index", "-q", "--refresh", "--ignore-submodules")
                os.replace(self._folder / "index", self._gitdir / "index")
        self._release_locks()

    def undo(self) -> list[str]:
        """The branch has not moved: the old files come back. Returns the paths that were changed since."""
        top, files = Path(self._marker.top), Path(self._marker.files)
        changed: list[str] = []
        for move in self._marker.moves:  # new ones first: a directory may have come where a file was
            if move.before is None:
                if _read_file_id(top / os.fsdecode(move.path)) == move.after:
                    os.unlink(top / os.fsdecode(move.path))
                _remove_empty_parents(top, move.path)
        for number, move in enumerate(self._marker.moves):
            path = top / os.fsdecode(move.path)
            if move.before is None or (now := _read_file_id(path)) == move.before:
                continue
            if now not in (None, move.after):
                changed.append(str(path))
            elif os.path.lexists(old_file := files / "old" / str(number)):
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(old_file, path)
        self._release_locks()
        if self._found is not None and self._marker.moves:
            self._call(self._own, self._found, "update-index", "-q", "--refresh", "--ignore-submodules")
        return changed

    # ── steps ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        delete_path(self._folder)  # what is here without a marker holds no lock
        self._folder.mkdir()
        (self._folder / "token").write_bytes(b"held by a delivery of steersman\n")
        write_move_marker(self._folder, self._marker)

    def _move_files(self, location: RepositoryLocation, check: CheckDifferences) -> None:
        self._lock("index.lock")
        entries = self._prepare_index(location, check)
        # Only now: a `git switch` that has written its index waits a tenth of a second for HEAD, and then gives up.
        self._lock("HEAD.lock")
        if not self._has_head(location):
            raise BranchMovedError(f"another branch has been checked out in {location.top}; deliver again")
        self._check_room(location, entries)
        moves = self._write_new_files(location, entries)
        self._marker = msgspec.structs.replace(self._marker, moves=moves, staged=True)
        write_move_marker(self._folder, self._marker)
        self._put_files()

    def _put_files(self) -> None:
        """Removes what is gone, then renames new files into place; what is there already stays."""
        for number, move in enumerate(self._marker.moves):
            if move.after is None and self._is_due(move):
                self._take_away(number, move)
        for number, move in enumerate(self._marker.moves):
            if move.after is not None and self._is_due(move):
                self._put_in_place(number, move)

    def _is_due(self, move: FileMove) -> bool:
        return _read_file_id(Path(self._marker.top) / os.fsdecode(move.path)) != move.after

    def _prepare_index(self, location: RepositoryLocation, check: CheckDifferences) -> list[TreeDifference]:
        """Makes the index of `new` beside the person's own; returns the paths whose files have to change."""
        index, old, new = self._folder / "index", self._marker.old, self._marker.new
        if (self._gitdir / "index").exists():
            shutil.copy(self._gitdir / "index", index)
        raw = self._git.read("diff-tree", "-r", "-z", "--raw", "--no-renames", old, new)
        entries = list(parse_raw_differences(raw))
        names = {entry.path for entry in entries}
        tags = dict(self._read_index_tags())
        unchanged_paths = [name for name in names if tags.get(name, b"H").islower()]
        skipped = [name for name in names if tags.get(name, b"H").upper() == b"S"]
        self._in_index(
            "update-index",
            "-z",
            "--no-assume-unchanged",
            "--stdin",
            feed=_join_nul_terminated(unchanged_paths),
        )
        self._in_index("update-index", "-q", "--refresh", "--ignore-submodules")
        if not self._is_clean(old):
            if self._is_clean(new):  # the person has exactly this already, staged
                return []
            raise WorkspaceError(
                f"{self._branch_name} is checked out in {location.top} with uncommitted changes; "
                "commit or stash them there, or switch to another branch, and try again"
            )
        check(self._own, location, entries)
        answer = self._in_index("read-tree", "-m", old, new)
        if answer.code != 0:
            raise WorkspaceError(self._lock_refusal(location, answer.err))
        skip_paths = [entry.path for entry in entries if entry.path in skipped and entry.new_mode.strip("0")]
        self._in_index(
            "update-index", "-z", "--skip-worktree", "--stdin", feed=_join_nul_terminated(skip_paths)
        )
        return [
            e for e in entries if e.path not in skipped and _SUBMODULE_MODE not in (e.old_mode, e.new_mode)
        ]

    def _read_index_tags(self) -> Iterator[tuple[bytes, bytes]]:
        """How the person has marked each path of the index: assume-unchanged in small letters, skip-worktree as S."""
        for line in self._in_index("ls-files", "-v", "-z").out.split(b"\0")[:-1]:
            tag, _, path = line.partition(b" ")
            yield path, tag

    def _is_clean(self, commit: str) -> bool:
        ignored = "--ignore-submodules=all"
        staged = self._in_index("diff-index", "--cached", "--quiet", ignored, commit)
        return staged.code == 0 and self._in_index("diff-files", "--quiet", ignored).code == 0

    def _stands_at_old(self, location: RepositoryLocation) -> bool:
        flags = ("--cached", "--quiet", "--ignore-submodules=all")
        return self._call(self._own, location, "diff-index", *flags, self._marker.old).code == 0

    def _check_room(self, location: RepositoryLocation, entries: list[TreeDifference]) -> None:
        """The new files, twice the index and a little more have to fit before anything is touched."""
        blob_lines = "".join(f"{entry.blob}\n" for entry in entries if entry.new_mode.strip("0")).encode()
        sizes = self._git.read("cat-file", "--batch-check=%(objectsize)", feed=blob_lines).split()
        index = 2 * os.stat(self._folder / "index").st_size if entries else 0
        needed = sum(int(size) for size in sizes) + 4096 * len(entries) + index + _MIN_FREE_DISK_BYTES
        for directory in {location.top, self._gitdir}:
            disk = os.statvfs(directory)
            if disk.f_bavail * disk.f_frsize < needed:
                raise WorkspaceError(
                    f"{self._branch_name} was not moved: the disk of {directory} has less than the {needed // 1024:,} KB free "
                    "that this needs. Make room and try again"
                )

    def _write_new_files(
        self, location: RepositoryLocation, entries: list[TreeDifference]
    ) -> tuple[FileMove, ...]:
        """Writes the new files beside the checkout, as git would write them into it."""
        files = Path(self._marker.files)
        delete_path(files / "new")
        delete_path(files / "old")
        for name in ("new", "old"):
            (files / name).mkdir(parents=True)
        lines = [f"{e.new_mode} {e.blob}\t".encode() + e.path for e in entries if e.new_mode.strip("0")]
        if lines:
            self._check_out(location, files / "new", b"".join(line + b"\0" for line in lines))
        moves = tuple(
            FileMove(
                e.path,
                _read_file_id(location.top / os.fsdecode(e.path)),
                _read_file_id(files / "new" / os.fsdecode(e.path)),
            )
            for e in entries
        )
        if any(
            (move.after is None) != (not entry.new_mode.strip("0"))
            for move, entry in zip(moves, entries, strict=True)
        ):
            raise WorkspaceError(
                f"git did not write every new file of {self._branch_name} to {files}; try again"
            )
        return moves

    def _check_out(self, location: RepositoryLocation, target_dir: Path, lines: bytes) -> None:
        env = {"GIT_INDEX_FILE": str(self._folder / "new-index"), "GIT_WORK_TREE": str(target_dir)}
        staged = self._in_index("ls-files", "-s", "-z").out.split(b"\0")[:-1]
        # `ls-files -s` says "mode blob stage\tpath", which --index-info reads as it is.
        attributes = [
            line for line in staged if line.rpartition(b"\t")[2].rpartition(b"/")[2] == b".gitattributes"
        ]
        feed = b"".join(line + b"\0" for line in attributes) + lines
        for args, input_bytes in (
            (("update-index", "-z", "--index-info"), feed),
            (("checkout-index", "-q", "-a", "-f"), b""),
        ):
            answer = self._call(self._own, location, *args, feed=input_bytes, cwd=target_dir, env=env)
            if answer.code != 0:
                raise WorkspaceError(self._lock_refusal(location, answer.err))

    def _take_away(self, number: int, move: FileMove) -> None:
        path = self._check_path(move)
        _keep_old_file(path, Path(self._marker.files) / "old" / str(number))
        with suppress(FileNotFoundError):
            os.unlink(path)
        _remove_empty_parents(Path(self._marker.top), move.path)

    def _put_in_place(self, number: int, move: FileMove) -> None:
        path = self._check_path(move)
        if move.before is not None:
            _keep_old_file(path, Path(self._marker.files) / "old" / str(number))
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()  # it is empty, or it holds other files and this fails
        os.replace(Path(self._marker.files) / "new" / os.fsdecode(move.path), path)

    def _check_path(self, move: FileMove) -> Path:
        """The path, if the file there still is the one we have looked at and no link leads elsewhere."""
        top = Path(self._marker.top)
        path = top / os.fsdecode(move.path)
        is_behind_link = any(p.is_symlink() for p in path.parents if p != top and p.is_relative_to(top))
        if is_behind_link or _read_file_id(path) != move.before:
            raise WorkspaceError(
                f"{path} was changed while it was delivered; commit or stash that and try again"
            )
        return path

    def _move_ref(self) -> None:
        marker = self._marker
        answer = self._git.call(
            "update-ref",
            "-m",
            DELIVERY_REFLOG_MESSAGE,
            marker.ref,
            marker.new,
            marker.old,
            env={"GIT_DIR": str(self._own.path)},
        )
        if answer.code != 0:
            moved = self._git.resolve(marker.ref) not in (None, marker.old)
            raise (BranchMovedError if moved else WorkspaceError)(
                f"{marker.ref} could not be moved: {answer.err.strip()[:500]}; look at it and deliver again"
            )

    # ── marker and locks ────────────────────────────────────────────────────────────────────────────────────────────

    def _lock_checkouts(self) -> None:
        """Keeps every checkout from switching to a branch that is checked out nowhere while the branch moves.

        `git switch` reads where the branch is, writes its index under the lock, and then HEAD without it.
        """
        for gitdir in filter(_has_live_checkout, self._list_gitdirs()):
            with suppress(WorkspaceError):  # held for so long it is no switch
                self._lock("index.lock", gitdir)
            with suppress(OSError):
                if time.time() - os.stat(gitdir / "index").st_mtime < _GIT_SWITCH_SECONDS * 3:
                    time.sleep(_GIT_SWITCH_SECONDS * 3)
            if read_small_file(gitdir / "HEAD").strip() == f"ref: {self._marker.ref}".encode():
                raise CheckedOutError(f"{self._branch_name} has been checked out; deliver again")

    def _list_gitdirs(self) -> list[Path]:
        common = self._git.require_repository.common
        return [common, *sorted(common.glob("worktrees/*"))]

    def _lock(self, name: str, gitdir: Path | None = None) -> None:
        """Takes a lock of git's own. A link is made at once and whole, so that ours is known from another's."""
        path, token = (gitdir or self._gitdir) / name, self._folder / "token"
        deadline = time.monotonic() + GIT_LOCK_SECONDS
        while True:
            try:
                return os.link(token, path)
            except FileExistsError:
                if _is_same_file(path, token):
                    return None
            if time.monotonic() > deadline:
                raise WorkspaceError(
                    f"{self._branch_name} could not be moved forward: {path} is there, so a git is at work; try again when it "
                    f"has ended (if no git is at work there, remove {path})"
                )
            time.sleep(0.05)

    def _release_locks(self) -> None:
        """Releases everything: locks, then the marker, then the files it names."""
        for lock in (gitdir / name for gitdir in self._list_gitdirs() for name in _GIT_LOCK_NAMES):
            if _is_same_file(lock, self._folder / "token"):
                os.unlink(lock)
        lock = self._git.require_repository.common / f"{self._marker.ref}.lock"
        # A git that steersman started and that was killed leaves it; no other git would move it to this commit.
        with suppress(OSError):
            if lock.read_bytes() == f"{self._marker.new}\n".encode():
                lock.unlink()
        if self._marker.files:
            delete_path(Path(self._marker.files) / "new")
            delete_path(Path(self._marker.files) / "old")
        (self._folder / "marker.json").unlink(missing_ok=True)
        delete_path(self._folder)

    def _undo_after_error(self, error: BaseException) -> None:
        """Undoes what was begun; where even that fails the marker stays, and the next who comes undoes it."""
        try:
            self.undo()
        except (OSError, WorkspaceError) as undo_error:
            raise WorkspaceError(
                f"{self._branch_name} was not moved ({error}), and its checkout in {self._marker.top} could not be restored yet: "
                f"{undo_error}. Put that right, then run `steersman resume`"
            ) from error
        if isinstance(error, OSError):
            raise WorkspaceError(
                f"{self._branch_name} was not moved: {error}. Put that right and try again"
            ) from error

    def _has_head(self, location: RepositoryLocation) -> bool:
        return (
            query_real_repository(location.top, "symbolic-ref", "--quiet", "HEAD").out
            == f"{self._marker.ref}\n".encode()
        )

    def _in_index(self, *args: str, feed: bytes = b"") -> GitResult:
        """git on the index that is being made."""
        if self._found is None:
            raise WorkspaceError(f"{self._branch_name} is checked out nowhere")
        env = {"GIT_INDEX_FILE": str(self._folder / "index")}
        return self._call(self._own, self._found, *args, feed=feed, env=env)

    @property
    def _branch_name(self) -> str:
        return self._marker.ref.removeprefix("refs/heads/")

    def _lock_refusal(self, location: RepositoryLocation, git_error: str) -> str:
        return f"{self._branch_name} in {location.top} could not be moved forward: {git_error.strip()[:500]}; put that right there and try again"


def _read_file_id(path: Path) -> FileId | None:
    try:
        file_stat = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (
        None
        if stat.S_ISDIR(file_stat.st_mode)
        else (file_stat.st_ino, file_stat.st_mtime_ns, file_stat.st_size)
    )


def _has_live_checkout(gitdir: Path) -> bool:
    """A working tree that was deleted by hand leaves its git directory behind, and no one can switch there."""
    gitfile_path = os.fsdecode(read_small_file(gitdir / "gitdir").strip())
    return not gitfile_path or (gitdir / gitfile_path).parent.is_dir()


def _keep_old_file(path: Path, backup: Path) -> None:
    """Keeps a file under a second name; where a disk knows no links it is moved away."""
    try:
        os.link(path, backup, follow_symlinks=False)
    except OSError:
        os.rename(path, backup)


def _is_same_file(path: Path, other_path: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other_path))
    except OSError:
        return False


def _remove_empty_parents(top: Path, path: bytes) -> None:
    for parent in (top / os.fsdecode(path)).parents:
        if parent == top:
            return
        try:
            parent.rmdir()
        except OSError:
            return


def _join_nul_terminated(names: list[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)
