"""The marker of a branch that is being moved: on disk before the first lock is taken, gone once the move has ended.

**Invariant:** a marker that can be read is whole, and is on disk before anything that it speaks of.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from steersman.adapters.git.isolated_dir import RepositoryLocation
from steersman.adapters.storage.durable_files import replace_file, sync_directory

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
