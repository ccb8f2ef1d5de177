"""A run's own files on disk, below `.steersman/runs/` of the repository.

Every part of a name is opened in the one before it, `.steersman` itself in the repository. A file under way lies at the top of its run's folder until it is
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

from steersman.contracts.artifacts import ArtifactOnDisk
from steersman.errors import WorkspaceError
from steersman.judges.text import clip_text

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_CREATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_STEERSMAN_DIR_INDEX, _RUN_DIR_INDEX = (
    1,
    3,
)  # of what is opened on the way: `.steersman`, and the run's own folder
_READ_SIZE = 1 << 20
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
            with self._open_directories(directories, make=True, durable=durable) as fds:
                if isinstance(fds, ArtifactOnDisk):
                    raise self._refused("write", run, name, fds.detail)
                self._ignored(fds[_STEERSMAN_DIR_INDEX])
                _replace_artifact_file(fds[_RUN_DIR_INDEX], fds[-1], last, data, durable=durable)
        except IsADirectoryError as error:
            raise self._refused("write", run, name, f"{last} is a folder") from error
        except OSError as error:
            raise self._refused("write", run, name, str(error.strerror)) from error

    def read(self, run: str, name: str, most: int = 16 * 1024 * 1024) -> ArtifactOnDisk:
        *directories, last = _existing_artifact_parts(run, name)
        with self._open_directories(directories) as fds:
            return fds if isinstance(fds, ArtifactOnDisk) else _read_artifact_file(last, fds[-1], most)

    def names(self, run: str, folder: str, most: int = 20_000) -> tuple[str, ...]:
        from steersman.judges.artifact_names import MAX_ARTIFACT_DEPTH

        parts = _existing_artifact_parts(run, folder) if folder else (_check_run_name(run),)
        with self._open_directories(parts) as fds:
            if isinstance(fds, ArtifactOnDisk):
                return () if fds.kind == "missing" else ("",)
            names = (
                n
                for n in _list_artifact_names(fds[-1], "", MAX_ARTIFACT_DEPTH - len(parts))
                if folder or not _PART_FILE_NAME.fullmatch(n)
            )
            try:
                return tuple(sorted(islice(names, most + 1)))
            except OSError:
                return ("",)

    def remove(self, run: str, name: str) -> None:
        *directories, last = _existing_artifact_parts(run, name)
        with self._open_directories(directories) as fds:
            if isinstance(fds, ArtifactOnDisk):
                if fds.kind in {"link", "unreadable"}:
                    raise self._refused("remove", run, name, fds.detail)
                return  # where a file or nothing is in the place of a folder, nothing is in that folder
            if (reason := _remove_artifact_file(last, fds[-1])) is not None:
                raise self._refused("remove", run, name, reason)
            _prune_empty_directories(fds[_RUN_DIR_INDEX:], directories[1:])

    def _open_directories(
        self, directories: Sequence[str], *, make: bool = False, durable: bool = False
    ) -> contextlib.AbstractContextManager[list[int] | ArtifactOnDisk]:
        return _open_artifact_directories(self._top, (*self._way, *directories), make=make, durable=durable)

    def _refused(self, verb: str, run: str, name: str, reason: str) -> WorkspaceError:
        is_link = reason.endswith(_FILE_KIND_WORDS[stat.S_IFLNK])
        advice = "remove the link (what it leads to stays)" if is_link else "put that right"
        return WorkspaceError(f"cannot {verb} {self._root / run / name}: {reason}; {advice} and try again")

    @staticmethod
    def _ignored(directory_fd: int) -> None:
        """Artifacts are not part of the user's tree."""
        with (
            contextlib.suppress(OSError),
            open(os.open(".gitignore", _CREATE_FILE, 0o644, dir_fd=directory_fd), "wb") as file,
        ):
            file.write(b"/runs/\n/.gitignore\n")  # this file too: the checkout stays as it was


def _new_artifact_parts(run: str, name: str) -> tuple[str, ...]:
    """The parts of a name that a file of ours may have."""
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


@contextlib.contextmanager
def _open_artifact_directories(
    top: Path, parts: Sequence[str], *, make: bool = False, durable: bool = False
) -> Iterator[list[int] | ArtifactOnDisk]:
    """The top and these folders, each opened in the one before it; or what is found in the place of one."""
    with contextlib.ExitStack() as stack:
        fds: list[int] = []
        for part in (str(top), *parts):
            above = fds[-1] if fds else None
            if make and above is not None:
                _make_artifact_directory(part, above, durable=durable)
            try:
                fds.append(os.open(part, _OPEN_DIRECTORY, dir_fd=above))
            except OSError as error:
                yield _describe_open_failure(part, above, error)
                return
            stack.callback(os.close, fds[-1])
        yield fds


