"""Looks over a working tree before git does: what is in it that git would wait for, pass over or choke on.

A tree is written by strangers. A pipe called `.gitignore` keeps git waiting for ever; a directory nobody may read, a
`.git` deep inside or a device is passed over without a word.
**Invariant:** nothing is opened but directories, and no link is followed.
"""

import os
import stat
from pathlib import Path

import msgspec

from steersman.errors import UnrecordableTreeError

MAX_TREE_ENTRIES = 2_000_000
_GIT_CONTROL_FILES = frozenset({b".gitignore", b".gitattributes", b".gitmodules", b".mailmap"})


class TreeSurvey(msgspec.Struct, frozen=True):
    """What needs a second look; paths are relative to the tree, as bytes."""

    special: tuple[bytes, ...]  # pipes, sockets, devices
    repositories: tuple[bytes, ...]  # directories below the top that have a `.git`


def survey_working_tree(tree: Path) -> TreeSurvey:
    """Goes through the whole tree; UnrecordableError for one that cannot be gone through."""
    top = os.fsencode(tree)
    special: list[bytes] = []
    repositories: list[bytes] = []
    pending, entry_count = [b""], 0
    while pending:
        directory = pending.pop()
        entries = _list_tree_directory(top, directory)
        entry_count += len(entries)
        if entry_count > MAX_TREE_ENTRIES:
            raise UnrecordableTreeError(
                f"the tree has more than {MAX_TREE_ENTRIES:,} entries; remove what does not belong there"
            )
        for entry in entries:
            name = directory + entry.name
            if entry.name == b".git":
                if directory:
                    repositories.append(directory.rstrip(b"/"))
            elif entry.is_dir(follow_symlinks=False):
                pending.append(name + b"/")
            elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                special.append(name)
                if entry.name in _GIT_CONTROL_FILES:
                    raise UnrecordableTreeError(
                        f"{decode_git_path(name)} is no file: git would wait for it for ever; remove it"
                    )
    return TreeSurvey(tuple(special), tuple(repositories))


def _list_tree_directory(top: bytes, directory: bytes) -> list["os.DirEntry[bytes]"]:
    path = top + b"/" + directory
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except PermissionError:
        return _unlock_and_list_directory(path, directory)
    except OSError as error:  # a path can be made longer than anyone can name
        raise UnrecordableTreeError(
            f"{decode_git_path(directory)} cannot be read: {error.strerror}; remove it"
        ) from error


def _unlock_and_list_directory(path: bytes, directory: bytes) -> list["os.DirEntry[bytes]"]:
    """A directory that its owner locked is unlocked: its rights are no part of what is recorded."""
    try:
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) | stat.S_IRWXU)
        with os.scandir(path) as entries:
            return list(entries)
    except OSError as error:
        raise UnrecordableTreeError(
            f"{decode_git_path(directory)} cannot be read: {error.strerror}; make it readable or remove it"
        ) from error


def decode_git_path(name: bytes) -> str:
    """A path as text: bytes that are no text stay readable and distinct."""
    return name.decode("utf-8", "backslashreplace")
