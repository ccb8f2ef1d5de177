"""The person's own checkouts: looked at, and moved forward together with their branch.

**Invariant:** a checkout with uncommitted changes is never written to, nor is a file that a filter of theirs would
have to write; files, index and branch move together (`git_branch_move`) or not at all.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from steersman.adapters.config.toml_file import SETTINGS_FILE_NAME
from steersman.adapters.git.git_command import GitResult, GitSetting, encode_git_settings
from steersman.adapters.git.isolated_dir import (
    IsolatedGitDir,
    RepositoryLocation,
    locate_repository,
    query_real_repository,
    read_small_file,
)
from steersman.adapters.git.repository import GitRepository, TreeDifference
from steersman.adapters.storage.durable_files import delete_path, replace_file, sync_directory
from steersman.errors import BranchMovedError, WorkspaceError

if TYPE_CHECKING:
    from steersman.adapters.git.branch_move import BranchMove


# ── move marker ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# The marker of a branch that is being moved: on disk before the first lock is taken, gone once the move has ended.
#
# **Invariant:** a marker that can be read is whole, and is on disk before anything that it speaks of.


DELIVERY_DIRECTORY = "steersman-delivery"  # in the git directory of the checkout: the marker, new files, old files, the new index

FileId = tuple[int, int, int]  # inode, time of change, size: the same until the file is written


class FileMove(msgspec.Struct, frozen=True, array_like=True):
    """One path of a checkout: the file that is there, and the one that takes its place."""

    path: bytes
    before: FileId | None
    after: FileId | None


class MoveMarker(msgspec.Struct, frozen=True):
    """A move that is under way."""

    run: str
    ref: str
    old: str
    new: str
    top: str = ""  # the checkout; nothing where the branch is checked out nowhere
    files: str = ""  # where new and old files are kept, on the disk of the checkout
    moves: tuple[FileMove, ...] = ()
    staged: bool = False  # new files and the new index are there, whole


def delivery_files_directory(location: RepositoryLocation) -> Path:
    """Where new files are written: on the disk of the checkout, so that they can be renamed into it."""
    is_same_disk = os.stat(location.gitdir).st_dev == os.stat(location.top).st_dev
    return (
        location.gitdir / DELIVERY_DIRECTORY
        if is_same_disk
        else location.top / ".steersman" / "runs" / ".delivery"
    )


def read_move_markers(common: Path) -> list[tuple[Path, MoveMarker]]:
    """The moves of this repository that were begun and not ended, each with the folder of its marker."""
    markers = []
    for directory in (common / DELIVERY_DIRECTORY, *sorted(common.glob(f"worktrees/*/{DELIVERY_DIRECTORY}"))):
        with suppress(FileNotFoundError, NotADirectoryError):
            text = (directory / "marker.json").read_bytes()
            markers.append((directory, msgspec.json.decode(text, type=MoveMarker)))
    return markers


def write_move_marker(directory: Path, marker: MoveMarker) -> None:
    """Writes the marker of a move into its folder, whole and on disk."""
    replace_file(directory / "marker.json", msgspec.json.encode(marker), 0o644)
    sync_directory(directory)


# ── user checkout ────────────────────────────────────────────────────────────────────────────────


_FORWARD_ATTEMPTS = 3
_STATUS_ARGS = ("status", "--porcelain", "-z", "--ignore-submodules=all")


class UserCheckouts:
    """Those of one repository; the private trees below `trees` do not count."""

    def __init__(self, git: GitRepository, trees: Path) -> None:
        self._git = git
        self._trees = trees

    def has_uncommitted_changes(self) -> bool:
        """Has the person's own checkout changes that are in no commit? steersman.toml is read from there, and is none."""
        location = self._git.require_repository
        ignore_settings = (("core.excludesFile", str(name)),) if (name := _find_global_ignore_file()) else ()
        answer = self._call_user_git(
            self._git.isolated_directory, location, *_STATUS_ARGS, more=ignore_settings
        )
        if answer.code != 0:
            raise WorkspaceError(
                f"git cannot read {location.top}: {answer.err.strip()[:500]}; correct that first"
            )
        names = (entry[3:] for entry in os.fsdecode(answer.out).split("\0") if entry)
        return any(
            name != SETTINGS_FILE_NAME and not name.startswith(f"{SETTINGS_FILE_NAME}.bak") for name in names
        )

    def find_checkouts(self, ref: str) -> Path | None:
        """Where the person has this branch checked out."""
        if (
            query_real_repository(self._git.place, "symbolic-ref", "--quiet", "HEAD").out
            == f"{ref}\n".encode()
        ):
            return self._git.require_repository.top
        answer = query_real_repository(self._git.place, "worktree", "list", "--porcelain", "-z")
        if answer.code != 0:
            raise WorkspaceError(
                f"git cannot list its checkouts: {answer.err.strip()[:500]}; correct that first"
            )
        for record in os.fsdecode(answer.out).split("\0\0"):
            fields = dict(field.partition(" ")[::2] for field in record.split("\0"))
            path = Path(fields.get("worktree", ""))
            if fields.get("branch") == ref and path.is_dir() and not path.is_relative_to(self._trees):
                return _require_checkout_files(path, ref)
        return None

    def forward(self, run: str, ref: str, old: str, new: str) -> None:
        """Moves a branch from `old` to `new`, with the checkout that the person has of it, if there is one."""
        from steersman.adapters.git.branch_move import CheckedOutError  # only a delivery needs it

        for _ in range(_FORWARD_ATTEMPTS):
            with suppress(CheckedOutError):
                return self._forward(run, ref, old, new)
        raise BranchMovedError(
            f"{ref.removeprefix('refs/heads/')} is checked out and left all the time; deliver again"
        )

    def _forward(self, run: str, ref: str, old: str, new: str) -> None:
        checkout_path = self.find_checkouts(ref)
        if checkout_path is None:
            self._check_not_rebased(ref)
        try:
            self._move_checkout(run, ref, old, new, checkout_path).carry_out(self._check_files)
            if checkout_path is None and old and (checkout_path := self.find_checkouts(ref)) is not None:
                # A `git switch` had read the branch before it moved and has left the old files.
                self._move_checkout(run, ref, old, new, checkout_path).carry_along()
        except OSError as error:
            raise WorkspaceError(_interrupted_delivery_message(ref, error)) from error

    def settle_interrupted_moves(self) -> list[str]:
        """Finishes or undoes moves that were cut short; says what was done."""
        messages = []
        for marker_dir, marker in read_move_markers(self._git.require_repository.common):
            try:
                messages.append(self._settle_move(marker_dir, marker))
            except OSError as error:
                raise WorkspaceError(_interrupted_delivery_message(marker.ref, error)) from error
        return messages

    def _settle_move(self, marker_dir: Path, marker: MoveMarker) -> str:
        name, tip = marker.ref.removeprefix("refs/heads/"), self._git.resolve(marker.ref)
        if marker.top and not (Path(marker.top) / ".git").exists():
            delete_path(marker_dir)
            return f"the checkout that run {marker.run} was being delivered into is gone: {marker.top}"
        move = self._branch_move(marker)
        if tip is not None and self._git.contains(tip, marker.new):
            move.finish()
            if marker.top and not marker.staged and tip == marker.new:
                move.carry_along()
            return f"finished the delivery of run {marker.run} into {name}"
        changed = move.undo()
        note = f"; left as they are, because they were changed since: {', '.join(changed)}" if changed else ""
        return f"undid the delivery of run {marker.run} into {name}, which was cut short{note}"

    def _move_checkout(self, run: str, ref: str, old: str, new: str, path: Path | None) -> "BranchMove":
        location = None if path is None else locate_repository(path)
        directories = (
            ("", "") if location is None else (str(location.top), str(delivery_files_directory(location)))
        )
        return self._branch_move(MoveMarker(run, ref, old, new, *directories))

    def _branch_move(self, marker: MoveMarker) -> "BranchMove":
        from steersman.adapters.git.branch_move import BranchMove  # only a delivery needs it

        return BranchMove(self._git, self._call_user_git, marker)

    def _check_not_rebased(self, ref: str) -> None:
        """A rebase of the branch ends by putting the branch where it thinks it belongs."""
        common = self._git.require_repository.common
        for gitdir in (common, *common.glob("worktrees/*")):
            for name in ("rebase-merge", "rebase-apply"):
                if read_small_file(gitdir / name / "head-name").strip() == ref.encode():
                    raise WorkspaceError(
                        f"{ref.removeprefix('refs/heads/')} is being rebased; finish that or abort it, and try again"
                    )

    def _check_files(
        self, isolated_dir: IsolatedGitDir, location: RepositoryLocation, entries: list[TreeDifference]
    ) -> None:
        if blocking_file := self._in_the_way(location, entries):
            raise WorkspaceError(
                f"{blocking_file} of {location.top} is in no commit and would be overwritten; move it away and try again"
            )
        if filtered_file := self._find_filtered_file(isolated_dir, location, entries):
            raise WorkspaceError(
                f"{filtered_file} passes a filter of {location.top} that steersman does not run; "
                "switch to another branch there and try again"
            )

    def _in_the_way(self, location: RepositoryLocation, entries: list[TreeDifference]) -> str | None:
        """A file of the person's where a new one belongs: git would take an ignored one for worthless."""
        tracked = {entry.path for entry in entries if entry.old_mode.strip("0")}
        for entry in entries:
            if entry.path in tracked:
                continue
            path = Path(os.fsdecode(entry.path))
            for relative_path in (path, *path.parents[:-1]):
                absolute_path = location.top / relative_path
                if (
                    os.path.lexists(absolute_path)
                    and (absolute_path.is_symlink() or not absolute_path.is_dir())
                    and bytes(relative_path) not in tracked
                ):
                    return str(relative_path)
        return None

    def _find_filtered_file(
        self, isolated_dir: IsolatedGitDir, location: RepositoryLocation, entries: list[TreeDifference]
    ) -> str | None:
        """A changed file whose content the person's git would convert (large file storage, encryption)."""
        names = b"".join(entry.path + b"\0" for entry in entries)
        attributes = self._call_user_git(
            isolated_dir, location, "check-attr", "-z", "--stdin", "filter", feed=names
        ).out.split(b"\0")
        for name, value in zip(attributes[::3], attributes[2::3], strict=False):
            if value not in {b"unspecified", b"unset"}:
                return os.fsdecode(name)
        return None

    def _call_user_git(
        self,
        isolated_dir: IsolatedGitDir,
        location: RepositoryLocation,
        *args: str,
        feed: bytes = b"",
        more: tuple[GitSetting, ...] = (),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> GitResult:
        """git on the person's files and index, as their own settings say these are to be read."""
        settings = dict(encode_git_settings((*location.checkout, *more)))
        git_paths = {"GIT_WORK_TREE": str(location.top), "GIT_INDEX_FILE": str(location.gitdir / "index")}
        git_paths |= {"GIT_DIR": str(isolated_dir.path), **(env or {})}
        return self._git.call(*args, cwd=cwd or location.top, env={**settings, **git_paths}, feed=feed)


def _require_checkout_files(checkout_path: Path, ref: str) -> Path:
    """A checkout has a `.git`; of one whose git directory was put elsewhere git knows only that directory."""
    if not (checkout_path / ".git").exists():
        raise WorkspaceError(
            f"{ref.removeprefix('refs/heads/')} is checked out somewhere, and {checkout_path} does not say where; "
            "switch to another branch there and try again"
        )
    return checkout_path


def _interrupted_delivery_message(ref: str, error: OSError) -> str:
    name = ref.removeprefix("refs/heads/")
    return f"the delivery into {name} was cut short: {error}. Put that right, then run `steersman resume` to finish or undo it"


def _find_global_ignore_file() -> Path | None:
    """The file of names that the person's git ignores everywhere, where it is in its usual place."""
    config_home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    ignore_file = Path(config_home, "git", "ignore")
    return ignore_file if ignore_file.is_file() else None
