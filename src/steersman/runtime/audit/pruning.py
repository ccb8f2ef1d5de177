"""Dropping the texts of a run tree that is over: prompts, replies, output, diffs, and the key that names them.

Their working trees and the sessions of their agents go too. Hashes, entries and state stay; what the texts said cannot be had back, and nobody can go on with such a run.
"""

import msgspec

from steersman.contracts.config import Config
from steersman.errors import UserError
from steersman.kernel.record import Meta, note
from steersman.ports.journal import Batch, Head
from steersman.ports.ownership import Held
from steersman.runtime import words
from steersman.runtime.live import head_of, load
from steersman.runtime.world import World

OVER = ("done", "stopped")


class Pruned(msgspec.Struct, frozen=True):
    """What was dropped."""

    run: str  # the first run of the tree: its tape says so
    seq: int
    payloads: int
    runs: tuple[str, ...]


def prune(world: World, run: str, person: str, reason: str = "") -> Pruned:
    """Drops every text of the tree that a run belongs to, in the commit of a `pruned` entry; refuses while one goes on."""
    head = world.journal.head(run)
    if head is None:
        raise UserError(f"there is no run {run}: see `steersman runs --all`")
    locks: list[Held] = []
    try:
        tree = _held(world, head.root, locks)
        why = words.reason(world, run, reason)
        return _drop(world, head.root, tree, Meta(world.clock.now(), f"person:{person}", why=why))
    finally:
        for lock in locks:
            lock.release()


def _held(world: World, root: str, locks: list[Held]) -> list[Head]:
    """The runs of a tree, each over and nobody's: the locks are ours until released."""
    for known in world.journal.tree(root):
        lock = world.locks.acquire(known.run)
        if lock is None:
            raise UserError(f"run {known.run} is driven by {world.locks.owner(known.run)}: let it end first")
        locks.append(lock)
    tree = world.journal.tree(root)
    for now in tree:
        if now.status not in OVER or not now.outcome:
            raise UserError(
                f"run {now.run} is {now.status}: only what has its outcome is pruned; end it with `steersman abort {now.run}`"
            )
    return tree


def _drop(world: World, root: str, tree: list[Head], meta: Meta) -> Pruned:
    if world.journal.key(root) is None:
        raise UserError(f"the texts of run {root} were pruned already")
    live = load(world, root, migrating=True)
    count = sum(1 for _ in world.journal.payload_refs(root))
    runs = tuple(h.run for h in tree)
    told = {"payloads": count, "runs": list(runs)}
    stored, after = note(live.snapshot, meta, "pruned", data=told)
    batch = Batch(
        head=head_of(live.machine, after, live.title, live.created),
        expect_seq=live.stored[0],
        expect_epoch=live.stored[1],
        entries=((after.seq, stored.body, stored.hash),),
    )
    world.journal.prune(batch, root)
    workspace = world.workspace(Config())
    for name in runs:  # working trees are texts too, with what was copied into them
        workspace.remove(name)
        world.forget(name)
    if world.sealed is not None:
        world.sealed(root, after.seq, stored.hash, after.at)
    return Pruned(root, after.seq, count, runs)
