"""What the files of a working tree were before a command, compared with what they are afterwards.

A program can restore a file's content and its modification time, but neither its inode nor its change time.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class FileState(NamedTuple):
    """One entry of a tree."""

    kind: int
    inode: int
    changed_ns: int
    modified_ns: int
    size: int


FileStates = Mapping[str, FileState]


def read_file_states(top: str | os.PathLike[str], skip: frozenset[str] = frozenset()) -> dict[str, FileState]:
    """Every file and directory below `top` by its relative name, without `.git` and without what is in `skip`."""
    return {"": _to_file_state(os.lstat(top)), **dict(_walk_file_states(os.fspath(top), skip))}


def list_changed_files(before: FileStates, after: FileStates) -> list[str]:
    """Files that were there before and were written, replaced or removed since."""
    return [
        name
        for name, state in before.items()
        if not stat.S_ISDIR(state.kind) and _file_identity(state) != _file_identity(after.get(name))
    ]


def list_created_entries(before: FileStates, after: FileStates) -> list[str]:
    """The outermost entries that were not there before."""
    return [name for name in after if name not in before and os.path.dirname(name) in before]


def list_written_directories(before: FileStates, after: FileStates) -> list[str]:
    """Directories that were there before and in which something was created, removed or renamed."""
    return [
        name
        for name, state in before.items()
        if stat.S_ISDIR(state.kind) and name in after and after[name].modified_ns != state.modified_ns
    ]


def read_file_digests(top: str, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each plain file."""
    return {name: _digest_file(os.path.join(top, name)) for name in names}


def list_plain_files(states: FileStates) -> list[str]:
    """The plain files among the entries."""
    return [name for name, state in states.items() if stat.S_ISREG(state.kind)]


def _file_identity(state: FileState | None) -> tuple[int, int, int] | None:
    return None if state is None else (state.inode, state.changed_ns, state.size)


def _walk_file_states(top: str, skip: frozenset[str]) -> Iterator[tuple[str, FileState]]:
    directories = [""]
    while directories:
        directory = directories.pop()
        try:
            entries = list(os.scandir(os.path.join(top, directory)))
        except OSError:
            continue
        for entry in entries:
            name = f"{directory}/{entry.name}" if directory else entry.name
            if name == ".git" or name in skip:
                continue
            state = _to_file_state(entry.stat(follow_symlinks=False))
            yield name, state
            if stat.S_ISDIR(state.kind):
                directories.append(name)


def _to_file_state(status: os.stat_result) -> FileState:
    return FileState(status.st_mode, status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size)


def _digest_file(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
