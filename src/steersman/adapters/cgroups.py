"""Control groups: a fence around one program that no fork, session or empty environment leads out of.

One below our own in every hierarchy that helps and lets us: version 2 (killed as one), or a `pids` controller (no fork
succeeds any more, then its members are killed). Its name holds the effect, so that a later process finds what a dead
one has left. **Invariant:** a help, never a need: where none can be made there is nothing here, and no error.
"""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

MOST_PROCESSES = 4096  # threads count too
_MARK = "steersman+"
_LONGEST = 200
_FOLDERS_SEEN = 5_000


class Place(NamedTuple):
    """A hierarchy: where it is mounted, and our own group in it."""

    root: str
    own: str


class Group(NamedTuple):
    """The folders of one program, one in each hierarchy."""

    folders: tuple[str, ...] = ()

    def members(self) -> set[int]:
        """Who is inside, also in a group that was made inside it; those nobody has reaped are among them."""
        pids: set[int] = set()
        for folder in self._all():
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", "rb") as file:
                pids |= set(map(int, file.read().split()))
        return pids - {0}  # 0: somebody that another namespace hides from us

    def kill(self) -> None:
        """Ends everyone inside; a fork that is under way does not escape."""
        for folder in self._all():
            if not _write(f"{folder}/cgroup.kill", "1") and _write(f"{folder}/pids.max", "0"):
                for pid in self.members():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Takes the folders away; False while somebody is inside."""
        for folder in self._all():
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return not any(map(os.path.isdir, self.folders))

    async def removed(self) -> None:
        """The same, with patience: the dead leave a group a moment after they have left everything else."""
        for pause in (0.001, 0.002, 0.004, *[0.01] * 20):
            if self.remove():
                return
            await asyncio.sleep(pause)

    def add(self, pid: int) -> None:
        """Puts a process inside; what it starts from now on is inside too."""
        for folder in self.folders:
            _write(f"{folder}/cgroup.procs", str(pid))

    def _all(self) -> Iterator[str]:
        for folder in self.folders:
            for inner, _, _ in os.walk(folder, topdown=False):
                yield inner


def fenced(effect: str, call: str) -> Group:
    """A new group for one call; without folders where none can be made."""
    name = f"{_MARK}{quote(effect, safe=':')}+{call}"
    if len(name) > _LONGEST:
        return Group()
    folders = []
    for place in places():
        folder = f"{place.own}/{name}"
        with contextlib.suppress(OSError):
            os.mkdir(folder)
            folders.append(folder)
            _write(f"{folder}/pids.max", str(MOST_PROCESSES))
    return Group(tuple(folders))


def left(prefix: str) -> Group:
    """What earlier calls for this effect, or for any below it, have left, by name."""
    start = prefix if prefix.endswith(":") else f"{prefix}:"
    folders = []
    for place in places():
        for folder in _marked(place.root):
            effect = unquote(os.path.basename(folder).removeprefix(_MARK).rpartition("+")[0])
            if effect == prefix or effect.startswith(start):
                folders.append(folder)
    return Group(tuple(folders))


def fences_here() -> tuple[str, ...]:
    """The effects whose fences this process is in: it was started for them, whatever its environment says."""
    try:
        with open("/proc/self/cgroup") as file:
            names = [name for line in file for name in line.rstrip("\n").split("/")]
    except OSError:
        return ()
    return tuple(unquote(n.removeprefix(_MARK).rpartition("+")[0]) for n in names if n.startswith(_MARK))


def _marked(root: str) -> Iterator[str]:
    """Every folder of ours below; the search is bounded, for hosts with very many groups."""
    ahead, seen = [root], 0
    while ahead and seen < _FOLDERS_SEEN:
        seen += 1
        with contextlib.suppress(OSError), os.scandir(ahead.pop(0)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    ahead.append(entry.path)
                    if entry.name.startswith(_MARK):
                        yield entry.path


@functools.cache
def places() -> tuple[Place, ...]:
    """The hierarchies that can hold a fence: version 2, and `pids` where that is a hierarchy of its own."""
    try:
        with open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as own:
            return tuple(_places(mounts.read().splitlines(), _own(own.read().splitlines())))
    except OSError:
        return ()


def _own(lines: list[str]) -> dict[str, str]:
    """Our path in each hierarchy, by controller; version 2 has none."""
    paths: dict[str, str] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def _places(mounts: list[str], own: dict[str, str]) -> Iterator[Place]:
    for line in mounts:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        wanted = {"cgroup2": "", "cgroup": "pids"}.get(kind)
        if wanted is None or wanted not in own or (wanted and wanted not in options.split(",")):
            continue
        top, root = before.split(" ")[3:5]
        path = own[wanted].removeprefix(top.rstrip("/")).strip("/")
        yield Place(root, f"{root}/{path}".rstrip("/"))


def _write(path: str, text: str) -> bool:
    try:
        with open(path, "r+b", 0) as file:  # never makes a file where the system has none
            return file.write(text.encode()) > 0
    except OSError:
        return False
