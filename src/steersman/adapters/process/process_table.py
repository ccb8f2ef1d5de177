"""The system's processes, and which of them carry an effect id.

Read from /proc where there is one, through psutil elsewhere.
**Invariant:** looks, never signals; this process and its ancestors are never shown.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from steersman.adapters.config import state_paths
from steersman.adapters.process import cgroups
from steersman.adapters.process.cgroups import list_fence_effects
from steersman.adapters.process.subreaper import is_process_alive, send_signal_to_all
from steersman.errors import SteersmanError

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


# ── ancestry ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Whether a process works for a run, or for a chat, that some store on this machine keeps.
#
# **Invariant:** a store that cannot be read is no proof of innocence.


def find_recorded_effect(state: str, effects: Iterable[str]) -> str:
    """The first of these effects whose run is in the store of `state` or in one beside it; nothing where none is."""
    return next(
        (
            effect
            for effect in effects
            if any(_is_effect_in_store(store, effect) for store in _list_neighbour_stores(state))
        ),
        "",
    )


def _list_neighbour_stores(state: str) -> Iterator[str]:
    """The store itself and those of its neighbours, found from its real path, not through a link."""
    real = os.path.realpath(state)
    parent = os.path.dirname(real)
    neighbour_names = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    for directory in (real, *(os.path.join(parent, name) for name in neighbour_names)):
        store = os.path.join(directory, state_paths.STORE_FILE_NAME)
        if os.path.isfile(store):
            yield store


def _is_effect_in_store(store: str, effect: str) -> bool:
    from steersman.adapters.storage.sqlite.chat import SqliteChats
    from steersman.adapters.storage.sqlite.reader import SqliteJournalReader

    try:
        reader = SqliteJournalReader(store)
        try:
            owner = effect.split(":", 1)[0]
            return reader.head(owner) is not None or SqliteChats(reader).thread(owner) is not None
        finally:
            reader.close()
    except (SteersmanError, OSError):
        return True


# ── reaper ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Finds every process that works for an effect and stops it.
#
# **Invariant:** this process and its ancestors are never stopped; who forks while being killed is met again.


_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02  # seconds between two looks: most are gone at once
_KILL_ATTEMPTS = 200  # of killing: an unkillable process is let go
_KILL_BURST = 64
_SUBREAPER_SPARE_SECONDS = 1.0  # seconds of killing in which subreapers are left to reap


def alive(effect_prefix: str) -> list[int]:
    """The processes that work for this effect, or for every effect below it (`<run>:` finds a whole run)."""
    is_wanted = effect_matcher(effect_prefix)
    group_members = cgroups.find_leftover_cgroup(effect_prefix).members()
    processes = list(list_other_processes())
    subreapers = {process.pid for process in processes if process.keeps and is_wanted(process)}
    pids = {process.pid for process in processes if is_wanted(process) or process.pid in group_members}
    if subreapers:
        pids |= find_process_tree(lambda process: process.pid in subreapers)
    return sorted(pids - subreapers or pids)  # a subreaper counts while no process is below it yet


def stop_tree(effect_prefix: str, grace: float) -> int:
    """Stops what `alive` finds and all its children, asking first; returns how many it had to stop."""
    is_wanted = effect_matcher(effect_prefix)
    group = cgroups.find_leftover_cgroup(effect_prefix)
    spare_until = time.monotonic() + grace + _SUBREAPER_SPARE_SECONDS
    subreapers: set[int] = set()

    def find_pids() -> set[int]:
        group_members = group.members()
        subreapers.update(p.pid for p in list_other_processes() if p.keeps and is_wanted(p))
        pids = find_process_tree(lambda process: is_wanted(process) or process.pid in group_members)
        # What is below a subreaper is lost from sight once that is dead; but any process may claim to be one.
        return pids - subreapers or pids if time.monotonic() < spare_until else pids

    def kill_group() -> None:
        # A process that works for the run may stop the rest of it, and must not be hit by its own blow.
        if set(filter(is_process_alive, group.members())) <= {p.pid for p in list_other_processes()}:
            group.kill()

    stopped: set[int] = set()
    for pause in stop_in_rounds(find_pids, kill_group, grace, stopped):
        time.sleep(pause)
    group.remove()
    return len(stopped)


def stop_in_rounds(
    find: Callable[[], set[int]], kill: Callable[[], None], grace: float, stopped: set[int]
) -> Iterator[float]:
    """Asks, waits, kills, and looks again until nothing is found; yields the pauses so that any caller can sleep."""
    deadline = time.monotonic() + grace
    signalled: set[int] = set()
    pause = _FIRST_PAUSE
    while (pids := find()) and time.monotonic() < deadline:
        send_signal_to_all(pids - signalled, signal.SIGTERM)
        signalled |= pids
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE)
    stopped |= signalled
    for _ in range(_KILL_ATTEMPTS):
        if not (pids := find()):
            return
        kill()
        stopped |= pids | _kill_repeatedly(find)
        yield _LONGEST_PAUSE


def _kill_repeatedly(find: Callable[[], set[int]]) -> set[int]:
    """Kills whom it finds, and looks again at once as long as there are new ones: some fork and end in one breath."""
    killed: set[int] = set()
    for _ in range(_KILL_BURST):
        new_pids = find() - killed
        if not new_pids:
            break
        send_signal_to_all(new_pids, signal.SIGKILL)
        killed |= new_pids
    return killed
