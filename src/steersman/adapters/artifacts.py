"""The files people read, written atomically below a run's own directory, links never followed."""

import contextlib
import os
import re
from pathlib import Path

from steersman.errors import WorkspaceError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,99}){0,4}")


class FolderArtifacts:
    """Implements ports.artifacts.Artifacts in `.steersman/runs/` of the repository."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, run: str) -> str:
        return str(self._root / run)

    def write(self, run: str, name: str, data: bytes) -> None:
        """The file holds the old bytes or the new ones, never half of them."""
        if not NAME.fullmatch(name) or not NAME.fullmatch(run):
            raise WorkspaceError(f"{name!r} is no artifact name")
        self._root.mkdir(parents=True, exist_ok=True)
        self._ignored()
        fd = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            *folders, last = (run, *name.split("/"))
            for part in folders:
                fd = _into(fd, part)
            _replace(fd, last, data)
        except OSError as error:
            raise WorkspaceError(
                f"cannot write {self._root / run / name}: {error.strerror}; remove what is in its place"
            ) from error
        finally:
            os.close(fd)

    def _ignored(self) -> None:
        """Artifacts are not part of the user's tree."""
        ignore = self._root.parent / ".gitignore"
        if not ignore.exists():
            with contextlib.suppress(OSError):
                ignore.write_text("/runs/\n/.gitignore\n")  # this file too: the checkout stays as it was


def _into(fd: int, part: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, 0o755, dir_fd=fd)
    inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    os.close(fd)  # only now: where opening fails, the caller still has it to close
    return inner


def _replace(fd: int, name: str, data: bytes) -> None:
    part = f".{name}.{os.getpid()}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part, dir_fd=fd)  # whatever was put there may have another name elsewhere
    out = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=fd)
    with os.fdopen(out, "wb") as file:
        file.write(data)
    os.replace(part, name, src_dir_fd=fd, dst_dir_fd=fd)
