"""The ports to time, chance and names: what a pure room is handed."""

from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for people, one for durations."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def ticks(self) -> int:
        """Microseconds, monotonic."""
        ...


class Chance(Protocol):
    """Fresh names and keys."""

    def run_id(self) -> str:
        """YYMMDD-xxxxxx."""
        ...

    def nonce(self) -> str: ...

    def key(self) -> bytes: ...
