"""The port to the store: tapes, heads, payloads, inbox, gates, budgets."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

UNFINISHED_STATUSES = ("working", "waiting for you", "waiting until")


class Head(msgspec.Struct, frozen=True, gc=False):
    """One indexed row a run: a function of its tape, kept for listing."""

    run: str
    root: str
    parent: str
    machine: str
    definition: str
    title: str
    state: str
    status: str
    outcome: str
    seq: int
    hash: str
    epoch: int
    created: int
    at: int
    due: int | None = None


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a person, open until it is answered once."""

    id: str
    run: str
    job: str
    digest: str
    choices: tuple[str, ...]
    shown: dict[str, Any] = {}
    opened: int = 0
    due: int | None = None
    default: str = ""
    answer: str = ""
    person: str = ""


class InboxItem(msgspec.Struct, frozen=True):
    """An external event in the inbox: in order, exactly once."""

    id: int
    run: str
    kind: str
    body: dict[str, Any]
    at: int


class Spend(msgspec.Struct, frozen=True):
    """A change of one budget figure of one run; `bound` refuses when its limit would be passed."""

    run: str
    name: str
    spent: int = 0
    reserved: int = 0
    limit: int | None = None  # sets the limit
    bound: bool = False


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """One commit for one run: all of it, or nothing."""

    head: Head
    expect_seq: int  # 0: the run is new
    expect_epoch: int
    # Of the head only state, seq, hash and at differ from what is stored: the ordinary step.
    quiet: bool = False
    entries: tuple[tuple[int, bytes, str], ...] = ()
    snapshot: bytes | None = None
    payloads: tuple[tuple[str, bytes], ...] = ()
    taken: tuple[tuple[int, dict[str, Any]], ...] = ()  # inbox rows with their verdict
    gates: tuple[Gate, ...] = ()
    closed: tuple[str, ...] = ()
    restored: tuple[Gate, ...] = ()  # rows of open gates, restored from the tape
    definition: tuple[str, bytes] | None = None
    key: bytes | None = None
    spends: tuple[Spend, ...] = ()
    posts: tuple[tuple[str, str, dict[str, Any]], ...] = ()  # run, kind, body: for other runs' inboxes


class BudgetRow(msgspec.Struct, frozen=True):
    """One figure of a run's budget."""

    name: str
    spent: int
    reserved: int
    limit: int | None


class Journal(Protocol):
    """Keeps what is acknowledged; refuses a stale writer; loses nothing."""

    def append(self, batch: Batch) -> None:
        """Commits on the calling thread. StaleError, StoreFull, OverBudget: nothing of it was kept."""
        ...

    def submit(self, batch: Batch, done: Callable[[BaseException | None], None]) -> None:
        """Commits together with others soon; `done` is called (from any thread) after the commit."""
        ...

    def head(self, run: str) -> Head | None: ...
    def heads(self, *, unfinished: bool = False, limit: int = 1000) -> list[Head]: ...
    def find_runs(self, prefix: str) -> list[str]: ...

    def list_traced_runs(self) -> list[str]:
        """Every run that anything is left of: a head row, an entry or a snapshot."""
        ...

    def children(self, run: str) -> list[Head]: ...

    def tree(self, root: str) -> list[Head]:
        """Every run that shares this root's payloads: itself, children, forks."""
        ...

    def rows(self, run: str, after: int = 0) -> Iterator[tuple[int, bytes, str]]: ...
    def snapshot(self, run: str) -> tuple[int, bytes] | None: ...
    def payload(self, root: str, ref: str) -> bytes | None: ...
    def payload_refs(self, root: str) -> Iterable[str]: ...
    def key(self, root: str) -> bytes | None: ...
    def definition(self, digest: str) -> bytes | None: ...
    def post(self, run: str, kind: str, body: dict[str, Any], at: int) -> int: ...
    def pending(self, run: str) -> list[InboxItem]: ...
    def verdict(self, posted: int) -> dict[str, Any] | None: ...
    def gates(self, run: str | None = None) -> list[Gate]: ...
    def gate(self, gate: str) -> Gate | None: ...

    def answer(self, gate: str, digest: str, body: dict[str, Any], at: int) -> int | None:
        """Answers a gate once: its inbox id, or None when another answer was first or the digest differs."""
        ...

    def due(self, now: int) -> list[Head]: ...
    def budget(self, run: str) -> list[BudgetRow]: ...

    def store_payloads(self, root: str, payloads: tuple[tuple[str, bytes], ...]) -> None:
        """Payloads of an event that is about to be posted."""
        ...

    def prune(self, batch: Batch, root: str) -> int:
        """Drops the payloads and the key of a run tree in the commit of this batch; says how many."""
        ...

    def quarantine(self, run: str, why: str) -> None: ...
    def quarantined(self) -> dict[str, str]: ...

    def lift_quarantine(self, run: str) -> bool:
        """Lifts the quarantine of a run whose tape is whole again; says whether there was one."""
        ...

    def list_strays(self) -> list[str]:
        """What lies in the store that no run has put there, each in a sentence."""
        ...

    def integrity(self) -> list[str]:
        """What is wrong with the store itself, each in a sentence; empty: nothing."""
        ...

    def changed(self) -> int:
        """A number that differs when another connection has committed since."""
        ...

    def close(self) -> None: ...
