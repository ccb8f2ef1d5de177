"""Opens what lies below a directory part by part, so that no link leads out of it.

**Invariant:** every part of a path is opened by itself, without following a link, and no pipe makes a reader wait.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import AnyStr

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
