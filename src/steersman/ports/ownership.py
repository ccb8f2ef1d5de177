"""The ports that keep two drivers apart: the lock of each run, the processes that a run has started, and wake-ups."""

from typing import Any, Protocol


class RunLock(Protocol):
    """The lock of one run: this process holds it until it releases it or dies."""

    def release(self) -> None: ...


class Locks(Protocol):
    """One lock for each run, so that two drivers never work on the same run."""

    def acquire(self, run: str, *, take_over: bool = False) -> RunLock | None:
        """The lock, or None while its owner lives. `take_over` is for an owner that is stopped: it goes around the lock."""
        ...

    def owner(self, run: str) -> str | None:
        """Who drives a run now, in words; None where no process does."""
        ...


class Processes(Protocol):
    """What a run has started, found by the effect id in the environment."""

    def alive(self, effect_prefix: str) -> list[int]: ...

    def stop_tree(self, effect_prefix: str, grace: float) -> int:
        """Stops all of them and says how many there were."""
        ...


class DriverWakeup(Protocol):
    """Wakes drivers in other processes; they look at the store anyway, a ring only makes them look now."""

    def notify(self) -> None: ...

    def listen(self) -> Any:
        """A socket that becomes readable at a wake-up, or None."""
        ...

    def stop_listening(self, sock: Any) -> None:
        """Stops listening."""
        ...


class BackgroundProcess(Protocol):
    """A driver in a process of its own."""

    log: str  # the file that it writes to

    def has_ended(self) -> bool: ...
