"""Removes directories whatever is in them: write-protected, deeper than a path can be, full of odd names.

**Invariant:** links are removed, never followed; nothing outside the directory is touched.
"""

import errno
import itertools
import os
import stat
from pathlib import Path

from steersman.errors import WorkspaceError


def delete(path: Path) -> None:
    """Removes a file, a link or a directory with all it holds; one that is not there is fine."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            _delete_directory(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{path} could not be removed: {error}; remove it by hand") from error


def _delete_directory(top: Path) -> None:
    """Level by level: what lies deeper is moved up first, so that no path grows long and nothing recurses."""
    numbers = itertools.count()
    while folders := _emptied(top):
        for folder in folders:
            for deeper in _emptied(folder):
                _move_up(deeper, top, numbers)
            os.rmdir(folder)
    os.rmdir(top)


def _emptied(folder: Path) -> list[Path]:
    """Removes everything from a directory but its directories, and gives those."""
    os.chmod(folder, stat.S_IRWXU)
    found = []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                found.append(Path(entry.path))
            else:
                os.unlink(entry.path)
    return found


def _move_up(folder: Path, top: Path, numbers: "itertools.count[int]") -> None:
    os.chmod(folder, stat.S_IRWXU)  # one that may not be written cannot be moved
    for number in numbers:
        try:
            os.rename(folder, top / f".{number}")
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
        else:
            return
