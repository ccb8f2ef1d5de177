"""What a box shows of this machine: the system's programs and what it was given; `toolchains` adds those of PATH.

**Invariant:** a list of what is there, never of what is not. Of the user's home and of steersman's own state nothing is
shown that a box does not name, whatever else would cover it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from steersman.adapters import places

_Function = TypeVar("_Function", bound=Callable[..., object])
_forget: list[Callable[[], None]] = []

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_WRITTEN_IN_PROC = ("acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "sys")


_OF_A_RUN = (("worktrees",), ("homes",), ("programs",))  # of a project's state directory


class Mount(NamedTuple):
    """One place of a box, as bubblewrap makes it."""

    dest: str
    words: tuple[str, ...]


def cache_for_box(function: _Function) -> _Function:
    """Asks a function once for each box: the files and links that it reads may change before the next one."""
    remembering = cache(function)
    _forget.append(remembering.cache_clear)
    return remembering  # type: ignore[return-value]  # the wrapper takes and gives what the function does


def look_anew() -> None:
    """For the next box: where links lead may have changed since the last one."""
    for clear in _forget:
        clear()


def home() -> str:
    """The user's home, which a box shows empty; nothing where there is none of one's own."""
    return _find_home(os.path.expanduser("~"))


@cache_for_box
def _find_home(name: str) -> str:
    found = real_path(name)
    return found if found != "/" and not below(found, _SYSTEM) and os.path.isdir(found) else ""


def hidden() -> tuple[str, ...]:
    """Places that no box shows as they are, whatever covers them; the home by its name and by where it really is."""
    named_so = os.path.abspath(os.path.expanduser("~")) if home() else ""
    return tuple(dict.fromkeys(filter(None, (home(), named_so, states()))))


def states() -> str:
    """Where steersman keeps everything, as it really is."""
    return real_path(places.states())


@cache_for_box
def real_path(path: str) -> str:
    """Where a path leads, looked up once for each box."""
    return os.path.realpath(path)


def system() -> Iterator[Mount]:
    """The system's own programs."""
    for path in _SYSTEM:
        if os.path.islink(path):
            yield Mount(path, ("--symlink", os.readlink(path), path))
        if os.path.exists(path) and (not os.path.islink(path) or not shown_already(path)):
            yield readable(os.path.realpath(path))


def readable(path: str) -> Mount:
    """A place that can be read and not written."""
    return Mount(path, ("--ro-bind", path, path))


def writable(path: str) -> Mount:
    """A place that can be written."""
    return Mount(path, ("--bind", path, path))


def proc() -> Iterator[Mount]:
    """Of /proc what could change the machine is read-only: to root its files are writable even without any right."""
    yield Mount("/proc", ("--proc", "/proc"))
    for name in sorted(filter(_writes_in_proc, os.listdir("/proc"))):
        yield readable(f"/proc/{name}")


def _writes_in_proc(name: str) -> bool:
    path = f"/proc/{name}"
    if name.isdigit() or os.path.islink(path):
        return False
    if os.path.isdir(path):
        return name in _WRITTEN_IN_PROC
    return bool(os.stat(path).st_mode & 0o222)


def too_wide(path: str) -> bool:
    """Would showing this show the home, or what of steersman's lies in it?"""
    return path == "/" or any(below(place, (path,)) for place in hidden())


def named(path: str) -> str:
    """A path that a box may name; raises ValueError where it would show what no box shows."""
    real = os.path.realpath(path)
    if not os.path.isabs(path) or not os.path.exists(real):
        raise ValueError(f"{path!r} cannot be in a box: it has to be an absolute path that is there")
    if too_wide(real):
        raise ValueError(f"{path!r} cannot be in a box: it holds the user's home or steersman's own state")
    if below(real, (states(),)) and Path(real).relative_to(states()).parts[1:2] not in _OF_A_RUN:
        raise ValueError(
            f"{path!r} cannot be in a box: of steersman's state only working trees, homes and programs can"
        )
    return path


def shown_already(path: str) -> bool:
    """Is it one of the system's own programs, or among them?"""
    return below(real_path(path), _SYSTEM)


def below(path: str, tops: Iterable[str]) -> bool:
    """Is `path` one of `tops`, or inside one?"""
    return f"{path}/".startswith(tuple([f"{top.rstrip('/')}/" for top in tops]))


def laid_out(mounts: Iterable[Mount]) -> tuple[str, ...]:
    """bubblewrap's words for all of them, the outer ones first; of two for one place the later one counts."""
    last = {mount.dest: mount for mount in mounts}
    ordered = sorted(last.values(), key=lambda mount: Path(mount.dest).parts)
    return tuple(word for mount in ordered if not _within(mount, last) for word in mount.words)


def _within(mount: Mount, all_of_them: Mapping[str, Mount]) -> bool:
    """Is it shown already as a part of what is shown around it? A mount brings with it what is mounted inside."""
    if mount != readable(mount.dest) or real_path(mount.dest) != mount.dest:
        return False
    above = os.path.dirname(mount.dest)
    while above not in all_of_them and above != "/":
        above = os.path.dirname(above)
    return all_of_them.get(above) == readable(above)
