"""What a sandbox shows of this machine: the system's programs and what it was given; `toolchains` adds those of PATH.

**Invariant:** a list of what is there, never of what is not. Of the user's home and of steersman's own state nothing is
shown that a sandbox does not name, whatever else would cover it.
"""

import atexit
import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from steersman.adapters.config import state_paths
from steersman.adapters.git.repository import worktree_repo_path
from steersman.adapters.sandbox.space_limit import scratch_directory

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


# ── etc view ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# The /etc of a sandbox: what programs look up, and nothing that holds a secret.
#
# Small files are copied into one folder, which is one mount: a mount for each of them would double a sandbox's start. The
# folder serves every sandbox of this process, and another one is made when something in /etc has changed.
# **Invariant:** a list of what is there, never of what is not: no shadow, no host keys, no configuration with tokens.


MAX_COPIED_ETC_BYTES = 1 << 20  # bytes; larger files are shown as they are
_ETC_NAMES = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts", "gai.conf"),
    *("group", "host.conf", "hostname", "hosts", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("locale.alias", "localtime", "login.defs", "magic", "mime.types", "networks", "nsswitch.conf"),
    *("os-release", "passwd", "perl", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "protocols"),
    *("python3", "rpc", "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "timezone"),
    *("java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "maven", "debian_version", "inputrc"),
)
_NETWORK_ETC_NAMES = ("resolv.conf",)  # only of use with the host's network
_EtcState = tuple[tuple[str, int, int, int], ...]


class _EtcMounts(NamedTuple):
    maker: int  # a process that was forked off makes its own
    state: _EtcState
    mounts: tuple[SandboxMount, ...]


_etc_cache: dict[bool, _EtcMounts] = {}


def etc_mounts(*, network: bool) -> tuple[SandboxMount, ...]:
    """The mounts for it."""
    names = (*_ETC_NAMES, *(_NETWORK_ETC_NAMES if network else ()))
    maker, state = os.getpid(), tuple(_read_etc_states(names))
    cached = _etc_cache.get(network)
    if cached is None or (cached.maker, cached.state) != (maker, state):
        cached = _etc_cache[network] = _EtcMounts(
            maker, state, tuple(_build_etc_mounts(_make_etc_directory(maker), names))
        )
    return cached.mounts


def _read_etc_states(names: tuple[str, ...]) -> Iterator[tuple[str, int, int, int]]:
    """What would look otherwise if one of the files had changed."""
    for name in names:
        try:
            status = os.stat(f"/etc/{name}")
        except OSError:
            continue
        yield name, status.st_ino, status.st_size, status.st_mtime_ns


def _make_etc_directory(maker: int) -> str:
    """A folder until this process ends: a sandbox may still be open when the next one is made."""
    stack = ExitStack()
    directory = stack.enter_context(scratch_directory())
    atexit.register(lambda: stack.close() if os.getpid() == maker else None)
    return directory


def _build_etc_mounts(directory: str, names: tuple[str, ...]) -> Iterator[SandboxMount]:
    yield SandboxMount("/etc", ("--ro-bind", directory, "/etc"))
    for name in names:
        yield from _mount_etc_entry(f"/etc/{name}", directory)


def _mount_etc_entry(path: str, copy_root: str) -> Iterator[SandboxMount]:
    copy_path = copy_root + path.removeprefix("/etc")
    if not os.path.lexists(path) or os.path.lexists(copy_path):
        return
    os.makedirs(os.path.dirname(copy_path), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), copy_path)
        real = os.path.realpath(path)
        if is_path_below(real, ("/etc",)):
            yield from _mount_etc_entry(real, copy_root)
        elif os.path.exists(real) and not is_system_path(real):
            yield read_only_mount(real)
    elif os.path.isfile(path) and os.path.getsize(path) <= MAX_COPIED_ETC_BYTES:
        _copy_etc_file(path, copy_path)
    elif os.path.isfile(path) or os.path.isdir(path):
        _make_mount_target(path, copy_path)
        yield read_only_mount(path)


def _copy_etc_file(path: str, copy_path: str) -> None:
    """What we may not read, the sandbox could not have read either."""
    try:
        shutil.copyfile(path, copy_path)
    except OSError:
        return
    shutil.copymode(path, copy_path)


def _make_mount_target(path: str, copy_path: str) -> None:
    if os.path.isdir(path):
        os.mkdir(copy_path)
    else:
        os.close(os.open(copy_path, os.O_WRONLY | os.O_CREAT, 0o600))


# ── git view ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# What a sandbox shows of git: to a run's tree a copy of its own small repository, to a person's checkout their own.
#
# In a run's tree the program finds the recorded commit, an index it may write and the history it may read; whatever it
# does there is gone with the sandbox. **Invariant:** nothing that any git outside reads can be written from a sandbox; of the
# person's repository a run's sandbox shows the objects, read-only, and nothing else.


def list_git_mounts(tree: str, directory: str, shown_at: str) -> Iterator[SandboxMount]:
    """The places that give `tree` its git, a copy of it made in `folder`; none where it is no worktree."""
    pointer = Path(tree, ".git")
    repository = _find_worktree_repository(pointer)
    if repository is not None:
        copy = Path(directory, "git")
        shutil.copytree(repository, copy, symlinks=True)
        yield SandboxMount(str(repository), ("--bind", str(copy), str(repository)))
        yield from map(read_only_mount, _list_borrowed_objects(repository / "objects"))
    else:
        yield from map(read_only_mount, _find_linked_git_directories(pointer))
    if pointer.exists() and not pointer.is_symlink():
        # A mount: inside it can be neither written, renamed nor removed.
        yield SandboxMount(f"{shown_at}/.git", ("--ro-bind", str(pointer), f"{shown_at}/.git"))


def _find_worktree_repository(pointer: Path) -> Path | None:
    """The repository of a run's tree: beside it, and nowhere else, whatever the pointer may say."""
    repository = worktree_repo_path(pointer.parent)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        is_plain = not pointer.is_symlink() and repository.is_dir() and not repository.is_symlink()
        if is_plain and pointer.read_text() == f"gitdir: {repository}\n":
            return repository
    return None


def _find_linked_git_directories(pointer: Path) -> list[str]:
    """The git directories behind a checkout that the person has made with `git worktree add`."""
    if pointer.is_symlink() or not pointer.is_file():
        return []
    with contextlib.suppress(OSError, UnicodeDecodeError, ValueError):
        own_directory = Path(pointer.read_text().removeprefix("gitdir: ").removesuffix("\n"))
        shared_directory = os.path.realpath(own_directory / (own_directory / "commondir").read_text().strip())
        return [check_sandbox_path(shared_directory), check_sandbox_path(str(own_directory))]
    return []


def _list_borrowed_objects(objects: Path) -> list[str]:
    """Where else the objects are; git follows these one after the other, and so do we, a few steps."""
    object_directories: list[str] = []
    pending = [objects]
    for _ in range(5):
        pending = [Path(place) for directory in pending for place in _read_alternates(directory)]
        object_directories += map(str, pending)
    return object_directories


def _read_alternates(objects: Path) -> Iterator[str]:
    with contextlib.suppress(OSError):
        lines = (objects / "info" / "alternates").read_text(errors="surrogateescape").splitlines()
        for line in lines:
            place = os.path.realpath(objects / line)
            with contextlib.suppress(ValueError):  # what no sandbox shows is no place for objects either
                if line and not line.startswith("#"):
                    yield check_sandbox_path(place)
