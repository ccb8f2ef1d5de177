"""The /etc of a box: what programs look up, and nothing that holds a secret.

Small files are copied into one folder, which is one mount: a mount for each of them would double a box's start. The
folder serves every box of this process, and another one is made when something in /etc has changed.
**Invariant:** a list of what is there, never of what is not: no shadow, no host keys, no configuration with tokens.
"""

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from steersman.adapters.sandbox_view import Mount, below, readable, shown_already
from steersman.adapters.scratch import scratch

SMALL = 1 << 20  # bytes; larger files are shown as they are
_NAMES = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts", "gai.conf"),
    *("group", "host.conf", "hostname", "hosts", "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("locale.alias", "localtime", "login.defs", "magic", "mime.types", "networks", "nsswitch.conf"),
    *("os-release", "passwd", "perl", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "protocols"),
    *("python3", "rpc", "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "timezone"),
    *("java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "maven", "debian_version", "inputrc"),
)
_NETWORK = ("resolv.conf",)  # only of use with the host's network
_State = tuple[tuple[str, int, int, int], ...]


class _Made(NamedTuple):
    maker: int  # a process that was forked off makes its own
    state: _State
    mounts: tuple[Mount, ...]


_made: dict[bool, _Made] = {}


def etc(*, network: bool) -> tuple[Mount, ...]:
    """The mounts for it."""
    names = (*_NAMES, *(_NETWORK if network else ()))
    maker, state = os.getpid(), tuple(_states(names))
    made = _made.get(network)
    if made is None or (made.maker, made.state) != (maker, state):
        made = _made[network] = _Made(maker, state, tuple(_laid(_folder(maker), names)))
    return made.mounts


def _states(names: tuple[str, ...]) -> Iterator[tuple[str, int, int, int]]:
    """What would look otherwise if one of the files had changed."""
    for name in names:
        try:
            at = os.stat(f"/etc/{name}")
        except OSError:
            continue
        yield name, at.st_ino, at.st_size, at.st_mtime_ns


def _folder(maker: int) -> str:
    """A folder until this process ends: a box may still be open when the next one is made."""
    kept = ExitStack()
    folder = kept.enter_context(scratch())
    atexit.register(lambda: kept.close() if os.getpid() == maker else None)
    return folder


def _laid(folder: str, names: tuple[str, ...]) -> Iterator[Mount]:
    yield Mount("/etc", ("--ro-bind", folder, "/etc"))
    for name in names:
        yield from _shown(f"/etc/{name}", folder)


def _shown(path: str, top: str) -> Iterator[Mount]:
    place = top + path.removeprefix("/etc")
    if not os.path.lexists(path) or os.path.lexists(place):
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), place)
        real = os.path.realpath(path)
        if below(real, ("/etc",)):
            yield from _shown(real, top)
        elif os.path.exists(real) and not shown_already(real):
            yield readable(real)
    elif os.path.isfile(path) and os.path.getsize(path) <= SMALL:
        _copy(path, place)
    elif os.path.isfile(path) or os.path.isdir(path):
        _stand_in(path, place)
        yield readable(path)


def _copy(path: str, place: str) -> None:
    """What we may not read, the box could not have read either."""
    try:
        shutil.copyfile(path, place)
    except OSError:
        return
    shutil.copymode(path, place)


def _stand_in(path: str, place: str) -> None:
    if os.path.isdir(path):
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600))
