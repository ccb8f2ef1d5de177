"""Looks over a working tree before git does: what is in it that git would wait for, pass over or choke on.

A tree is written by strangers. A pipe called `.gitignore` keeps git waiting for ever; a directory nobody may read, a
`.git` deep inside or a device is passed over without a word.
**Invariant:** nothing is opened but directories, and no link is followed.
"""

import os
import stat
from pathlib import Path

import msgspec

from steersman.errors import UnrecordableError

MOST_ENTRIES = 2_000_000
_READ_BY_GIT = frozenset({b".gitignore", b".gitattributes", b".gitmodules", b".mailmap"})


class Survey(msgspec.Struct, frozen=True):
    """What needs a second look; paths are relative to the tree, as bytes."""

    special: tuple[bytes, ...]  # pipes, sockets, devices
    repositories: tuple[bytes, ...]  # directories below the top that have a `.git`


def survey(tree: Path) -> Survey:
    """Goes through the whole tree; UnrecordableError for one that cannot be gone through."""
    top = os.fsencode(tree)
    special: list[bytes] = []
    repositories: list[bytes] = []
    waiting, seen = [b""], 0
    while waiting:
        here = waiting.pop()
        entries = _entries(top, here)
        seen += len(entries)
        if seen > MOST_ENTRIES:
            raise UnrecordableError(
                f"the tree has more than {MOST_ENTRIES:,} entries; remove what does not belong there"
            )
        for entry in entries:
            name = here + entry.name
            if entry.name == b".git":
                if here:
                    repositories.append(here.rstrip(b"/"))
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(name + b"/")
            elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                special.append(name)
                if entry.name in _READ_BY_GIT:
                    raise UnrecordableError(
                        f"{shown(name)} is no file: git would wait for it for ever; remove it"
                    )
    return Survey(tuple(special), tuple(repositories))


def _entries(top: bytes, here: bytes) -> list["os.DirEntry[bytes]"]:
    path = top + b"/" + here
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except PermissionError:
        return _opened(path, here)
    except OSError as error:  # a path can be made longer than anyone can name
        raise UnrecordableError(f"{shown(here)} cannot be read: {error.strerror}; remove it") from error


def _opened(path: bytes, here: bytes) -> list["os.DirEntry[bytes]"]:
    """A directory that its owner locked is unlocked: its rights are no part of what is recorded."""
    try:
        os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) | stat.S_IRWXU)
        with os.scandir(path) as entries:
            return list(entries)
    except OSError as error:
        raise UnrecordableError(
            f"{shown(here)} cannot be read: {error.strerror}; make it readable or remove it"
        ) from error


def shown(name: bytes) -> str:
    """A path as text: bytes that are no text stay readable and distinct."""
    return name.decode("utf-8", "backslashreplace")
