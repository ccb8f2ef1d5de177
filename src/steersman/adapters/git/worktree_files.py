"""Single files of a working tree, put as a commit has them.

**Invariant:** never outside the tree and never through a link: every part of a path is opened by itself, without
following; no filter of the repository is asked.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from steersman.adapters.git.git_command import decode_git_path
from steersman.adapters.git.repository import GitRepository
from steersman.adapters.storage.confined_files import open_directory_below, read_file_below
from steersman.errors import WorkspaceError

_CREATE_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_MODE, _EXECUTABLE_MODE = "120000", "100755"
MAX_CHECKED_OUT_BYTES = 4 << 20  # bytes of a file of the person's checkout

BlobEntry = tuple[str, bytes]  # mode, content


def restore_tree_files(
    git: GitRepository, tree: Path, commit: str, names: Sequence[str], *, links: bool
) -> None:
    """Makes these names what they are in `commit`; a link only where `links` says so."""
    for name in names:
        entry = _read_blob_entry(git, commit, name)
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


def _read_blob_entry(git: GitRepository, commit: str, name: str) -> BlobEntry | None:
    return _read_blob_entries(git, commit, (name,)).get(name)


def _read_blob_entries(git: GitRepository, commit: str, names: Sequence[str]) -> dict[str, BlobEntry]:
    entries = {
        os.fsdecode(entry.path): entry for entry in git.list_tree(commit, names) if entry.kind == "blob"
    }
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
