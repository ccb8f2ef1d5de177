"""Files that are whole or not there, and on disk before a caller goes on.

**Invariant:** what has a file's name holds the old bytes or all of the new ones; no link is written through.
"""

import contextlib
import os
import threading

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
