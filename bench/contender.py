"""What the harness asks of a contender, and how it finds them.

A contender is a module `peers/<name>.py` with a value `CONTENDER`. It prepares (open, compile, launch) when
a context is entered, works when the value it got is called, and returns counts; the harness holds the clock.
Every method is optional: what a contender does not offer is shown as not tried, never as zero.
"""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

# Drives so many more runs to their checked end (in `growth`: so many more transitions of one run), and
# returns the number of transitions done.
Go = Callable[[int], int]


class Reader(Protocol):
    """A store that was opened to be read."""

    def unfinished(self) -> list[str]:
        """The ids of all runs that have not ended."""
        ...

    def listing(self) -> list[str]:
        """Optional: the same ids by the store's own listing call, where `unfinished` had a faster way."""
        ...

    def load(self, run: str) -> str:
        """The run's whole context is read; its state is returned."""
        ...


class Contender(Protocol):
    """One way to drive the workload."""

    name: str
    # Optional lower sizes, "growing" in transitions and "parked" in runs, where the full ones cost too much.
    limits: dict[str, int]
    # The statement whose CPU time is the price of a start …
    import_line: str

    def command(self, folder: Path) -> list[str]:
        """… or the interpreter's arguments for a command over the filled store in the folder."""
        ...

    def in_memory(self) -> AbstractContextManager[Go]:
        """Runs one after the other, nothing on disk."""
        ...

    def durable(self, folder: Path) -> AbstractContextManager[Go]:
        """Runs one after the other; each transition is on disk (WAL, synchronous=FULL) before the next."""
        ...

    def concurrent(self, folder: Path, at_once: int) -> AbstractContextManager[Go]:
        """The same durability with so many runs in flight at any time."""
        ...

    def growth(self, folder: Path, growing: bool) -> AbstractContextManager[Go]:
        """One durable run that never ends; if growing, its context has a list that gains a note per transition."""
        ...

    def fill(self, folder: Path, runs: int, unfinished: int) -> None:
        """A closed store of so many runs, the unfinished ones parked where the workload says."""
        ...

    def reader(self, folder: Path) -> AbstractContextManager[Reader]:
        """A filled store, opened."""
        ...

    def waiting(self, folder: Path) -> AbstractContextManager[None]:
        """What must be alive for the parked runs of a filled store to go on when their event comes."""
        ...

    def syncs(self) -> int:
        """The contender's own count of syncs so far, for machines without strace."""
        ...


PEERS = Path(__file__).parent / "peers"
OWN = "steersman"


def names() -> list[str]:
    """Every contender there is, the project's own first."""
    found = sorted(path.stem for path in PEERS.glob("*.py") if not path.stem.startswith("_"))
    return sorted(found, key=lambda name: name != OWN)


def load(name: str) -> Contender:
    """The contender of that name; only its own module is imported."""
    contender: Contender = importlib.import_module(f"peers.{name}").CONTENDER
    return contender


def offers(contender: Contender, method: str) -> bool:
    """Whether the contender has anything to say in this discipline."""
    return hasattr(contender, method)
