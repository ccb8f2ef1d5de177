"""Removes directories whatever is in them: write-protected, deeper than a path can be, full of odd names.

**Invariant:** links are removed, never followed; nothing outside the directory is touched.
"""

import errno
import itertools
import os
import stat
from pathlib import Path

from steersman.errors import WorkspaceError


def delete_path(path: Path) -> None:
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


def _delete_directory_tree(top: Path) -> None:
    """Level by level: what lies deeper is moved up first, so that no path grows long and nothing recurses."""
    numbers = itertools.count()
    while directories := _delete_files_in(top):
        for directory in directories:
            for deeper in _delete_files_in(directory):
                _move_directory_up(deeper, top, numbers)
            os.rmdir(directory)
    os.rmdir(top)


def _delete_files_in(directory: Path) -> list[Path]:
    """Removes everything from a directory but its directories, and gives those."""
    os.chmod(directory, stat.S_IRWXU)
    directories = []
    with os.scandir(directory) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                directories.append(Path(entry.path))
            else:
                os.unlink(entry.path)
    return directories


def _move_directory_up(directory: Path, top: Path, numbers: "itertools.count[int]") -> None:
    os.chmod(directory, stat.S_IRWXU)  # one that may not be written cannot be moved
    for number in numbers:
        try:
            os.rename(directory, top / f".{number}")
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
        else:
            return
