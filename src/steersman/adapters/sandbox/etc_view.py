"""The /etc of a sandbox: what programs look up, and nothing that holds a secret.

Small files are copied into one folder, which is one mount: a mount for each of them would double a sandbox's start. The
folder serves every sandbox of this process, and another one is made when something in /etc has changed.
**Invariant:** a list of what is there, never of what is not: no shadow, no host keys, no configuration with tokens.
"""

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from steersman.adapters.sandbox.machine_view import (
    SandboxMount,
    is_path_below,
    is_system_path,
    read_only_mount,
)
from steersman.adapters.sandbox.scratch import scratch_directory

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
