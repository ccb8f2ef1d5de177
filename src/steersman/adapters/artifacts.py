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

from steersman.errors import WorkspaceError
from steersman.judges.task.found import Found
from steersman.judges.text import clip

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_OURS, _RUN = 1, 3  # of what is opened on the way: `.steersman`, and the run's own folder
_PIECE = 1 << 20
_UNFINISHED = re.compile(r"\.([0-9]+)-[0-9]+\.part")  # the process and the thread that are at it
_KINDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe",
          stat.S_IFSOCK: "a socket"}  # fmt: skip


class FolderArtifacts:
    """Implements ports.artifacts.Artifacts in one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._top, self._way = root.parent.parent, (root.parent.name, root.name)
        self._swept: set[str] = set()

    def folder(self, run: str) -> str:
        return str(self._root / run)

    def write(self, run: str, name: str, data: bytes, *, durable: bool = False) -> None:
        *folders, last = _fit(run, name)
        try:
            self._top.mkdir(parents=True, exist_ok=True)
            with self._opened(folders, make=True, durable=durable) as fds:
                if isinstance(fds, Found):
                    raise self._refused("write", run, name, fds.detail)
                self._ignored(fds[_OURS])
                self._sweep(run, fds[_RUN])
                _replace(fds[_RUN], fds[-1], last, data, durable=durable)
        except IsADirectoryError as error:
            raise self._refused("write", run, name, f"{last} is a folder") from error
        except OSError as error:
            raise self._refused("write", run, name, str(error.strerror)) from error

    def read(self, run: str, name: str, most: int = 16 * 1024 * 1024) -> Found:
        *folders, last = _inside(run, name)
        with self._opened(folders) as fds:
            return fds if isinstance(fds, Found) else _file(last, fds[-1], most)

    def names(self, run: str, folder: str, most: int = 20_000) -> tuple[str, ...]:
        from steersman.judges.artifact_names import DEEPEST

        parts = _inside(run, folder) if folder else (_run(run),)
        with self._opened(parts) as fds:
            if isinstance(fds, Found):
                return () if fds.kind == "missing" else ("",)
            below = (
                n for n in _below(fds[-1], "", DEEPEST - len(parts)) if folder or not _UNFINISHED.fullmatch(n)
            )
            try:
                return tuple(sorted(islice(below, most + 1)))
            except OSError:
                return ("",)

    def remove(self, run: str, name: str) -> None:
        *folders, last = _inside(run, name)
        with self._opened(folders) as fds:
            if isinstance(fds, Found):
                if fds.kind in {"link", "unreadable"}:
                    raise self._refused("remove", run, name, fds.detail)
                return  # where a file or nothing is in the place of a folder, nothing is in that folder
            if (why := _unlinked(last, fds[-1])) is not None:
                raise self._refused("remove", run, name, why)
            _prune(fds[_RUN:], folders[1:])

    def _opened(
        self, folders: Sequence[str], *, make: bool = False, durable: bool = False
    ) -> contextlib.AbstractContextManager[list[int] | Found]:
        return _opened(self._top, (*self._way, *folders), make=make, durable=durable)

    def _refused(self, verb: str, run: str, name: str, why: str) -> WorkspaceError:
        linked = why.endswith(_KINDS[stat.S_IFLNK])
        first = "remove the link (what it leads to stays)" if linked else "put that right"
        return WorkspaceError(f"cannot {verb} {self._root / run / name}: {why}; {first} and try again")

    @staticmethod
    def _ignored(ours: int) -> None:
        """Artifacts are not part of the user's tree."""
        with (
            contextlib.suppress(OSError),
            open(os.open(".gitignore", _NEW, 0o644, dir_fd=ours), "wb") as file,
        ):
            file.write(b"/runs/\n/.gitignore\n")  # this file too: the checkout stays as it was

    def _sweep(self, run: str, top: int) -> None:
        """Once for each run: what killed processes have left unfinished."""
        if run in self._swept:
            return
        self._swept.add(run)
        for name in os.listdir(top):
            match = _UNFINISHED.fullmatch(name)
            if match and not _lives(int(match[1])):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=top)


def _fit(run: str, name: str) -> tuple[str, ...]:
    """The parts of a name that a file of ours may have."""
    from steersman.judges.artifact_names import (
        name_problem,
    )  # its tables are long, and most commands open nothing

    if (trouble := name_problem(name)) is not None:
        raise WorkspaceError(f"{clip(repr(name), 200)} is no artifact name: it {trouble}")
    return (_run(run), *name.split("/"))


def _inside(run: str, name: str) -> tuple[str, ...]:
    """The parts of a name that anything in a run's folder may have, as `names` tells it."""
    from steersman.judges.artifact_names import DEEPEST

    parts = name.removesuffix("/").split("/")
    if len(parts) > DEEPEST or not all(map(_is_one, parts)):
        raise WorkspaceError(f"{clip(repr(name), 200)} is no name of anything in a run's folder")
    return (_run(run), *parts)


