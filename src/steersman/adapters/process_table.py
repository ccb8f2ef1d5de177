"""The system's processes, and which of them carry an effect id.

Read from /proc where there is one, through psutil elsewhere.
**Invariant:** looks, never signals; this process and its ancestors are never shown.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from steersman.adapters.cgroups import fences_here
from steersman.adapters.keeper import lives

EFFECT = "STEERSMAN_EFFECT"
CALL = "STEERSMAN_CALL"  # one execution: two at once may serve the same effect
KEEPER = "STEERSMAN_KEEPER"  # on the process that has a program and all it starts below it


class Process(NamedTuple):
    """One living process as the system shows it."""

    pid: int
    parent: int
    session: int
    effect: str
    call: str
    keeps: bool


def below(prefix: str) -> Callable[[Process], bool]:
    """`a:1` means itself and `a:1:…`, never `a:10`."""
    if not prefix.strip(":"):
        raise ValueError("an effect id is needed: an empty prefix would mean every process")
    start = prefix if prefix.endswith(":") else f"{prefix}:"
    return lambda process: process.effect == prefix or process.effect.startswith(start)


def tree(wanted: Callable[[Process], bool]) -> set[int]:
    """The wanted processes and every process that descends from one of them."""
    processes = list(others())
    found = {process.pid for process in processes if wanted(process)}
    size = -1
    while found and size != len(found):
        size = len(found)
        found |= {process.pid for process in processes if process.parent in found}
    return found


def others() -> Iterator[Process]:
    """Every living process but this one and its ancestors."""
    processes = {process.pid: process for process in _processes()}
    pid = os.getpid()
    while (process := processes.pop(pid, None)) is not None:
        pid = process.parent
    yield from processes.values()


def effects_here() -> tuple[str, ...]:
    """Every effect that this process was started for, as its environment, its ancestors' and its control group say.

    All of them: a cleared environment does not hide the true one, and a made-up one does not stand before it.
    """
    processes = {process.pid: process for process in _processes()}
    pid = os.getpid()
    found = [os.environ.get(EFFECT, ""), *fences_here()]
    while (process := processes.pop(pid, None)) is not None:
        found.append(process.effect)
        pid = process.parent
    return tuple(dict.fromkeys(filter(None, found)))


def _processes() -> Iterator[Process]:
    return _from_proc() if os.path.exists("/proc/self/environ") else _from_psutil()


def _from_proc() -> Iterator[Process]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if state not in b"ZX" or lives(int(name)):
            yield Process(int(name), int(parent), int(session), *_marks(_environment(name)))


def _environment(name: str) -> dict[str, str]:
    """What a process was started with; nothing where the system does not let us look."""
    content = _read(f"/proc/{name}/environ")
    if not content:  # when its first thread has ended, the others still know
        with contextlib.suppress(OSError):
            threads = (f"/proc/{name}/task/{thread}/environ" for thread in os.listdir(f"/proc/{name}/task"))
            content = next(filter(None, map(_read, threads)), b"")
    pairs = (pair.partition("=") for pair in os.fsdecode(content).split("\0"))
    return {name: value for name, _, value in pairs}


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _from_psutil() -> Iterator[Process]:
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            environment: dict[str, str] = {}
            with contextlib.suppress(psutil.Error, OSError):
                environment = process.environ()
            yield Process(process.pid, process.ppid(), os.getsid(process.pid), *_marks(environment))


def _marks(environment: Mapping[str, str]) -> tuple[str, str, bool]:
    return environment.get(EFFECT, ""), environment.get(CALL, ""), KEEPER in environment
