"""A run's own files on disk, below `.steersman/runs/` of the repository.

Every part of a name is looked at before the next one. A file under way lies at the top of its run's folder until it is
whole: a process that is killed leaves nothing between the artifacts.
**Invariant:** no link is followed, no pipe or device opened; a file holds the old bytes or the new ones.
"""

import contextlib
import os
import re
import stat
import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from steersman.adapters.storage.durable_files import sync_directory
from steersman.contracts.artifacts import ArtifactOnDisk
from steersman.errors import WorkspaceError
from steersman.judges.text import clip_text

_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_PART_FILE_NAME = re.compile(r"\.[0-9]+-[0-9]+\.part")  # the process and the thread that are at it
_FILE_KIND_WORDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe",
          stat.S_IFSOCK: "a socket"}  # fmt: skip


class DirectoryArtifacts:
    """Implements ports.artifacts.Artifacts in one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top, self._way = root.parent.parent, (root.parent.name, root.name)

    def folder(self, run: str) -> str:
        return str(self._root / run)

    def write(self, run: str, name: str, data: bytes, *, durable: bool = False) -> None:
        *directories, last = _new_artifact_parts(run, name)
        try:
            self._top.mkdir(parents=True, exist_ok=True)
            directory = self._find_directory(directories, make=True, durable=durable)
            if isinstance(directory, ArtifactOnDisk):
                raise self._refused("write", run, name, directory.detail)
            self._ignore_artifacts()
            _replace_artifact_file(self._root / run, directory / last, data, durable=durable)
        except IsADirectoryError as error:
            raise self._refused("write", run, name, f"{last} is a folder") from error
        except OSError as error:
            raise self._refused("write", run, name, str(error.strerror)) from error

    def read(self, run: str, name: str, most: int = 16 * 1024 * 1024) -> ArtifactOnDisk:
        *directories, last = _existing_artifact_parts(run, name)
        directory = self._find_directory(directories)
        if isinstance(directory, ArtifactOnDisk):
            return directory
        return _read_artifact_file(directory / last, most)

    def names(self, run: str, folder: str, most: int = 20_000) -> tuple[str, ...]:
        from steersman.judges.artifact_names import MAX_ARTIFACT_DEPTH

        parts = _existing_artifact_parts(run, folder) if folder else (_check_run_name(run),)
        directory = self._find_directory(parts)
        if isinstance(directory, ArtifactOnDisk):
            return () if directory.kind == "missing" else ("",)
        names = (
            n
            for n in _list_artifact_names(directory, "", MAX_ARTIFACT_DEPTH - len(parts))
            if folder or not _PART_FILE_NAME.fullmatch(n)
        )
        try:
            return tuple(sorted(islice(names, most + 1)))
        except OSError:
            return ("",)

    def remove(self, run: str, name: str) -> None:
        *directories, last = _existing_artifact_parts(run, name)
        directory = self._find_directory(directories)
        if isinstance(directory, ArtifactOnDisk):
            if directory.kind in {"link", "unreadable"}:
                raise self._refused("remove", run, name, directory.detail)
            return  # where a file or nothing is in the place of a folder, nothing is in that folder
        if (reason := _remove_artifact_file(directory / last)) is not None:
            raise self._refused("remove", run, name, reason)
        _prune_empty_directories(directory, self._root / run)

    def _find_directory(
        self, directories: Sequence[str], *, make: bool = False, durable: bool = False
    ) -> Path | ArtifactOnDisk:
        """The last of these folders, or what is found in the place of one."""
        path = self._top
        for part in (*self._way, *directories):
            path /= part
            if make:
                _make_artifact_directory(path, durable=durable)
            status = _stat_artifact(path)
            if isinstance(status, ArtifactOnDisk):
                return status
            if not stat.S_ISDIR(status.st_mode):
                return _describe_artifact_kind(path, status.st_mode)
            if (problem := _find_listing_problem(path)) is not None:
                return problem
        return path

    def _refused(self, verb: str, run: str, name: str, reason: str) -> WorkspaceError:
        is_link = reason.endswith(_FILE_KIND_WORDS[stat.S_IFLNK])
        advice = "remove the link (what it leads to stays)" if is_link else "put that right"
        return WorkspaceError(f"cannot {verb} {self._root / run / name}: {reason}; {advice} and try again")

    def _ignore_artifacts(self) -> None:
        """Artifacts are not part of the user's tree."""
        with (
            contextlib.suppress(OSError),
            open(os.open(self._root.parent / ".gitignore", _CREATE_FILE, 0o644), "wb") as file,
        ):
            file.write(b"/runs/\n/.gitignore\n")  # this file too: the checkout stays as it was


