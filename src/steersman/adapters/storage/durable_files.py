"""Files that are whole or not there, and on disk before a caller goes on.

**Invariant:** what has a file's name holds the old bytes or all of the new ones; no link is written through.
"""

import contextlib
import errno
import itertools
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, AnyStr

from steersman.errors import WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path

_CREATE_EXCLUSIVELY = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_new_file(path: str | os.PathLike[str], data: bytes, mode: int = 0o600) -> None:
    """A file that was not there; raises FileExistsError where it was."""
    with open(os.open(path, _CREATE_EXCLUSIVELY, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: str | os.PathLike[str], data: bytes, mode: int = 0o600) -> None:
    """The file holds these bytes, whatever it held."""
    part = _write_part(path, data, mode)
    try:
        os.replace(part, path)
    except OSError:
        os.unlink(part)
        raise


def create_file(path: str | os.PathLike[str], data: bytes, mode: int = 0o600) -> None:
    """The file appears whole; raises FileExistsError where it was there: of two that make it, one does."""
    part = _write_part(path, data, mode)
    try:
        os.link(part, path)  # unlike a rename, it never takes the place of another file
    except (PermissionError, NotImplementedError):  # a file system without links: whole but for a moment
        write_new_file(path, data, mode)
    finally:
        os.unlink(part)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """What was created, renamed or removed in a folder stays so."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _write_part(path: str | os.PathLike[str], data: bytes, mode: int) -> str:
    above, name = os.path.split(os.fspath(path))
    part = os.path.join(above, f".{name}.{os.getpid()}-{threading.get_native_id()}.part")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    write_new_file(part, data, mode)
    return part


# ── confined files ──────────────────────────────────────────────────────────────────────────────────────────────────────

# Opens what lies below a directory part by part, so that no link leads out of it.
#
# **Invariant:** every part of a path is opened by itself, without following a link, and no pipe makes a reader wait.


_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def open_directory_below(
    top: int | str | bytes | os.PathLike[str], parts: Sequence[str | bytes], *, make: bool = False
) -> Iterator[int]:
    """A descriptor of a directory below `top`, made with its parents where `make` says so; OSError where there is none.

    `top` is a descriptor, or a path that is no link itself.
    """
    with ExitStack() as stack:
        directory_fd = os.dup(top) if isinstance(top, int) else os.open(top, _DIRECTORY_FLAGS | os.O_NOFOLLOW)
        stack.callback(os.close, directory_fd)
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=directory_fd)
            directory_fd = os.open(part, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=directory_fd)
            stack.callback(os.close, directory_fd)
        yield directory_fd


def read_file_below(top: str | os.PathLike[str], name: AnyStr, max_bytes: int) -> bytes | None:
    """The bytes of a plain file below `top`; None for one that is too long, no file, or behind a link."""
    *parents, file_name = name.split("/") if isinstance(name, str) else name.split(b"/")
    with suppress(OSError), open_directory_below(top, parents) as directory_fd:
        return _read_plain(os.open(file_name, _FILE_FLAGS | os.O_NOFOLLOW, dir_fd=directory_fd), max_bytes)
    return None


def read_plain_file(path: str | os.PathLike[str], max_bytes: int, *, follow: bool = False) -> bytes | None:
    """The bytes of a plain file; None for one that is too long, no file, or a link that is not to be followed."""
    with suppress(OSError):
        return _read_plain(os.open(path, _FILE_FLAGS | (0 if follow else os.O_NOFOLLOW)), max_bytes)
    return None


def _read_plain(fd: int, max_bytes: int) -> bytes | None:
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return None
        data = file.read(status.st_size + 1)  # room for all of it and no more: most files are small
    return data if len(data) <= status.st_size else None  # one that grows is being written


# ── remove directory ────────────────────────────────────────────────────────────────────────────────────────────────────

# Removes directories whatever is in them: write-protected, deeper than a path can be, full of odd names.
#
# **Invariant:** links are removed, never followed; nothing outside the directory is touched.


def delete_path(path: "Path") -> None:
    """Removes a file, a link or a directory with all it holds; one that is not there is fine."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            _delete_directory_tree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{path} could not be removed: {error}; remove it by hand") from error


def _delete_directory_tree(top: "Path") -> None:
    """Level by level: what lies deeper is moved up first, so that no path grows long and nothing recurses."""
    numbers = itertools.count()
    while directories := _delete_files_in(top):
        for directory in directories:
            for deeper in _delete_files_in(directory):
                _move_directory_up(deeper, top, numbers)
            os.rmdir(directory)
    os.rmdir(top)


def _delete_files_in(directory: "Path") -> "list[Path]":
    """Removes everything from a directory but its directories, and gives those."""
    os.chmod(directory, stat.S_IRWXU)
    directories = []
    with os.scandir(directory) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                directories.append(directory / entry.name)
            else:
                os.unlink(entry.path)
    return directories


def _move_directory_up(directory: "Path", top: "Path", numbers: "itertools.count[int]") -> None:
    os.chmod(directory, stat.S_IRWXU)  # one that may not be written cannot be moved
    for number in numbers:
        try:
            os.rename(directory, top / f".{number}")
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
        else:
            return
