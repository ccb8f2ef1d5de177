"""Ordinary batches, heads and gates for tests of a store; whatever a test does not say is ordinary.

**Invariant:** values only: nothing here opens or writes anything.
"""

from typing import Any

from steersman.kernel.canonical import digest
from steersman.ports.journal import Batch, Gate, Head, Journal, Spend

RUN = "260101-abcdef"
AT = 1_767_225_600_000


def head(run: str = RUN, seq: int = 1, epoch: int = 1, **more: Any) -> Head:
    """A head row; whatever is not given is ordinary."""
    given = {
        "run": run,
        "root": run,
        "parent": "",
        "machine": "roundtable",
        "definition": "d1",
        "title": "A task",
        "state": "plan",
        "status": "working",
        "outcome": "",
        "seq": seq,
        "hash": _hash(run, seq),
        "epoch": epoch,
        "created": AT,
        "at": AT + seq,
    }
    return Head(**{**given, **more})


def entry(run: str, seq: int) -> tuple[int, bytes, str]:
    """An entry as it is stored."""
    return seq, f"entry {seq} of {run}".encode(), _hash(run, seq)


def _hash(run: str, seq: int) -> str:
    return digest(f"entry {seq} of {run}".encode())


def batch(run: str = RUN, seq: int = 1, **more: Any) -> Batch:
    """The batch that makes a run's entry number `seq`, after the one before it."""
    head_fields = more.pop("head", {})
    given = {
        "expect_seq": seq - 1,
        "expect_epoch": 1 if seq > 1 else 0,
        "entries": (entry(run, seq),),
        **more,
    }
    return Batch(head=head(run, seq, **head_fields), **given)


def gate(gate_id: str = f"{RUN}:1:1", **more: Any) -> Gate:
    """An open gate."""
    run = gate_id.split(":", 1)[0]
    given = {"id": gate_id, "run": run, "job": "confirm", "digest": "tree", "choices": ("approve", "reject")}
    return Gate(**{**given, "opened": AT, **more})


def everything() -> Batch:
    """A creation that uses every field of a batch."""
    return batch(
        snapshot=b"snapshot",
        payloads=(("p-1", b"text"),),
        gates=(gate(),),
        definition=("d1", b'{"name":"table"}'),
        key=b"k" * 32,
        spends=(Spend(RUN, "turns", limit=10), Spend(RUN, "turns", reserved=1, bound=True)),
        posts=(("other", "child", {"item": "x"}),),
    )


def seen(journal: Journal, run: str = RUN) -> list[Any]:
    """Everything a reader can see of a run."""
    return [
        journal.head(run),
        list(journal.rows(run)),
        journal.snapshot(run),
        list(journal.payload_refs(run)),
        journal.key(run),
        journal.definition("d1"),
        journal.pending(run),
        journal.pending("other"),
        journal.gates(),
        journal.budget(run),
        journal.heads(),
    ]
