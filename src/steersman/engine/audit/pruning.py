"""Removes the texts of a finished run tree (prompts, replies, output, diffs), their key, working trees and sessions.

Hashes, entries and state stay. A removed text cannot be restored, and such a run cannot continue.
"""

import msgspec

from steersman.contracts.config import Config
from steersman.engine import inbox
from steersman.engine.active_run import head_from_snapshot, load_active_run, require_head
from steersman.engine.ports import Ports
from steersman.errors import UserError
from steersman.kernel.record import StepMeta, record_note
from steersman.ports.journal import Batch, Head
from steersman.ports.ownership import RunLock

PRUNABLE_STATUSES = ("done", "stopped")


class PruneResult(msgspec.Struct, frozen=True):
    """What was removed."""

    run: str  # the first run of the tree: its tape says so
    seq: int
    payloads: int
    runs: tuple[str, ...]


def prune_run(ports: Ports, run: str, person: str, reason: str = "") -> PruneResult:
    """Removes every text of a run's tree in the commit of a `pruned` entry; refuses while a run of it is not over."""
    head = require_head(ports.journal, run)
    locks: list[RunLock] = []
    try:
        tree = _lock_ended_tree(ports, head.root, locks)
        safe_reason = inbox.sanitize_reason(ports, run, reason)
        return _drop_payloads(
            ports, head.root, tree, StepMeta(ports.clock.now(), f"person:{person}", why=safe_reason)
        )
    finally:
        for lock in locks:
            lock.release()


def _lock_ended_tree(ports: Ports, root: str, locks: list[RunLock]) -> list[Head]:
    """Locks every run of a tree and returns them; raises UserError where one is driven or not over."""
    for known_head in ports.journal.tree(root):
        lock = ports.locks.acquire(known_head.run)
        if lock is None:
            raise UserError(
                f"run {known_head.run} is driven by {ports.locks.owner(known_head.run)}. Wait until it ends"
            )
        locks.append(lock)
    tree = ports.journal.tree(root)
    for current_head in tree:
        if current_head.status not in PRUNABLE_STATUSES or not current_head.outcome:
            raise UserError(
                f"run {current_head.run} is {current_head.status}, and only a run with an outcome can be pruned. End it with `steersman abort {current_head.run}`"
            )
    return tree


def _drop_payloads(ports: Ports, root: str, tree: list[Head], meta: StepMeta) -> PruneResult:
    if ports.journal.key(root) is None:
        raise UserError(f"the texts of run {root} are pruned already")
    active_run = load_active_run(ports, root, migrating=True)
    count = sum(1 for _ in ports.journal.payload_refs(root))
    runs = tuple(h.run for h in tree)
    entry_data = {"payloads": count, "runs": list(runs)}
    sealed_entry, snapshot_after = record_note(active_run.snapshot, meta, "pruned", data=entry_data)
    batch = Batch(
        head=head_from_snapshot(active_run.machine, snapshot_after, active_run.title, active_run.created),
        expect_seq=active_run.stored[0],
        expect_epoch=active_run.stored[1],
        entries=((snapshot_after.seq, sealed_entry.body, sealed_entry.hash),),
    )
    ports.journal.prune(batch, root)
    workspace = ports.workspace(Config())
    for name in runs:  # working trees hold texts too
        workspace.remove(name)
        ports.forget(name)
    if ports.sealed is not None:
        ports.sealed(root, snapshot_after.seq, sealed_entry.hash, snapshot_after.at)
    return PruneResult(root, snapshot_after.seq, count, runs)