def _is_one(part: str) -> bool:
    try:
        return part not in {"", ".", ".."} and b"\0" not in os.fsencode(part)
    except UnicodeEncodeError:
        return False


def _run(run: str) -> str:
    from steersman.judges.artifact_names import name_problem

    if name_problem(run) is not None or "/" in run:
        raise WorkspaceError(f"{clip(repr(run), 200)} is no run; `steersman runs` lists them")
    return run


@contextlib.contextmanager
def _opened(
    top: Path, parts: Sequence[str], *, make: bool = False, durable: bool = False
) -> Iterator[list[int] | Found]:
    """The top and these folders, each opened in the one before it; or what is found in the place of one."""
    with contextlib.ExitStack() as stack:
        fds: list[int] = []
        for part in (str(top), *parts):
            above = fds[-1] if fds else None
            if make and above is not None:
                _make(part, above, durable=durable)
            try:
                fds.append(os.open(part, _FOLDER, dir_fd=above))
            except OSError as error:
                yield _not_opened(part, above, error)
                return
            stack.callback(os.close, fds[-1])
        yield fds


def _make(part: str, above: int, *, durable: bool) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, 0o755, dir_fd=above)
        if durable:
            os.fsync(above)


def _not_opened(part: str, above: int | None, error: OSError) -> Found:
    """What is there where a folder or file could not be opened."""
    seen = _seen(part, above)
    if isinstance(seen, Found):
        return seen
    if isinstance(error, NotADirectoryError):
        return _strange(part, seen.st_mode)
    return Found("unreadable", detail=f"{os.path.basename(part)}: {error.strerror}")


def _seen(part: str, above: int | None) -> os.stat_result | Found:
    """What a name stands for; as something found where it is neither file nor folder, or cannot be looked at."""
    try:
        seen = os.stat(part, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return Found("missing", detail=f"{os.path.basename(part)} is not there")
    except OSError as error:
        return Found("unreadable", detail=f"{os.path.basename(part)}: {error.strerror}")
    return seen if stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode) else _strange(part, seen.st_mode)


def _strange(part: str, mode: int) -> Found:
    kind = _KINDS.get(stat.S_IFMT(mode), "a device")
    return Found("link" if stat.S_ISLNK(mode) else "other", detail=f"{os.path.basename(part)} is {kind}")


def _file(name: str, above: int, most: int) -> Found:
    seen = _seen(name, above)
    if isinstance(seen, Found):  # not even opened: a device may do something then
        return seen
    try:
        fd = os.open(name, _FILE, dir_fd=above)
    except OSError as error:
        return _not_opened(name, above, error)
    try:
        now = os.fstat(fd)
        if not stat.S_ISREG(now.st_mode):
            return _strange(name, now.st_mode)
        data = _bytes(fd, most + 1) if now.st_size <= most else None
    except OSError as error:
        return Found("unreadable", detail=f"{name}: {error.strerror}")
    finally:
        os.close(fd)
    if data is None or len(data) > most:
        return Found("too_long", detail=f"{name} has more than {most} bytes")
    return Found("file", data)


def _bytes(fd: int, most: int) -> bytes:
    pieces: list[bytes] = []
    while most and (piece := os.read(fd, min(most, _PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _below(fd: int, within: str, deeper: int) -> Iterator[str]:
    """Everything below an open folder that is no folder; and those folders that cannot be looked into."""
    with os.scandir(fd) as entries:
        for entry in entries:
            name = within + os.fsencode(entry.name).decode("utf-8", "backslashreplace")
            if not entry.is_dir(follow_symlinks=False):
                yield name
                continue
            inner = _inner(entry.name, fd) if deeper > 0 else None
            if inner is None:
                yield f"{name}/"
                continue
            try:
                yield from _below(inner, f"{name}/", deeper - 1)
            finally:
                os.close(inner)


def _inner(name: str, above: int) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError:
        return None


def _replace(top: int, fd: int, name: str, data: bytes, *, durable: bool) -> None:
    part = f".{os.getpid()}-{threading.get_native_id()}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part, dir_fd=top)  # whatever was put there may have another name elsewhere
    try:
        with open(os.open(part, _NEW, 0o644, dir_fd=top), "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, name, src_dir_fd=top, dst_dir_fd=fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=top)
        raise
    if durable:
        os.fsync(fd)


def _unlinked(name: str, above: int) -> str | None:
    """Takes a name away; why it cannot be, or None."""
    try:
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return None
    except OSError as error:
        seen = _seen(name, above)
        folder = not isinstance(seen, Found) and stat.S_ISDIR(seen.st_mode)
        return f"{name} is a folder" if folder else str(error.strerror)
    return None


def _prune(fds: Sequence[int], folders: Sequence[str]) -> None:
    """Removes folders that are empty now, the innermost first; the run's own stays."""
    for above, part in reversed(list(zip(fds, folders, strict=False))):
        try:
            os.rmdir(part, dir_fd=above)
        except OSError:
            return


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
