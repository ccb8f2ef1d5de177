"""What a command made of a project, kept: a later story that comes to the same point and types the same continues there.

A project is the same when every file below it is, byte for byte; only git's index, which holds inode numbers, is not
compared. The copies are in memory, without the zeros at the end of a store that has room to grow.
**Invariant:** a command that leaves something running is run each time.
"""

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import NamedTuple

from tests.support.command_launcher import CommandCall, CompletedCommand, RunCommand
from tests.support.sample_project import Project

SNAPSHOT_COMMANDS = {  # what takes long enough to be kept
    *(("run",), ("approve",), ("accept-evidence",), ("answer",)),
    *(("tasks", word) for word in ("new", "next", "accept", "redo", "revert")),
}


class SavedFile(NamedTuple):
    """A file, a folder or a link as it was."""

    mode: int
    changed: int
    size: int = 0
    content: bytes = b""


class ProjectSnapshots:
    """The states of one folder, and what each command said and left when it was run there."""

    def __init__(self, place: Path, launch: RunCommand) -> None:
        self.place, self._launch = place, launch
        self._known: dict[bytes, tuple[CompletedCommand, dict[str, SavedFile]]] = {}

    def launch(self, order: CommandCall) -> CompletedCommand:
        """Runs a command to its end, or gives what it gave when it was run from this very state."""
        words = tuple(order.words)
        if not {words[:1], words[:2]} & SNAPSHOT_COMMANDS or "--detach" in words or order.feed is not None:
            return self._launch(order)
        key = self._digest(order)
        if key in self._known:
            done, files = self._known[key]
            self._put_back(files)
        else:
            done = self._launch(order)
            self._known[key] = done, self._read()
        return done

    def begin(self, template: Path) -> Project:
        """The project with which a story begins."""
        self._empty()
        project = Project(self.place, template)
        project.launcher = self.launch
        return project

    def _empty(self) -> None:
        for entry in os.scandir(self.place):
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)

    def _digest(self, order: CommandCall) -> bytes:
        digest = hashlib.sha256(repr((order.words, str(order.cwd), sorted(order.env.items()))).encode())
        for name, kept in self._read().items():
            if not name.endswith(".git/index"):
                digest.update(
                    repr((name, kept.mode, kept.size, len(kept.content))).encode("utf-8", "surrogatepass")
                )
                digest.update(kept.content)
        return digest.digest()

    def _read(self) -> dict[str, SavedFile]:
        found: dict[str, SavedFile] = {}
        folders = [self.place]
        while folders:
            folder = folders.pop()
            for entry in sorted(os.scandir(folder), key=lambda e: e.name):
                told, name = entry.stat(follow_symlinks=False), os.path.relpath(entry.path, self.place)
                content = b""
                if stat.S_ISDIR(told.st_mode):
                    folders.append(Path(entry.path))
                elif stat.S_ISLNK(told.st_mode):
                    content = os.fsencode(os.readlink(entry.path))
                elif stat.S_ISREG(told.st_mode):
                    content = Path(entry.path).read_bytes().rstrip(b"\0")
                found[name] = SavedFile(told.st_mode, told.st_mtime_ns, told.st_size, content)
        return found

    def _put_back(self, files: dict[str, SavedFile]) -> None:
        self._empty()
        for name, kept in files.items():
            path = self.place / name
            if stat.S_ISDIR(kept.mode):
                path.mkdir()
            elif stat.S_ISLNK(kept.mode):
                path.symlink_to(os.fsdecode(kept.content))
            elif stat.S_ISREG(kept.mode):
                path.write_bytes(kept.content)
                os.truncate(path, kept.size)
                os.utime(path, ns=(kept.changed, kept.changed))
        for name, kept in files.items():
            if stat.S_ISREG(kept.mode) or stat.S_ISDIR(kept.mode):
                os.chmod(self.place / name, stat.S_IMODE(kept.mode))
