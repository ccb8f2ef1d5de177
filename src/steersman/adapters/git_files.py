"""Single files of a working tree, put as a commit has them.

**Invariant:** never outside the tree and never through a link: every part of a path is opened by itself, without
following; no filter of the repository is asked.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from steersman.adapters.git_repository import Git
from steersman.adapters.git_survey import shown
from steersman.errors import WorkspaceError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LINK, _PROGRAM = "120000", "100755"
MOST_READ = 4 << 20  # bytes of a file of the person's checkout

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
    return tuple(sorted(os.fsdecode(name) for name in _link_blobs(git, commit)))


def link_targets(git: Git, commit: str) -> dict[str, str]:
    """The symbolic links of a commit with what each leads to."""
    blobs = _link_blobs(git, commit)
    if not blobs:
        return {}
    told = git.read("cat-file", "--batch", feed="".join(f"{blob}\n" for blob in blobs.values()).encode())
    found = {}
    for name in blobs:  # in this order: a line with the size, the content, a line break
        line, _, told = told.partition(b"\n")
        size = int(line.split(b" ")[2])
        found[shown(name)], told = shown(told[:size]), told[size + 1 :]
    return found


def _link_blobs(git: Git, commit: str) -> dict[bytes, str]:
    listed = git.read_object(commit, "ls-tree", "-r", "-z", "--full-tree").split(b"\0")[:-1]
    parts = [line.partition(b"\t") for line in listed if line.startswith(_LINK.encode())]
    return {name: told.decode().split(" ")[2] for told, _, name in parts}


def contents(git: Git, commit: str, names: Sequence[str]) -> dict[str, bytes]:
    """Those of these names that are plain files of a commit, with what is in them."""
    found = _entries(git, commit, names)
    return {name: content for name, (mode, content) in found.items() if mode != _LINK}


def read_checked_out(top: Path, name: str) -> bytes | None:
    """A plain file of a checkout, read without following a link; None where it is none, or longer than `MOST_READ`."""
    *folders, last = name.split("/")
    with contextlib.suppress(OSError), _opened(top, folders, make=False) as folder:
        if folder is None:
            return None
        with open(os.open(last, _PLAIN, dir_fd=folder), "rb") as file:
            content = file.read(MOST_READ + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None
        return content if content is not None and len(content) <= MOST_READ else None
    return None


def _entry(git: Git, commit: str, name: str) -> Entry | None:
    return _entries(git, commit, (name,)).get(name)


def _entries(git: Git, commit: str, names: Sequence[str]) -> dict[str, Entry]:
    listed = git.read("ls-tree", "-z", "--full-tree", commit, "--", *names).split(b"\0")[:-1]
    found = {}
    for line in listed:
        told, _, name = line.partition(b"\t")
        mode, kind, blob = told.decode().split(" ")
        if kind == "blob" and os.fsdecode(name) in names:
            found[os.fsdecode(name)] = (mode, git.read_object(blob, "cat-file", "blob"))
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