def _new_artifact_parts(run: str, name: str) -> tuple[str, ...]:
    """The parts of a name that an artifact may have."""
    from steersman.judges.artifact_names import (
        find_file_name_problem,
    )  # its tables are long, and most commands open nothing

    if (problem := find_file_name_problem(name)) is not None:
        raise WorkspaceError(f"{clip_text(repr(name), 200)} is no artifact name: it {problem}")
    return (_check_run_name(run), *name.split("/"))


def _existing_artifact_parts(run: str, name: str) -> tuple[str, ...]:
    """The parts of a name that anything in a run's folder may have, as `names` tells it."""
    from steersman.judges.artifact_names import MAX_ARTIFACT_DEPTH

    parts = name.removesuffix("/").split("/")
    if len(parts) > MAX_ARTIFACT_DEPTH or not all(map(_is_single_path_part, parts)):
        raise WorkspaceError(f"{clip_text(repr(name), 200)} is no name of anything in a run's folder")
    return (_check_run_name(run), *parts)


def _is_single_path_part(part: str) -> bool:
    try:
        return part not in {"", ".", ".."} and b"\0" not in os.fsencode(part)
    except UnicodeEncodeError:
        return False


def _check_run_name(run: str) -> str:
    from steersman.judges.artifact_names import find_file_name_problem

    if find_file_name_problem(run) is not None or "/" in run:
        raise WorkspaceError(f"{clip_text(repr(run), 200)} is no run; `steersman runs` lists them")
    return run


def _make_artifact_directory(path: Path, *, durable: bool) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir(0o755)
        if durable:
            sync_directory(path.parent)


def _stat_artifact(path: Path) -> os.stat_result | ArtifactOnDisk:
    """What a name stands for; as something found where it is neither file nor folder, or cannot be looked at."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ArtifactOnDisk("missing", detail=f"{path.name} is not there")
    except OSError as error:
        return _describe_unreadable(path, error)
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return status if is_plain else _describe_artifact_kind(path, status.st_mode)


def _describe_unreadable(path: Path, error: OSError) -> ArtifactOnDisk:
    return ArtifactOnDisk("unreadable", detail=f"{path.name}: {error.strerror}")


def _describe_artifact_kind(path: Path, mode: int) -> ArtifactOnDisk:
    kind = _FILE_KIND_WORDS.get(stat.S_IFMT(mode), "a device")
    return ArtifactOnDisk("link" if stat.S_ISLNK(mode) else "other", detail=f"{path.name} is {kind}")


def _read_artifact_file(path: Path, limit: int) -> ArtifactOnDisk:
    status = _stat_artifact(path)
    if isinstance(status, ArtifactOnDisk):  # not even opened: a device may do something then
        return status
    if stat.S_ISDIR(status.st_mode):
        return _find_listing_problem(path) or _describe_artifact_kind(path, status.st_mode)
    try:
        with open(os.open(path, _OPEN_FILE), "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        return _describe_unreadable(path, error)
    if len(data) > limit:
        return ArtifactOnDisk("too_long", detail=f"{path.name} has more than {limit} bytes")
    return ArtifactOnDisk("file", data)


def _list_artifact_names(directory: Path, prefix: str, levels_left: int) -> Iterator[str]:
    """Everything below a folder that is no folder; and those folders that cannot be looked into."""
    with os.scandir(directory) as entries:
        for entry in entries:
            name = prefix + os.fsencode(entry.name).decode("utf-8", "backslashreplace")
            if not entry.is_dir(follow_symlinks=False):
                yield name
            elif levels_left > 0 and _find_listing_problem(directory / entry.name) is None:
                yield from _list_artifact_names(directory / entry.name, f"{name}/", levels_left - 1)
            else:
                yield f"{name}/"


def _find_listing_problem(directory: Path) -> ArtifactOnDisk | None:
    try:
        os.scandir(directory).close()
    except OSError as error:
        return _describe_unreadable(directory, error)
    return None


def _replace_artifact_file(run_directory: Path, path: Path, data: bytes, *, durable: bool) -> None:
    part = run_directory / f".{os.getpid()}-{threading.get_native_id()}.part"
    part.unlink(missing_ok=True)  # whatever was put there may have another name elsewhere
    try:
        with open(os.open(part, _CREATE_FILE, 0o644), "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    if durable:
        sync_directory(path.parent)


def _remove_artifact_file(path: Path) -> str | None:
    """Takes a name away; why it cannot be, or None."""
    try:
        path.unlink()
    except FileNotFoundError:
        return None
    except OSError as error:
        status = _stat_artifact(path)
        is_directory = not isinstance(status, ArtifactOnDisk) and stat.S_ISDIR(status.st_mode)
        return f"{path.name} is a folder" if is_directory else str(error.strerror)
    return None


def _prune_empty_directories(directory: Path, run_directory: Path) -> None:
    """Removes folders that are empty now, the innermost first; the run's own stays."""
    while directory != run_directory:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent
