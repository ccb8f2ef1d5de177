"""Holds one run in memory while it is driven: its machine, its snapshot, its texts, and the one way to append."""

import asyncio
import hmac
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import structs

from steersman.contracts.config import FrozenConfig, decode_frozen_config
from steersman.engine.ports import Ports
from steersman.errors import BeyondLimitsError, ContractError, StoreBroken, UnknownRunError, UserError
from steersman.judges.redaction.redact import redact_text
from steersman.kernel.canonical import canonical_bytes
from steersman.kernel.compatible import find_definition_changes
from steersman.kernel.machine import Machine, definition_data
from steersman.kernel.record import BUDGET_GATE_JOB, RunAdvance, run_outcome, run_status_word
from steersman.kernel.replay import BadEntry, apply_entry, convert_context, rebuild_snapshot
from steersman.kernel.snapshot import JobItem, Snapshot, runtime_field
from steersman.kernel.tape import SealedEntry, read_entry
from steersman.ports.journal import Batch, Gate, Head, Journal, Spend

PAYLOAD_PREFIX = "p-"
_snapshot_decoder = msgspec.json.Decoder(Snapshot)


class PayloadStore:
    """The texts of a run tree by name: redacted, stored under a keyed digest, equal texts once."""

    def __init__(
        self,
        journal: Journal,
        root: str,
        key: bytes | None,
        known_secrets: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """Hides the values of `known_secrets` wherever a text holds them."""
        self._journal, self._root, self._key, self._known = journal, root, key, known_secrets
        self._waiting: dict[str, bytes] = {}
        # Names of texts that were redacted before, by the secrets of that time and the digest of the text.
        self._refs: dict[tuple[tuple[str, ...], bytes], str] = {}

    @property
    def is_pruned(self) -> bool:
        """Whether the texts were pruned; a run cannot go on without its key."""
        return self._key is None

    def add_text(self, text: str) -> str:
        """Redacts a text and returns its name; the text becomes durable with the next commit."""
        if not text:
            return ""
        if self._key is None:
            raise UserError(f"the texts of run {self._root} were pruned: start a new run instead")
        known_secrets = self._known()
        cache_key = known_secrets, hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")
        if (ref := self._refs.get(cache_key)) is None or not self._has_payload(ref):
            ref = self.put_redacted(redact_text(text, known_secrets, self._key))
            self._refs[cache_key] = ref
        return ref

    def _has_payload(self, ref: str) -> bool:
        return ref in self._waiting or self._journal.payload(self._root, ref) is not None

    def put_redacted(self, redacted: str) -> str:
        """Returns the name of a text that `redact_secrets` has already redacted."""
        assert self._key is not None  # noqa: S101  a run that begins has its key
        data = redacted.encode("utf-8", "backslashreplace")
        ref = payload_ref(self._key, data)
        if not self._has_payload(ref):
            self._waiting[ref] = data
        return ref

    def redact_secrets(self, text: str) -> str:
        """Returns a text with its secrets replaced, for a caller that keeps only a part of it."""
        return redact_text(text, self._known(), self._key or b"")

    def keyed_digest(self, digest: str) -> str:
        """Returns a digest under the run's key, which only the store has; empty where the key was pruned."""
        return hmac.digest(self._key, f"mark:{digest}".encode(), "sha256").hex() if self._key else ""

    def get(self, ref: str) -> str:
        """Returns the text of a name; empty for an empty name."""
        if not ref:
            return ""
        data = self._waiting.get(ref)
        if data is None:
            data = self._read_stored(ref)
        return data.decode("utf-8", "replace")

    def _read_stored(self, ref: str) -> bytes:
        """Returns the stored bytes; raises StoreBroken where they do not fit their name, so that no changed text steers a run."""
        data = self._journal.payload(self._root, ref)
        if data is None:
            raise UserError(
                f"run {self._root} has no text {ref} any more: it was pruned. Start a new run instead"
            )
        if self._key is not None and payload_ref(self._key, data) != ref:
            raise StoreBroken(
                f"text {ref} of run {self._root} was changed in the store. Run `steersman audit verify {self._root}`"
            )
        return data

    def take(self) -> tuple[tuple[str, bytes], ...]:
        """Removes and returns the texts that the next commit stores; texts added later wait for the commit after it."""
        pending = tuple(self._waiting.items())
        for ref, _ in pending:
            del self._waiting[ref]
        return pending

    def give_back(self, payloads: Iterable[tuple[str, bytes]]) -> None:
        """Keeps the texts of a commit that failed for the next commit."""
        self._waiting.update(payloads)


def payload_ref(key: bytes, data: bytes) -> str:
    """Returns the name of a payload: a keyed digest, so that a text cannot be guessed from its name."""
    return PAYLOAD_PREFIX + hmac.digest(key, data, "sha256").hex()[:32]


class CommitResults:
    """Passes results from the store's thread to the event loop, with one wake-up for a group of commits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[asyncio.Future[None], BaseException | None]] = deque()

    def add(self, future: "asyncio.Future[None]", error: BaseException | None) -> None:
        """Adds one result; the store's thread calls this."""
        self._waiting.append((future, error))
        if len(self._waiting) == 1:
            self._loop.call_soon_threadsafe(self._deliver_results)

    def _deliver_results(self) -> None:
        while self._waiting:
            future, error = self._waiting.popleft()
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(None)


_commit_results_by_loop: "WeakKeyDictionary[asyncio.AbstractEventLoop, CommitResults]" = WeakKeyDictionary()


def commit_results_for_loop(loop: asyncio.AbstractEventLoop) -> CommitResults:
    """Returns the one CommitResults of an event loop."""
    commit_results = _commit_results_by_loop.get(loop)
    if commit_results is None:
        commit_results = _commit_results_by_loop[loop] = CommitResults(loop)
    return commit_results


class ActiveRun:
    """A run that this process drives or shows."""

    def __init__(
        self, ports: Ports, machine: Machine, snapshot: Snapshot, title: str, created: int, key: bytes | None
    ) -> None:
        self.world, self.machine, self.snapshot = ports, machine, snapshot
        self.title, self.created = title, created
        self.payloads = PayloadStore(
            ports.journal, snapshot.root, key, lambda: ports.secrets(self.config.redact.env)
        )
        self.stored = (0, 0)  # seq and epoch in the store: the fence
        self.ancestors: tuple[str, ...] = ()
        self.together = False  # many runs at once: commit in groups
        self.watch: Callable[[ActiveRun, Sequence[SealedEntry]], None] = lambda *_: None
        self.made: RunAdvance | None = None  # the creation, until it is appended
        self._since = 0  # bytes of entries since the last snapshot
        self._weight = 0
        self._config: FrozenConfig | None = None
        self._head: Head | None = None  # as stored

    @property
    def config(self) -> FrozenConfig:
        """The project's configuration, as the run froze it when it began."""
        if self._config is None:
            ref = runtime_field(self.snapshot.context, "config_ref")
            self._config = decode_frozen_config(self.payloads.get(ref)) if ref else FrozenConfig()
        return self._config

    def apply_limits(self) -> None:
        """Applies today's limits to the run's configuration, as to that of a new run; raises BeyondLimitsError."""
        if self.payloads.is_pruned:  # such a run starts nothing
            return
        self._config, _, problems = self.world.limit_config(self.config)
        if problems:
            raise BeyondLimitsError(
                f"run {self.run} waits: its settings go beyond a limit of this machine. Nothing was done.\n"
                + "\n".join(problems)
                + f"\nTo go on, have the limit changed. To end it: `steersman abort {self.run}`, then start a new run"
            )

    @property
    def run(self) -> str:
        return self.snapshot.run

    def head(self) -> Head:
        """Returns the run's head row, computed from its tape."""
        return head_from_snapshot(self.machine, self.snapshot, self.title, self.created)

    async def append(
        self,
        advance: RunAdvance,
        *,
        taken: tuple[tuple[int, dict[str, Any]], ...] = (),
        spends: tuple[Spend, ...] = (),
        posts: tuple[tuple[str, str, dict[str, Any]], ...] = (),
        **batch_fields: Any,
    ) -> None:
        """Commits one batch; the snapshot changes only after the commit."""
        snapshot_before = self.snapshot
        self.snapshot = advance.snapshot
        payloads = self.payloads.take()
        opened_gates, closed_gates = _gate_changes(self.run, snapshot_before, advance)
        head = self.head()
        batch = Batch(
            head=head,
            quiet=self._differs_only_in_progress(head),
            expect_seq=self.stored[0],
            expect_epoch=self.stored[1],
            entries=tuple([(s.entry.seq, s.body, s.hash) for s in advance.entries]),
            snapshot=self._due_snapshot(advance.entries),
            payloads=payloads,
            taken=taken,
            gates=opened_gates,
            closed=closed_gates,
            spends=spends,
            posts=posts,
            **batch_fields,
        )
        try:
            await self._commit(batch)
        except BaseException:
            self.snapshot = snapshot_before
            self.payloads.give_back(payloads)
            raise
        self.stored = (self.snapshot.seq, self.snapshot.epoch)
        self._head = head
        self.watch(self, advance.entries)

    def _differs_only_in_progress(self, head: Head) -> bool:
        """Whether the new head differs from the stored one only in fields that every step changes."""
        stored_head = self._head
        return (
            stored_head is not None
            and stored_head.status == head.status
            and stored_head.outcome == head.outcome
            and stored_head.due == head.due
            and stored_head.epoch == head.epoch
            and stored_head.definition == head.definition
        )

    async def _commit(self, batch: Batch) -> None:
        if not self.together:
            self.world.journal.append(batch)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        commit_results = commit_results_for_loop(future.get_loop())
        self.world.journal.submit(batch, lambda error: commit_results.add(future, error))
        await future

    def note_stored_sizes(self, entry_bytes: int, snapshot_bytes: int) -> None:
        """Counts what the store holds already, so that a run with many short drives gets snapshots too."""
        self._since, self._weight = entry_bytes, snapshot_bytes

    def _due_snapshot(self, entries: Sequence[SealedEntry]) -> bytes | None:
        """Returns a snapshot when the entries since the last one are twice as large as it; else None."""
        self._since += sum(len(s.body) for s in entries)
        if self._since < max(self._weight * 2, 16_384):
            return None
        body = canonical_bytes(self.snapshot)
        self._since, self._weight = 0, len(body)
        return body


def head_from_snapshot(machine: Machine, snapshot: Snapshot, title: str, created: int) -> Head:
    """Returns the head row of a run, from its snapshot."""
    due_times = [i.due for i in snapshot.items.values() if i.due is not None]
    return Head(
        run=snapshot.run,
        root=snapshot.root,
        parent=snapshot.parent,
        machine=snapshot.machine,
        definition=snapshot.definition,
        title=title,
        state=snapshot.state,
        status=run_status_word(machine, snapshot),
        outcome=run_outcome(machine, snapshot),
        seq=snapshot.seq,
        hash=snapshot.hash,
        epoch=snapshot.epoch,
        created=created,
        at=snapshot.at,
        due=min(due_times) if due_times else None,
    )


def _gate_changes(
    run: str, snapshot_before: Snapshot, advance: RunAdvance
) -> tuple[tuple[Gate, ...], tuple[str, ...]]:
    """Returns the gates that these entries open, and the ids of those that they close."""
    opened_gates: list[Gate] = []
    closed_gates: list[str] = []
    for sealed_entry in advance.entries:
        entry = sealed_entry.entry
        if entry.planned:
            opened_gates += [gate_row(run, i, entry.at) for i in entry.planned if i.kind == "gate"]
        for item_id in entry.closed:
            item = snapshot_before.items.get(item_id)
            if any(g.id == item_id for g in opened_gates) if item is None else item.kind == "gate":
                closed_gates.append(item_id)
    return tuple(opened_gates), tuple(closed_gates)


def gate_row(run: str, item: JobItem, at: int) -> Gate:
    """Returns the row of a gate that an entry of time `at` opens."""
    gate_input = item.input
    return Gate(
        id=item.id,
        run=run,
        job=item.job,
        digest=gate_input["digest"],
        choices=tuple(gate_input["choices"]),
        shown=gate_input.get("shown", {}),
        opened=at,
        due=item.due,
        default=gate_input.get("default", ""),
    )


def require_head(journal: Journal, run: str) -> Head:
    """Returns the head row of a run; raises UnknownRunError where there is no such run."""
    head = journal.head(run)
    if head is None:
        raise UnknownRunError(run)
    return head


def load_active_run(ports: Ports, run: str, *, migrating: bool = False) -> ActiveRun:
    """Loads a run from its tape.

    Quarantines a run whose tape cannot be read, and releases one whose tape can be read again.
    """
    head = require_head(ports.journal, run)
    machine = ports.machines.get(head.machine)
    if machine is None:
        raise UserError(
            f"run {run} needs machine {head.machine}, which is not installed here. Run `steersman machine list`"
        )
    measured_tape = _MeasuredTape(ports.journal)
    snapshot = read_snapshot(measured_tape, run)
    if isinstance(snapshot, Snapshot) and _is_tape_cut(snapshot, head):
        snapshot = BadEntry(snapshot.seq + 1, f"the tape ends at {snapshot.seq}, its head says {head.seq}")
    if isinstance(snapshot, BadEntry):
        problem = f"entry {snapshot.seq}: {snapshot.why}"
        ports.journal.quarantine(run, problem)
        raise StoreBroken(
            f"run {run} is quarantined: its tape cannot be read ({problem}). Other runs go on. Run `steersman audit verify {run}`"
        )
    ports.journal.lift_quarantine(run)
    if snapshot.definition != machine.digest and not migrating:
        _check_compatible_definition(ports, machine, snapshot)
    active_run = ActiveRun(
        ports,
        machine,
        convert_context(machine, snapshot),
        head.title,
        head.created,
        ports.journal.key(head.root),
    )
    active_run.stored = (snapshot.seq, snapshot.epoch)
    active_run.note_stored_sizes(measured_tape.since, measured_tape.weight)
    active_run.ancestors = _ancestor_chain(ports.journal, head)
    return active_run


class _MeasuredTape:
    """Reads a tape and counts the bytes of its snapshot and of the entries after it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.since = self.weight = 0

    def snapshot(self, run: str) -> tuple[int, bytes] | None:
        snapshot_row = self._journal.snapshot(run)
        self.weight = len(snapshot_row[1]) if snapshot_row is not None else 0
        return snapshot_row

    def rows(self, run: str, after: int = 0) -> Iterator[tuple[int, bytes, str]]:
        self.since = 0
        for row in self._journal.rows(run, after):
            self.since += len(row[1])
            yield row


def _is_tape_cut(snapshot: Snapshot, head: Head) -> bool:
    """Whether the tape is shorter than the head that was read before it, or another one; a longer tape has only grown."""
    return snapshot.seq < head.seq or (snapshot.seq == head.seq and snapshot.hash != head.hash)


def read_snapshot(journal: "Journal | _MeasuredTape", run: str) -> Snapshot | BadEntry:
    """Rebuilds a run from its last snapshot and later entries; from entry 1 where the snapshot does not fit."""
    snapshot_row = journal.snapshot(run)
    if snapshot_row is not None:
        try:
            start = _snapshot_decoder.decode(snapshot_row[1])
        except msgspec.MsgspecError:
            start = None
        if start is not None and start.seq == snapshot_row[0]:
            snapshot = _apply_later_entries(journal, run, start)
            if snapshot is not None:
                return snapshot
    return rebuild_snapshot(journal.rows(run), run)


def _apply_later_entries(journal: "Journal | _MeasuredTape", run: str, start: Snapshot) -> Snapshot | None:
    snapshot = start
    for seq, body, hash_ in journal.rows(run, start.seq):
        try:
            entry = read_entry(body)
        except msgspec.MsgspecError:
            return None
        if seq != snapshot.seq + 1 or entry.prev != snapshot.hash:
            return None
        snapshot = apply_entry(snapshot, entry, hash_)
    return snapshot


def _check_compatible_definition(ports: Ports, machine: Machine, snapshot: Snapshot) -> None:
    old_definition = ports.journal.definition(snapshot.definition)
    if old_definition is None:
        raise ContractError(
            f"run {snapshot.run} uses definition {snapshot.definition}, which the store does not have. Run `steersman machine migrate {snapshot.run} --reason …`"
        )
    running_jobs = {i.job for i in snapshot.items.values() if i.job != BUDGET_GATE_JOB}
    changes = find_definition_changes(
        msgspec.json.decode(old_definition), definition_data(machine), snapshot.state, running_jobs
    )
    if changes:
        change_list = "; ".join(changes)
        raise UserError(
            f"run {snapshot.run} uses an older definition of {machine.name}, and parts that it can still reach have changed: {change_list}. Check the changes, then run `steersman machine migrate {snapshot.run} --reason …`"
        )


def _ancestor_chain(journal: Journal, head: Head) -> tuple[str, ...]:
    chain = [head.run]
    while head.parent:
        parent = journal.head(head.parent)
        if parent is None:
            break
        chain.append(parent.run)
        head = parent
    return tuple(chain)


def release_held_item(item: JobItem) -> JobItem:
    """Returns a held effect as one that may start."""
    return structs.replace(item, held=False)
