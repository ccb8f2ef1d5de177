"""Single files of a working tree, put as a commit has them.

**Invariant:** never outside the tree and never through a link: every part of a path is opened by itself, without
following; no filter of the repository is asked.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from steersman.adapters.git_repository import Git
from steersman.errors import WorkspaceError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK, _PROGRAM = "120000", "100755"

Entry = tuple[str, bytes]  # mode, content


def lay(git: Git, tree: Path, commit: str, names: Sequence[str], *, links: bool) -> None:
    """Makes these names what they are in `commit`; a link only where `links` says so."""
    for name in names:
        entry = _entry(git, commit, name)
        wanted = entry if entry is not None and (links or entry[0] != _LINK) else None
        try:
            _put(tree, name, wanted)
        except OSError as error:
            raise WorkspaceError(f"{name} cannot be put as it was: {error.strerror}") from error


def links(git: Git, commit: str) -> tuple[str, ...]:
    """The symbolic links of a commit, sorted."""
    listed = git.read("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")[:-1]
    return tuple(
        sorted(os.fsdecode(line.partition(b"\t")[2]) for line in listed if line.startswith(_LINK.encode()))
    )


def contents(git: Git, commit: str, names: Sequence[str]) -> dict[str, bytes]:
    """Those of these names that are plain files of a commit, with what is in them."""
    found = _entries(git, commit, names)
    return {name: content for name, (mode, content) in found.items() if mode != _LINK}


def _entry(git: Git, commit: str, name: str) -> Entry | None:
    return _entries(git, commit, (name,)).get(name)


def _entries(git: Git, commit: str, names: Sequence[str]) -> dict[str, Entry]:
    listed = git.read("ls-tree", "-z", "--full-tree", commit, "--", *names).split(b"\0")[:-1]
    found = {}
    for line in listed:
        told, _, name = line.partition(b"\t")
        mode, kind, blob = told.decode().split(" ")
        if kind == "blob" and os.fsdecode(name) in names:
            found[os.fsdecode(name)] = (mode, git.read("cat-file", "blob", blob))
    return found


def _put(tree: Path, name: str, entry: Entry | None) -> None:
    *folders, last = name.split("/")
    if any(part in ("", ".", "..") or part.casefold() == ".git" for part in (*folders, last)):
        raise WorkspaceError(f"{name!r} is no file of a tree")
    with _opened(tree, folders, make=entry is not None) as folder:
        if folder is None:
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(last, dir_fd=folder)
        if entry is not None:
            _write(folder, last, entry)


def _write(folder: int, name: str, entry: Entry) -> None:
    mode, content = entry
    if mode == _LINK:
        os.symlink(os.fsdecode(content), name, dir_fd=folder)
        return
    with open(os.open(name, _NEW, 0o755 if mode == _PROGRAM else 0o644, dir_fd=folder), "wb") as file:
        file.write(content)


@contextlib.contextmanager
def _opened(tree: Path, folders: Sequence[str], *, make: bool) -> Iterator[int | None]:
    """The folder of a file; None where it is not there and nothing has to be made."""
    with contextlib.ExitStack() as stack:
        here = os.open(tree, _FOLDER)
        stack.callback(os.close, here)
        for name in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
            try:
                here = os.open(name, _FOLDER, dir_fd=here)
            except FileNotFoundError:
                yield None
                return
            stack.callback(os.close, here)
        yield here
