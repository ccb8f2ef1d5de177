"""What a box shows of this machine: the system's programs, the toolchains that PATH names, and what it was given.

**Invariant:** a list of what is there, never of what is not. Of the user's home and of steersman's own state nothing is
shown that a box does not name, whatever else would cover it.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import steersman
from steersman.adapters import places

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# A program in the first place needs the others; what else lies beside them (tokens, settings) stays hidden.
_TOOLCHAINS: Mapping[str, tuple[str, ...]] = {
    ".cargo/bin": (".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup"),
    ".local/bin": (".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv"),
    ".pyenv/shims": (".pyenv",),
    ".rbenv/shims": (".rbenv",),
    ".asdf/shims": (".asdf",),
    ".local/share/mise/shims": (".local/share/mise",),
    ".volta/bin": (".volta",),
    "go/bin": ("go/bin", "go/pkg/mod"),
}
_WRITTEN_IN_PROC = ("acpi", "asound", "bus", "driver", "fs", "irq", "pressure", "scsi", "sys")


_OF_A_RUN = (("worktrees",), ("homes",))  # of a project's state directory


class Mount(NamedTuple):
    """One place of a box, as bubblewrap makes it."""

    dest: str
    words: tuple[str, ...]


def home() -> str:
    """The user's home, which a box shows empty; nothing where there is none of one's own."""
    found = _real(os.path.expanduser("~"))
    return found if found != "/" and not below(found, _SYSTEM) and os.path.isdir(found) else ""


def hidden() -> tuple[str, ...]:
    """Places that no box shows as they are, whatever covers them; the home by its name and by where it really is."""
    named_so = os.path.abspath(os.path.expanduser("~")) if home() else ""
    return tuple(dict.fromkeys(filter(None, (home(), named_so, states()))))


def states() -> str:
    """Where steersman keeps everything, as it really is."""
    return _real(places.states())


@cache
def _real(path: str) -> str:
    return os.path.realpath(path)


def look_anew() -> None:
    """For the next box: where links lead may have changed since the last one."""
    _real.cache_clear()


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


def toolchains(argv: Sequence[str], search: str) -> Iterator[Mount]:
    """The interpreter that runs steersman, the prefixes that PATH names, and what the program itself needs."""
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(steersman.__file__))
    named = [found for folder in search.split(os.pathsep) for found in prefixes(folder)]
    program = program_needs(argv[0], search) if argv else ()
    for path in dict.fromkeys((*own, *named, *program)):
        real = _real(path)
        if (
            os.path.exists(path)
            and not shown_already(path)
            and not too_wide(real)
            and not below(real, (states(),))
        ):
            yield readable(path)


@cache
def prefixes(folder: str) -> tuple[str, ...]:
    """What has to be seen for the programs in a folder of PATH to run: `…/bin` stands for the prefix above it."""
    real = os.path.realpath(folder)
    if not os.path.isabs(folder) or not os.path.isdir(real):
        return ()
    inside = os.path.relpath(real, home()) if home() and below(real, (home(),)) else ""
    if inside in _TOOLCHAINS:
        return tuple(os.path.join(home(), path) for path in _TOOLCHAINS[inside])
    if real.startswith("/nix/store/"):
        return ("/nix/store",)
    above = os.path.dirname(real)
    wide = above if os.path.basename(real) in ("bin", "sbin") and not too_wide(above) else real
    return () if too_wide(wide) else (wide,)


def program_needs(program: str, search: str) -> tuple[str, ...]:
    """The prefix of the program that a name means, behind its links: a node package needs the folder of all."""
    found = program if os.path.isabs(program) else _found(program, search)
    if not found or not os.path.exists(found):
        return ()
    real = os.path.realpath(found)
    parts = Path(real).parts
    if "node_modules" in parts:
        packages = str(Path(*parts[: parts.index("node_modules") + 1]))
        return (os.path.dirname(found), packages) if not too_wide(packages) else (real,)
    return (*prefixes(os.path.dirname(real)), *(prefixes(os.path.dirname(found)) or (found,)), real)


def _found(program: str, search: str) -> str:
    import shutil

    return shutil.which(program, path=search) or ""


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
            f"{path!r} cannot be in a box: of steersman's state only working trees and homes can"
        )
    return path


def shown_already(path: str) -> bool:
    """Is it one of the system's own programs, or among them?"""
    return below(_real(path), _SYSTEM)


def below(path: str, tops: Iterable[str]) -> bool:
    """Is `path` one of `tops`, or inside one?"""
    return any(path == top or path.startswith(top.rstrip("/") + "/") for top in tops)


def laid_out(mounts: Iterable[Mount]) -> tuple[str, ...]:
    """bubblewrap's words for all of them, the outer ones first; of two for one place the later one counts."""
    last = {mount.dest: mount for mount in mounts}
    ordered = sorted(last.values(), key=lambda mount: Path(mount.dest).parts)
    return tuple(word for mount in ordered if not _within(mount, last) for word in mount.words)


def _within(mount: Mount, all_of_them: Mapping[str, Mount]) -> bool:
    """Is it shown already as a part of what is shown around it? A mount brings with it what is mounted inside."""
    if mount != readable(mount.dest) or _real(mount.dest) != mount.dest:
        return False
    above = os.path.dirname(mount.dest)
    while above not in all_of_them and above != "/":
        above = os.path.dirname(above)
    return all_of_them.get(above) == readable(above)
