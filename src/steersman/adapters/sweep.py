"""Finds what works for an effect, whoever started it, and stops it.

**Invariant:** this process and its ancestors are never stopped; who forks while being killed is met again.
"""

import signal
import time
from collections.abc import Callable, Iterator

from steersman.adapters import cgroups
from steersman.adapters.keeper import lives, send
from steersman.adapters.process_table import below, others, tree

_SOON, _STEP = 0.001, 0.02  # seconds between two looks: most are gone at once
_ROUNDS = 200  # of killing: an unkillable process is let go
_BURST = 64
_SPARED = 1.0  # seconds of killing in which keepers are left to reap


def alive(effect_prefix: str) -> list[int]:
    """The processes that work for this effect, or for every effect below it (`<run>:` finds a whole run)."""
    wanted = below(effect_prefix)
    inside = cgroups.left(effect_prefix).members()
    processes = list(others())
    keepers = {process.pid for process in processes if process.keeps and wanted(process)}
    found = {process.pid for process in processes if wanted(process) or process.pid in inside}
    found |= tree(lambda process: process.pid in keepers)
    return sorted(found - keepers or found)  # a keeper counts where nobody is below it yet


def stop_tree(effect_prefix: str, grace: float) -> int:
    """Stops what `alive` finds and all its children, asking first; returns how many it had to stop."""
    wanted = below(effect_prefix)
    group = cgroups.left(effect_prefix)
    spared = time.monotonic() + grace + _SPARED
    keepers: set[int] = set()

    def find() -> set[int]:
        inside = group.members()
        keepers.update(process.pid for process in others() if process.keeps and wanted(process))
        found = tree(lambda process: wanted(process) or process.pid in inside)
        # What is below a keeper is lost from sight once that is dead; but anyone may say that he is one.
        return found - keepers or found if time.monotonic() < spared else found

    def kill() -> None:
        # A process that works for the run may stop the rest of it, and must not be hit by its own blow.
        if set(filter(lives, group.members())) <= {process.pid for process in others()}:
            group.kill()

    stopped: set[int] = set()
    for pause in stopping(find, kill, grace, stopped):
        time.sleep(pause)
    group.remove()
    return len(stopped)


def stopping(
    find: Callable[[], set[int]], kill: Callable[[], None], grace: float, stopped: set[int]
) -> Iterator[float]:
    """Asks, waits, kills, and looks again until nothing is found; yields the pauses so that any caller can sleep."""
    deadline = time.monotonic() + grace
    asked: set[int] = set()
    pause = _SOON
    while (found := find()) and time.monotonic() < deadline:
        send(found - asked, signal.SIGTERM)
        asked |= found
        yield pause
        pause = min(2 * pause, _STEP)
    stopped |= asked
    for _ in range(_ROUNDS):
        if not (found := find()):
            return
        kill()
        stopped |= found | _kill(find)
        yield _STEP


def _kill(find: Callable[[], set[int]]) -> set[int]:
    """Kills whom it finds, and looks again at once as long as there are new ones: some fork and end in one breath."""
    killed: set[int] = set()
    for _ in range(_BURST):
        new = find() - killed
        if not new:
            break
        send(new, signal.SIGKILL)
        killed |= new
    return killed
