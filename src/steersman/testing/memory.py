"""The store in memory: the same promises and the same errors as the one on disk, except that it dies with its process.

**Invariant:** a batch is looked at whole before anything of it is kept.
"""

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import structs

from steersman.errors import OverBudget, StaleError
from steersman.ports.journal import UNFINISHED_STATUSES, Batch, BudgetRow, Gate, Head, InboxItem, Spend

JournalRow = tuple[int, bytes, str]
BudgetKey = tuple[str, str]  # run and name of a budget figure
_decode_json_copy = msgspec.json.Decoder().decode
_encode_json_copy = msgspec.json.Encoder().encode


class MemoryJournal:
    """Implements ports.journal.Journal."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._heads: dict[str, Head] = {}
        self._rows: dict[str, list[JournalRow]] = {}
        self._snapshots: dict[str, tuple[int, bytes]] = {}
        self._payloads: dict[str, dict[str, bytes]] = {}
        self._keys: dict[str, bytes] = {}
        self._definitions: dict[str, bytes] = {}
        self._inbox: dict[int, InboxItem] = {}
        self._verdicts: dict[int, bytes] = {}
        self._gates: dict[str, Gate] = {}
        self._budgets: dict[BudgetKey, BudgetRow] = {}
        self._quarantined: dict[str, str] = {}
        self._commits = 0

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def append(self, batch: Batch) -> None:
        with self._lock:
            budgets = self._checked(batch)
            self._keep(batch)
            self._budgets.update(budgets)
            self._commits += 1

    def submit(self, batch: Batch, done: Callable[[BaseException | None], None]) -> None:
        try:
            self.append(batch)
        except Exception as error:
            done(error)
        else:
            done(None)

    def _checked(self, batch: Batch) -> dict[BudgetKey, BudgetRow]:
        """Raises what the batch fails for; else the budget figures after it."""
        self._check_fence(batch)
        for posted, _ in batch.taken:
            if posted not in self._inbox or posted in self._verdicts:
                raise StaleError(f"inbox item {posted} was taken already")
        changed: dict[BudgetKey, BudgetRow] = {}
        for spend in batch.spends:
            changed[spend.run, spend.name] = _apply_spend(self._figure(changed, spend), spend)
        return changed

    def _check_fence(self, batch: Batch) -> None:
        there = self._heads.get(batch.head.run)
        if batch.expect_seq == 0:
            if there is not None:
                raise StaleError(f"run {batch.head.run} exists already")
        elif there is None or (there.seq, there.epoch) != (batch.expect_seq, batch.expect_epoch):
            raise StaleError(f"run {batch.head.run} has moved on: another driver owns it now")

    def _figure(self, changed: dict[BudgetKey, BudgetRow], spend: Spend) -> BudgetRow:
        figure = (spend.run, spend.name)
        return changed.get(figure) or self._budgets.get(figure) or BudgetRow(spend.name, 0, 0, None)

    def _keep(self, batch: Batch) -> None:
        run = batch.head.run
        self._heads[run] = _merge_head(self._heads.get(run), batch)
        self._rows.setdefault(run, []).extend(batch.entries)
        if batch.snapshot is not None:
            self._snapshots[run] = (batch.head.seq, batch.snapshot)
        self._add(batch.head.root, batch.payloads)
        self._verdicts.update({posted: _encode_json_copy(verdict) for posted, verdict in batch.taken})
        for gate in batch.gates:
            self._gates.setdefault(gate.id, gate)
        self._gates.update({gate.id: gate for gate in batch.restored})
        for gate_id in batch.closed:
            self._gates.pop(gate_id, None)
        if batch.definition is not None:
            self._definitions.setdefault(*batch.definition)
        if batch.key is not None:
            self._keys.setdefault(batch.head.root, batch.key)
        for target, kind, body in batch.posts:
            self._insert_batch(target, kind, body, batch.head.at)

    def _add(self, root: str, payloads: tuple[tuple[str, bytes], ...]) -> None:
        for ref, data in payloads:
            self._payloads.setdefault(root, {}).setdefault(ref, data)

    def _insert_batch(self, run: str, kind: str, body: dict[str, Any], at: int) -> int:
        posted = InboxItem(len(self._inbox) + 1, run, kind, _decode_json_copy(_encode_json_copy(body)), at)
        self._inbox[posted.id] = posted
        return posted.id

    def store_payloads(self, root: str, payloads: tuple[tuple[str, bytes], ...]) -> None:
        with self._lock:
            self._add(root, payloads)
            self._commits += 1

    # ── inbox and gates ─────────────────────────────────────────────────────────────────────────────────────────────

    def post(self, run: str, kind: str, body: dict[str, Any], at: int) -> int:
        with self._lock:
            self._commits += 1
            return self._insert_batch(run, kind, body, at)

    def answer(self, gate: str, digest: str, body: dict[str, Any], at: int) -> int | None:
        with self._lock:
            there = self._gates.get(gate)
            if there is None or there.answer or there.digest != digest:
                return None
            self._gates[gate] = structs.replace(there, answer=body["choice"], person=body.get("person", ""))
            self._commits += 1
            return self._insert_batch(gate.split(":", 1)[0], "answer", {"gate": gate, **body}, at)

    def pending(self, run: str) -> list[InboxItem]:
        with self._lock:
            return [p for p in self._inbox.values() if p.run == run and p.id not in self._verdicts]

    def verdict(self, posted: int) -> dict[str, Any] | None:
        encoded = self._verdicts.get(posted)
        return _decode_json_copy(encoded) if encoded is not None else None

    def gates(self, run: str | None = None) -> list[Gate]:
        with self._lock:
            return [g for _, g in sorted(self._gates.items()) if run is None or g.run == run]

    def gate(self, gate: str) -> Gate | None:
        return self._gates.get(gate)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def head(self, run: str) -> Head | None:
        return self._heads.get(run)

    def heads(self, *, unfinished: bool = False, limit: int = 1000) -> list[Head]:
        with self._lock:
            heads = [h for h in self._heads.values() if not unfinished or h.status in UNFINISHED_STATUSES]
        return sorted(heads, key=lambda h: (h.created, h.run), reverse=True)[:limit]

    def find_runs(self, prefix: str) -> list[str]:
        with self._lock:
            return list(islice((r for r in sorted(self._heads) if r.startswith(prefix)), 20))

    def list_traced_runs(self) -> list[str]:
        with self._lock:
            return sorted({*self._heads, *self._rows, *self._snapshots})

    def children(self, run: str) -> list[Head]:
        with self._lock:
            heads = [h for h in self._heads.values() if run and h.parent == run]
        return sorted(heads, key=lambda h: (h.created, h.run))

    def tree(self, root: str) -> list[Head]:
        with self._lock:
            heads = [h for h in self._heads.values() if h.root == root]
        return sorted(heads, key=lambda h: (h.created, h.run))

    def due(self, now: int) -> list[Head]:
        with self._lock:
            due_heads = [
                (h.due, h.run, h) for h in self._heads.values() if h.due is not None and h.due <= now
            ]
        return [h for _, _, h in sorted(due_heads)[:1000]]

    def rows(self, run: str, after: int = 0) -> Iterator[JournalRow]:
        with self._lock:
            rows = [row for row in self._rows.get(run, ()) if row[0] > after]
        yield from rows

    def snapshot(self, run: str) -> tuple[int, bytes] | None:
        return self._snapshots.get(run)

    def payload(self, root: str, ref: str) -> bytes | None:
        return self._payloads.get(root, {}).get(ref)

    def payload_refs(self, root: str) -> list[str]:
        return sorted(self._payloads.get(root, ()))

    def key(self, root: str) -> bytes | None:
        return self._keys.get(root)

    def definition(self, digest: str) -> bytes | None:
        return self._definitions.get(digest)

    def budget(self, run: str) -> list[BudgetRow]:
        with self._lock:
            rows = [row for (owner, _), row in self._budgets.items() if owner == run]
        return sorted(rows, key=lambda row: row.name)

    # ── keeping house ───────────────────────────────────────────────────────────────────────────────────────────────

    def prune(self, batch: Batch, root: str) -> int:
        with self._lock:
            self.append(batch)
            self._keys.pop(root, None)
            return len(self._payloads.pop(root, ()))

    def quarantine(self, run: str, why: str) -> None:
        with self._lock:
            self._quarantined[run] = why
            self._commits += 1

    def lift_quarantine(self, run: str) -> bool:
        with self._lock:
            lifted = self._quarantined.pop(run, None) is not None
            self._commits += lifted
            return lifted

    def quarantined(self) -> dict[str, str]:
        return dict(self._quarantined)

    def list_strays(self) -> list[str]:
        with self._lock:
            owners = {
                "gate": {g.run for g in self._gates.values()},
                "budget": {run for run, _ in self._budgets},
                "inbox": {p.run for p in self._inbox.values()},
                "quarantine": set(self._quarantined),
                "payload": set(self._payloads),
                "payload_key": set(self._keys),
            }
            return [
                f"there are rows in {table} of run {run}, which the store does not have"
                for table, runs in owners.items()
                for run in sorted(runs - self._heads.keys())
            ]

    def integrity(self) -> list[str]:
        return []

    def changed(self) -> int:
        return self._commits

    def close(self) -> None:
        """Nothing is open."""


def _merge_head(old: Head | None, batch: Batch) -> Head:
    """What a run was created as stays; a quiet batch moves it on and changes nothing else; the rest is new."""
    new = batch.head
    if old is None:
        return new
    if batch.quiet:
        return structs.replace(old, state=new.state, seq=new.seq, hash=new.hash, at=new.at)
    return structs.replace(
        new, root=old.root, parent=old.parent, machine=old.machine, title=old.title, created=old.created
    )


def _apply_spend(row: BudgetRow, spend: Spend) -> BudgetRow:
    limit = spend.limit if spend.limit is not None else row.limit
    spent, reserved = row.spent + spend.spent, row.reserved + spend.reserved
    if spend.bound and limit is not None and spent + reserved > limit:
        raise OverBudget(spend.run, spend.name)
    return BudgetRow(spend.name, spent, reserved, limit)
