"""Ordinary batches, heads and gates for the conformance suite of a `Journal` and for tests of stores.

**Invariant:** values only: nothing here opens or writes anything.
"""

from typing import Any

from steersman.kernel.canonical import sha256_hex
from steersman.ports.journal import Batch, Gate, Head, Journal, Spend

SAMPLE_RUN = "260101-abcdef"
SAMPLE_TIME = 1_767_225_600_000


def sample_head(run: str = SAMPLE_RUN, seq: int = 1, epoch: int = 1, **more: Any) -> Head:
    """A head row; whatever is not given is ordinary."""
    defaults = {
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
        "hash": _sample_entry_hash(run, seq),
        "epoch": epoch,
        "created": SAMPLE_TIME,
        "at": SAMPLE_TIME + seq,
    }
    return Head(**{**defaults, **more})


def sample_entry(run: str, seq: int) -> tuple[int, bytes, str]:
    """An entry as it is stored."""
    return seq, f"entry {seq} of {run}".encode(), _sample_entry_hash(run, seq)


def _sample_entry_hash(run: str, seq: int) -> str:
    return sha256_hex(f"entry {seq} of {run}".encode())


def sample_batch(run: str = SAMPLE_RUN, seq: int = 1, **more: Any) -> Batch:
    """The batch that makes a run's entry number `seq`, after the one before it."""
    head_fields = more.pop("head", {})
    defaults = {
        "expect_seq": seq - 1,
        "expect_epoch": 1 if seq > 1 else 0,
        "entries": (sample_entry(run, seq),),
        **more,
    }
    return Batch(head=sample_head(run, seq, **head_fields), **defaults)


def sample_gate(gate_id: str = f"{SAMPLE_RUN}:1:1", **more: Any) -> Gate:
    """An open gate."""
    run = gate_id.split(":", 1)[0]
    defaults = {
        "id": gate_id,
        "run": run,
        "job": "confirm",
        "digest": "tree",
        "choices": ("approve", "reject"),
    }
    return Gate(**{**defaults, "opened": SAMPLE_TIME, **more})


def full_sample_batch() -> Batch:
    """A creation that uses every field of a batch."""
    return sample_batch(
        snapshot=b"snapshot",
        payloads=(("p-1", b"text"),),
        gates=(sample_gate(),),
        definition=("d1", b'{"name":"table"}'),
        key=b"k" * 32,
        spends=(Spend(SAMPLE_RUN, "turns", limit=10), Spend(SAMPLE_RUN, "turns", reserved=1, bound=True)),
        posts=(("other", "child", {"item": "x"}),),
    )


def journal_contents(journal: Journal, run: str = SAMPLE_RUN) -> list[Any]:
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
