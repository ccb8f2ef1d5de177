"""Control groups: one for each program, which no fork, session or empty environment leaves.

One below our own in every hierarchy that helps and lets us: version 2 (killed as one), or a `pids` controller (no fork
succeeds any more, then its members are killed). Its name holds the effect, so that a later process finds what a dead
one has left. **Invariant:** optional: where none can be made there is no group, and no error.
"""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, unquote

MAX_CGROUP_PROCESSES = 4096  # threads count too
_CGROUP_PREFIX = "steersman+"
_MAX_CGROUP_NAME = 200
_MAX_CGROUPS_SCANNED = 5_000


class CgroupHierarchy(NamedTuple):
    """A hierarchy: where it is mounted, and our own group in it."""

    root: str
    own: str


class ProgramCgroup(NamedTuple):
    """The folders of one program, one in each hierarchy."""

    folders: tuple[str, ...] = ()

    def members(self) -> set[int]:
        """The processes inside, also in a group made inside it; zombies are among them."""
        pids: set[int] = set()
        for directory in self._all():
            with contextlib.suppress(OSError), open(f"{directory}/cgroup.procs", "rb") as file:
                pids |= set(map(int, file.read().split()))
        return pids - {0}  # 0: a process that another namespace hides from us

    def kill(self) -> None:
        """Kills every process inside; a fork that is under way does not escape."""
        for directory in self._all():
            if not _write_cgroup_file(f"{directory}/cgroup.kill", "1") and _write_cgroup_file(
                f"{directory}/pids.max", "0"
            ):
                for pid in self.members():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Removes the directories; False while a process is inside."""
        for directory in self._all():
            with contextlib.suppress(OSError):
                os.rmdir(directory)
        return not any(map(os.path.isdir, self.folders))

    async def removed(self) -> None:
        """The same, with patience: the dead leave a group a moment after they have left everything else."""
        for pause in (0.001, 0.002, 0.004, *[0.01] * 20):
            if self.remove():
                return
            await asyncio.sleep(pause)

    def add(self, pid: int) -> None:
        """Puts a process inside; what it starts from now on is inside too."""
        for directory in self.folders:
            _write_cgroup_file(f"{directory}/cgroup.procs", str(pid))

    def _all(self) -> Iterator[str]:
        for directory in self.folders:
            for inner, _, _ in os.walk(directory, topdown=False):
                yield inner


def create_program_cgroup(effect: str, call: str) -> ProgramCgroup:
    """A new group for one call; without folders where none can be made."""
    name = f"{_CGROUP_PREFIX}{quote(effect, safe=':')}+{call}"
    if len(name) > _MAX_CGROUP_NAME:
        return ProgramCgroup()
    directories = []
    for hierarchy in find_cgroup_hierarchies():
        directory = f"{hierarchy.own}/{name}"
        with contextlib.suppress(OSError):
            os.mkdir(directory)
            directories.append(directory)
            _write_cgroup_file(f"{directory}/pids.max", str(MAX_CGROUP_PROCESSES))
    return ProgramCgroup(tuple(directories))


def find_leftover_cgroup(prefix: str) -> ProgramCgroup:
    """What earlier calls for this effect, or for any below it, have left, by name."""
    effect_start = prefix if prefix.endswith(":") else f"{prefix}:"
    directories = []
    for hierarchy in find_cgroup_hierarchies():
        for directory in _find_marked_cgroups(hierarchy.root):
            effect = unquote(os.path.basename(directory).removeprefix(_CGROUP_PREFIX).rpartition("+")[0])
            if effect == prefix or effect.startswith(effect_start):
                directories.append(directory)
    return ProgramCgroup(tuple(directories))


def list_fence_effects() -> tuple[str, ...]:
    """The effects whose fences this process is in: it was started for them, whatever its environment says."""
    try:
        with open("/proc/self/cgroup") as file:
            names = [name for line in file for name in line.rstrip("\n").split("/")]
    except OSError:
        return ()
    return tuple(
        unquote(n.removeprefix(_CGROUP_PREFIX).rpartition("+")[0])
        for n in names
        if n.startswith(_CGROUP_PREFIX)
    )


def _find_marked_cgroups(root: str) -> Iterator[str]:
    """Every folder below that steersman made; the search is bounded, for hosts with very many groups."""
    pending, scanned = [root], 0
    while pending and scanned < _MAX_CGROUPS_SCANNED:
        scanned += 1
        with contextlib.suppress(OSError), os.scandir(pending.pop(0)) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    if entry.name.startswith(_CGROUP_PREFIX):
                        yield entry.path


@functools.cache
def find_cgroup_hierarchies() -> tuple[CgroupHierarchy, ...]:
    """The hierarchies that can hold a fence: version 2, and `pids` where that is a hierarchy of its own."""
    try:
        with open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as own:
            return tuple(
                _parse_cgroup_mounts(mounts.read().splitlines(), _parse_own_cgroups(own.read().splitlines()))
            )
    except OSError:
        return ()


def _parse_own_cgroups(cgroup_lines: list[str]) -> dict[str, str]:
    """Our path in each hierarchy, by controller; version 2 has none."""
    paths: dict[str, str] = {}
    for line in cgroup_lines:
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    return paths


def _parse_cgroup_mounts(mounts: list[str], own_paths: dict[str, str]) -> Iterator[CgroupHierarchy]:
    for line in mounts:
        before, _, after = line.partition(" - ")
        file_system, _, options = after.split(" ", 2)
        controller = {"cgroup2": "", "cgroup": "pids"}.get(file_system)
        if (
            controller is None
            or controller not in own_paths
            or (controller and controller not in options.split(","))
        ):
            continue
        mount_root, root = before.split(" ")[3:5]
        path = own_paths[controller].removeprefix(mount_root.rstrip("/")).strip("/")
        yield CgroupHierarchy(root, f"{root}/{path}".rstrip("/"))


def _write_cgroup_file(path: str, text: str) -> bool:
    try:
        with open(path, "r+b", 0) as file:  # never makes a file where the system has none
            return file.write(text.encode()) > 0
    except OSError:
        return False
