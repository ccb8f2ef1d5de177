"""Frozen plans in folders: written beside their place, synced, then renamed to it.

**Invariant:** a folder holds a whole plan or is not there; nothing that a plan did not put there is ever removed.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from steersman.adapters.storage.durable_files import sync_directory, write_new_file
from steersman.errors import WorkspaceError

MAX_PLAN_DIRECTORY_FILES = 200
MAX_PLAN_FILE_BYTES = 64 * 1024 * 1024


class DirectoryPlans:
    """Implements ports.plans.Plans; `runs` is where the artifacts of runs are, `reserved` the directories that no plan goes into."""

    def __init__(self, runs: Path, reserved: Sequence[Path] = ()) -> None:
        self._runs, self._reserved = runs, reserved

    def default_directory(self, run: str) -> str:
        return str(self._runs / run / "plan")

    def find_directory_problem(self, place: str) -> str | None:
        """Whether a person can have a plan there: not where git or steersman keep what is theirs."""
        real = Path(os.path.realpath(place))
        is_reserved = any(real.is_relative_to(os.path.realpath(reserved)) for reserved in self._reserved)
        if is_reserved or ".git" in real.parts:
            return f"{place} is kept for git's or steersman's own: choose another place with --out"
        return self._occupied(place)

    def _occupied(self, place: str) -> str | None:
        """Empty or absent is well; what holds a plan or anything else is left alone."""
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            return _plan_parent_problem(place)
        except OSError as error:
            return f"{place} cannot be looked at ({error.strerror}): choose another place with --out"
        if not stat.S_ISDIR(status.st_mode):
            return f"{place} is no folder: choose another place with --out"
        return f"{place} is not empty: choose another place with --out" if os.listdir(place) else None

    def write(self, place: str, files: Mapping[str, bytes]) -> None:
        """Also after a crash: the same plan may lie there already."""
        if os.path.isdir(place) and self.read(place) == dict(files):
            return
        problem = self._occupied(place)
        if problem:
            raise WorkspaceError(problem)
        try:
            self._write(Path(place), files)
        except OSError as error:
            raise WorkspaceError(f"the plan was not written to {place}: {error.strerror}") from error

    def _write(self, place: Path, files: Mapping[str, bytes]) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.urandom(6).hex()}.part")
        temporary.mkdir()
        try:
            for name, data in files.items():
                write_new_file(temporary / name, data, 0o644)
            sync_directory(temporary)
            os.rename(temporary, place)
            sync_directory(place.parent)
        except BaseException:
            import shutil  # slow to import, and a plan that is whole leaves nothing to remove

            shutil.rmtree(temporary, ignore_errors=True)
            raise

    def read(self, place: str) -> dict[str, bytes]:
        if os.path.islink(place):
            raise WorkspaceError(
                f"{place} is a link, which is not followed: name the folder of the plan itself"
            )
        try:
            names = sorted(os.listdir(place))
        except OSError as error:
            raise WorkspaceError(f"there is no plan in {place}: {error.strerror}") from error
        if len(names) > MAX_PLAN_DIRECTORY_FILES:
            raise WorkspaceError(f"{place} holds {len(names)} files: that is no frozen plan")
        return {name: _read_plan_file(Path(place, name)) for name in names}


def _plan_parent_problem(place: str) -> str | None:
    """The nearest folder above that is there has to take a new one."""
    parent = Path(place).absolute().parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if parent.is_dir() and os.access(parent, os.W_OK | os.X_OK):
        return None
    return f"{parent} takes no new folder: choose another place with --out"


def _read_plan_file(path: Path) -> bytes:
    """Nothing where it is no plain file of bearable size: the digest of nothing fits nothing."""
    try:
        status = path.lstat()
        is_readable = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_PLAN_FILE_BYTES
        return path.read_bytes() if is_readable else b""
    except OSError:
        return b""