def _make_artifact_directory(part: str, above: int, *, durable: bool) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, 0o755, dir_fd=above)
        if durable:
            os.fsync(above)


def _describe_open_failure(part: str, above: int | None, error: OSError) -> ArtifactOnDisk:
    """What is there where a folder or file could not be opened."""
    status = _stat_artifact(part, above)
    if isinstance(status, ArtifactOnDisk):
        return status
    if isinstance(error, NotADirectoryError):
        return _describe_artifact_kind(part, status.st_mode)
    return ArtifactOnDisk("unreadable", detail=f"{os.path.basename(part)}: {error.strerror}")


def _stat_artifact(part: str, above: int | None) -> os.stat_result | ArtifactOnDisk:
    """What a name stands for; as something found where it is neither file nor folder, or cannot be looked at."""
    try:
        status = os.stat(part, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return ArtifactOnDisk("missing", detail=f"{os.path.basename(part)} is not there")
    except OSError as error:
        return ArtifactOnDisk("unreadable", detail=f"{os.path.basename(part)}: {error.strerror}")
    return (
        status
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        else _describe_artifact_kind(part, status.st_mode)
    )


def _describe_artifact_kind(part: str, mode: int) -> ArtifactOnDisk:
    kind = _FILE_KIND_WORDS.get(stat.S_IFMT(mode), "a device")
    return ArtifactOnDisk(
        "link" if stat.S_ISLNK(mode) else "other", detail=f"{os.path.basename(part)} is {kind}"
    )


def _read_artifact_file(name: str, above: int, limit: int) -> ArtifactOnDisk:
    status = _stat_artifact(name, above)
    if isinstance(status, ArtifactOnDisk):  # not even opened: a device may do something then
        return status
    try:
        fd = os.open(name, _OPEN_FILE, dir_fd=above)
    except OSError as error:
        return _describe_open_failure(name, above, error)
    try:
        opened_status = os.fstat(fd)
        if not stat.S_ISREG(opened_status.st_mode):
            return _describe_artifact_kind(name, opened_status.st_mode)
        data = _read_artifact_bytes(fd, limit + 1) if opened_status.st_size <= limit else None
    except OSError as error:
        return ArtifactOnDisk("unreadable", detail=f"{name}: {error.strerror}")
    finally:
        os.close(fd)
    if data is None or len(data) > limit:
        return ArtifactOnDisk("too_long", detail=f"{name} has more than {limit} bytes")
    return ArtifactOnDisk("file", data)


def _read_artifact_bytes(fd: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit and (piece := os.read(fd, min(limit, _READ_SIZE))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _list_artifact_names(fd: int, prefix: str, levels_left: int) -> Iterator[str]:
    """Everything below an open folder that is no folder; and those folders that cannot be looked into."""
    with os.scandir(fd) as entries:
        for entry in entries:
            name = prefix + os.fsencode(entry.name).decode("utf-8", "backslashreplace")
            if not entry.is_dir(follow_symlinks=False):
                yield name
                continue
            subdirectory_fd = _open_artifact_subdirectory(entry.name, fd) if levels_left > 0 else None
            if subdirectory_fd is None:
                yield f"{name}/"
                continue
            try:
                yield from _list_artifact_names(subdirectory_fd, f"{name}/", levels_left - 1)
            finally:
                os.close(subdirectory_fd)


def _open_artifact_subdirectory(name: str, above: int) -> int | None:
    try:
        return os.open(name, _OPEN_DIRECTORY, dir_fd=above)
    except OSError:
        return None


def _replace_artifact_file(
    part_directory_fd: int, directory_fd: int, name: str, data: bytes, *, durable: bool
) -> None:
    part = f".{os.getpid()}-{threading.get_native_id()}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part, dir_fd=part_directory_fd)  # whatever was put there may have another name elsewhere
    try:
        with open(os.open(part, _CREATE_FILE, 0o644, dir_fd=part_directory_fd), "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, name, src_dir_fd=part_directory_fd, dst_dir_fd=directory_fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=part_directory_fd)
        raise
    if durable:
        os.fsync(directory_fd)


def _remove_artifact_file(name: str, above: int) -> str | None:
    """Takes a name away; why it cannot be, or None."""
    try:
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return None
    except OSError as error:
        status = _stat_artifact(name, above)
        is_directory = not isinstance(status, ArtifactOnDisk) and stat.S_ISDIR(status.st_mode)
        return f"{name} is a folder" if is_directory else str(error.strerror)
    return None


def _prune_empty_directories(fds: Sequence[int], directories: Sequence[str]) -> None:
    """Removes folders that are empty now, the innermost first; the run's own stays."""
    for above, part in reversed(list(zip(fds, directories, strict=False))):
        try:
            os.rmdir(part, dir_fd=above)
        except OSError:
            return
