"""The system's processes, and which of them carry an effect id.

Read from /proc where there is one, through psutil elsewhere.
**Invariant:** looks, never signals; this process and its ancestors are never shown.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from steersman.adapters.process.cgroups import list_fence_effects
from steersman.adapters.process.subreaper import is_process_alive

EFFECT_VARIABLE = "STEERSMAN_EFFECT"
CALL_VARIABLE = "STEERSMAN_CALL"  # one execution: two at once may serve the same effect
SUBREAPER_VARIABLE = "STEERSMAN_KEEPER"  # on the process that has a program and all it starts below it


class ProcessInfo(NamedTuple):
    """One living process as the system shows it."""

    pid: int
    parent: int
    session: int
    effect: str
    call: str
    keeps: bool


def effect_matcher(prefix: str) -> Callable[[ProcessInfo], bool]:
    """`a:1` means itself and `a:1:…`, never `a:10`."""
    if not prefix.strip(":"):
        raise ValueError("an effect id is needed: an empty prefix would mean every process")
    prefix_with_colon = prefix if prefix.endswith(":") else f"{prefix}:"
    return lambda process: process.effect == prefix or process.effect.startswith(prefix_with_colon)


def find_process_tree(is_wanted: Callable[[ProcessInfo], bool]) -> set[int]:
    """The wanted processes and every process that descends from one of them."""
    processes = list(list_other_processes())
    pids = {process.pid for process in processes if is_wanted(process)}
    size = -1
    while pids and size != len(pids):
        size = len(pids)
        pids |= {process.pid for process in processes if process.parent in pids}
    return pids


def list_other_processes() -> Iterator[ProcessInfo]:
    """Every living process but this one and its ancestors."""
    processes = {process.pid: process for process in _list_processes()}
    pid = os.getpid()
    while (process := processes.pop(pid, None)) is not None:
        pid = process.parent
    yield from processes.values()


def list_own_effects() -> tuple[str, ...]:
    """Every effect that this process was started for, as its environment, its ancestors' and its control group say.

    All of them: a cleared environment does not hide the true one, and a made-up one does not stand before it.
    """
    processes = {process.pid: process for process in _list_processes()}
    pid = os.getpid()
    effects = [os.environ.get(EFFECT_VARIABLE, ""), *list_fence_effects()]
    while (process := processes.pop(pid, None)) is not None:
        effects.append(process.effect)
        pid = process.parent
    return tuple(dict.fromkeys(filter(None, effects)))


def _list_processes() -> Iterator[ProcessInfo]:
    return _list_from_proc() if os.path.exists("/proc/self/environ") else _list_from_psutil()


def _list_from_proc() -> Iterator[ProcessInfo]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent, _, session = file.read().rpartition(b")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if state not in b"ZX" or is_process_alive(int(name)):
            yield ProcessInfo(
                int(name), int(parent), int(session), *_process_marks(_read_process_environment(name))
            )


def _read_process_environment(name: str) -> dict[str, str]:
    """What a process was started with; nothing where the system does not let us look."""
    content = _read_proc_file(f"/proc/{name}/environ")
    if not content:  # when its first thread has ended, the others still know
        with contextlib.suppress(OSError):
            threads = (f"/proc/{name}/task/{thread}/environ" for thread in os.listdir(f"/proc/{name}/task"))
            content = next(filter(None, map(_read_proc_file, threads)), b"")
    pairs = (pair.partition("=") for pair in os.fsdecode(content).split("\0"))
    return {name: value for name, _, value in pairs}


def _read_proc_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _list_from_psutil() -> Iterator[ProcessInfo]:
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            environment: dict[str, str] = {}
            with contextlib.suppress(psutil.Error, OSError):
                environment = process.environ()
            yield ProcessInfo(
                process.pid, process.ppid(), os.getsid(process.pid), *_process_marks(environment)
            )


def _process_marks(environment: Mapping[str, str]) -> tuple[str, str, bool]:
    return (
        environment.get(EFFECT_VARIABLE, ""),
        environment.get(CALL_VARIABLE, ""),
        SUBREAPER_VARIABLE in environment,
    )
