"""Finds every process that works for an effect and stops it.

**Invariant:** this process and its ancestors are never stopped; who forks while being killed is met again.
"""

import signal
import time
from collections.abc import Callable, Iterator

from steersman.adapters.process import cgroups
from steersman.adapters.process.process_table import effect_matcher, find_process_tree, list_other_processes
from steersman.adapters.process.subreaper import is_process_alive, send_signal_to_all

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
        subreapers.update(
            process.pid for process in list_other_processes() if process.keeps and is_wanted(process)
        )
        pids = find_process_tree(lambda process: is_wanted(process) or process.pid in group_members)
        # What is below a subreaper is lost from sight once that is dead; but any process may claim to be one.
        return pids - subreapers or pids if time.monotonic() < spare_until else pids

    def kill_group() -> None:
        # A process that works for the run may stop the rest of it, and must not be hit by its own blow.
        if set(filter(is_process_alive, group.members())) <= {
            process.pid for process in list_other_processes()
        }:
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
