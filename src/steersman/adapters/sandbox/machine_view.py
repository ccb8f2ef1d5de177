"""What a sandbox shows of this machine: the system's programs and what it was given; `toolchains` adds those of PATH.

**Invariant:** a list of what is there, never of what is not. Of the user's home and of steersman's own state nothing is
shown that a sandbox does not name, whatever else would cover it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from steersman.adapters.config import state_paths

_Function = TypeVar("_Function", bound=Callable[..., object])
_cache_clearers: list[Callable[[], None]] = []

_SYSTEM_DIRECTORIES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_WRITABLE_PROC_NAMES = ("acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "sys")


_RUN_STATE_PARTS = (("worktrees",), ("homes",), ("programs",))  # of a project's state directory


class SandboxMount(NamedTuple):
    """One place of a sandbox, as bubblewrap makes it."""

    dest: str
    words: tuple[str, ...]


def cache_per_sandbox(function: _Function) -> _Function:
    """Asks a function once for each sandbox: the files and links that it reads may change before the next one."""
    cached = cache(function)
    _cache_clearers.append(cached.cache_clear)
    return cached  # type: ignore[return-value]  # the wrapper takes and gives what the function does


def clear_path_caches() -> None:
    """For the next sandbox: where links lead may have changed since the last one."""
    for clear in _cache_clearers:
        clear()


def find_home_directory() -> str:
    """The user's home, which a sandbox shows empty; nothing where there is none of one's own."""
    return _resolve_home_directory(os.path.expanduser("~"))


@cache_per_sandbox
def _resolve_home_directory(name: str) -> str:
    path = resolve_real_path(name)
    return (
        path if path != "/" and not is_path_below(path, _SYSTEM_DIRECTORIES) and os.path.isdir(path) else ""
    )


def list_hidden_directories() -> tuple[str, ...]:
    """Places that no sandbox shows as they are, whatever covers them; the home by its name and by where it really is."""
    named_home = os.path.abspath(os.path.expanduser("~")) if find_home_directory() else ""
    return tuple(dict.fromkeys(filter(None, (find_home_directory(), named_home, real_state_root()))))


def real_state_root() -> str:
    """Where steersman keeps everything, as it really is."""
    return resolve_real_path(state_paths.state_root_directory())


@cache_per_sandbox
def resolve_real_path(path: str) -> str:
    """Where a path leads, looked up once for each sandbox."""
    return os.path.realpath(path)


def system_mounts() -> Iterator[SandboxMount]:
    """The system's own programs."""
    for path in _SYSTEM_DIRECTORIES:
        if os.path.islink(path):
            yield SandboxMount(path, ("--symlink", os.readlink(path), path))
        if os.path.exists(path) and (not os.path.islink(path) or not is_system_path(path)):
            yield read_only_mount(os.path.realpath(path))


def read_only_mount(path: str) -> SandboxMount:
    """A place that can be read and not written."""
    return SandboxMount(path, ("--ro-bind", path, path))


def writable_mount(path: str) -> SandboxMount:
    """A place that can be written."""
    return SandboxMount(path, ("--bind", path, path))


def proc_mounts() -> Iterator[SandboxMount]:
    """Of /proc what could change the machine is read-only: to root its files are writable even without any right."""
    yield SandboxMount("/proc", ("--proc", "/proc"))
    for name in sorted(filter(_is_writable_proc_entry, os.listdir("/proc"))):
        yield read_only_mount(f"/proc/{name}")


def _is_writable_proc_entry(name: str) -> bool:
    path = f"/proc/{name}"
    if name.isdigit() or os.path.islink(path):
        return False
    if os.path.isdir(path):
        return name in _WRITABLE_PROC_NAMES
    return bool(os.stat(path).st_mode & 0o222)


def is_too_wide_mount(path: str) -> bool:
    """Would showing this show the home, or what of steersman's lies in it?"""
    return path == "/" or any(is_path_below(place, (path,)) for place in list_hidden_directories())


def check_sandbox_path(path: str) -> str:
    """A path that a sandbox may name; raises ValueError where it would show what no sandbox shows."""
    real = os.path.realpath(path)
    if not os.path.isabs(path) or not os.path.exists(real):
        raise ValueError(f"{path!r} cannot be in a sandbox: it has to be an absolute path that is there")
    if is_too_wide_mount(real):
        raise ValueError(
            f"{path!r} cannot be in a sandbox: it holds the user's home or steersman's own state"
        )
    if (
        is_path_below(real, (real_state_root(),))
        and Path(real).relative_to(real_state_root()).parts[1:2] not in _RUN_STATE_PARTS
    ):
        raise ValueError(
            f"{path!r} cannot be in a sandbox: of steersman's state only working trees, homes and programs can"
        )
    return path


def is_system_path(path: str) -> bool:
    """Is it one of the system's own programs, or among them?"""
    return is_path_below(resolve_real_path(path), _SYSTEM_DIRECTORIES)


def is_path_below(path: str, tops: Iterable[str]) -> bool:
    """Is `path` one of `tops`, or inside one?"""
    return f"{path}/".startswith(tuple([f"{top.rstrip('/')}/" for top in tops]))


def build_mount_arguments(mounts: Iterable[SandboxMount]) -> tuple[str, ...]:
    """bubblewrap's words for all of them, the outer ones first; of two for one place the later one counts."""
    by_destination = {mount.dest: mount for mount in mounts}
    ordered = sorted(by_destination.values(), key=lambda mount: Path(mount.dest).parts)
    return tuple(
        argument
        for mount in ordered
        if not _is_covered_mount(mount, by_destination)
        for argument in mount.words
    )


def _is_covered_mount(mount: SandboxMount, by_destination: Mapping[str, SandboxMount]) -> bool:
    """Is it shown already as a part of what is shown around it? A mount brings with it what is mounted inside."""
    if mount != read_only_mount(mount.dest) or resolve_real_path(mount.dest) != mount.dest:
        return False
    parent = os.path.dirname(mount.dest)
    while parent not in by_destination and parent != "/":
        parent = os.path.dirname(parent)
    return by_destination.get(parent) == read_only_mount(parent)
