"""Locks, processes and a wake-up for tests that need no second process.

**Invariant:** nothing here outlives the object that holds it.
"""


class FakeLock:
    """A lock that is ours until released."""

    def __init__(self, locks: "FakeLocks", run: str) -> None:
        self._locks, self._run = locks, run

    def release(self) -> None:
        if self._locks.held.get(self._run) is self:
            del self._locks.held[self._run]


class FakeLocks:
    """Implements ports.ownership.Locks in memory; drivers that share it exclude each other."""

    def __init__(self, kind: str = "driver") -> None:
        self.kind = kind
        self.held: dict[str, FakeLock] = {}

    def acquire(self, run: str, *, take_over: bool = False) -> FakeLock | None:
        if run in self.held and not take_over:
            return None
        self.held[run] = FakeLock(self, run)
        return self.held[run]

    def owner(self, run: str) -> str | None:
        return self.kind if run in self.held else None


class NoProcesses:
    """Implements ports.ownership.Processes for effects that start none; remembers what it was asked to stop."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def alive(self, effect_prefix: str) -> list[int]:  # noqa: ARG002  nothing is ever alive
        return []

    def stop_tree(self, effect_prefix: str, grace: float) -> int:  # noqa: ARG002  nothing runs
        self.stopped.append(effect_prefix)
        return 0


class SilentWakeup:
    """Implements ports.ownership.DriverWakeup without waking anything; counts the calls."""

    def __init__(self) -> None:
        self.rings = 0

    def notify(self) -> None:
        self.rings += 1

    def listen(self) -> None:
        """Does nothing: there is no other process."""

    def stop_listening(self, sock: object) -> None:
        """Does nothing: there is no other process."""
