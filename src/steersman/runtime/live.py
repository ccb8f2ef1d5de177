"""One run in memory while it is driven: its machine, its snapshot, and the one way to append to it."""

import asyncio
import hmac
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import structs

from steersman.contracts.config import FrozenConfig, decode_frozen_config
from steersman.errors import BeyondLimitsError, ContractError, StoreBroken, UserError
from steersman.judges.redaction import redact
from steersman.kernel.build import Machine, definition
from steersman.kernel.canonical import canonical
from steersman.kernel.compatible import difference
from steersman.kernel.record import BUDGET, Advance, outcome, status
from steersman.kernel.replay import Bad, applied, rebuilt, typed
from steersman.kernel.snapshot import Item, Snapshot
from steersman.kernel.tape import Sealed, read
from steersman.ports.journal import Batch, Gate, Head, Journal, Spend
from steersman.runtime.world import World

PREFIX = "p-"
_snapshot = msgspec.json.Decoder(Snapshot)


class Payloads:
    """Outside text by name: redacted, stored under a keyed digest, equal texts once."""

    def __init__(
        self, journal: Journal, root: str, key: bytes | None, known: Callable[[], tuple[str, ...]] = tuple
    ) -> None:
        """`known` are values to be hidden wherever they stand."""
        self._journal, self._root, self._key, self._known = journal, root, key, known
        self._waiting: dict[str, bytes] = {}
        # Of texts that were put, by what was hidden and their digest: they are not looked through again.
        self._refs: dict[tuple[tuple[str, ...], bytes], str] = {}

    @property
    def gone(self) -> bool:
        """Whether they were pruned: without its key a run cannot go on."""
        return self._key is None

    def put(self, text: str) -> str:
        """The name of a text; it becomes durable with the next commit, which is the first that can name it."""
        if not text:
            return ""
        if self._key is None:
            raise UserError(f"the texts of run {self._root} were pruned: start a new run instead")
        known = self._known()
        seen = known, hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")
        if (ref := self._refs.get(seen)) is None or not self._has(ref):
            ref = self.put_hidden(redact(text, known, self._key))
            self._refs[seen] = ref
        return ref

    def _has(self, ref: str) -> bool:
        return ref in self._waiting or self._journal.payload(self._root, ref) is not None

    def put_hidden(self, hidden: str) -> str:
        """The same for a text of a run that just begins, as `hide` has returned it."""
        assert self._key is not None  # noqa: S101  nothing of it was pruned
        data = hidden.encode("utf-8", "backslashreplace")
        ref = payload_ref(self._key, data)
        if not self._has(ref):
            self._waiting[ref] = data
        return ref

    def hide(self, text: str) -> str:
        """The text as it would be kept, for whoever keeps only a part of it."""
        return redact(text, self._known(), self._key or b"")

    def mark(self, digest: str) -> str:
        """A digest under the run's key: whoever has not the store cannot make it; nothing where the key was pruned."""
        return hmac.digest(self._key, f"mark:{digest}".encode(), "sha256").hex() if self._key else ""

    def get(self, ref: str) -> str:
        """The text behind a name; empty for no name."""
        if not ref:
            return ""
        data = self._waiting.get(ref)
        if data is None:
            data = self._stored(ref)
        return data.decode("utf-8", "replace")

    def _stored(self, ref: str) -> bytes:
        """The bytes that the store has, held against their name: a changed text steers no run."""
        data = self._journal.payload(self._root, ref)
        if data is None:
            raise UserError(
                f"a text of run {self._root} is gone ({ref}): it was pruned; start a new run instead"
            )
        if self._key is not None and payload_ref(self._key, data) != ref:
            raise StoreBroken(
                f"a text of run {self._root} was changed in the store ({ref}): see `steersman audit verify {self._root}`"
            )
        return data

    def take(self) -> tuple[tuple[str, bytes], ...]:
        """What the next commit has to carry; what an effect puts beside the loop meanwhile is left for the one after."""
        waiting = tuple(self._waiting.items())
        for ref, _ in waiting:
            del self._waiting[ref]
        return waiting

    def give_back(self, payloads: Iterable[tuple[str, bytes]]) -> None:
        """A commit did not happen: the next one carries them."""
        self._waiting.update(payloads)


def payload_ref(key: bytes, data: bytes) -> str:
    """The name of a payload: a keyed digest, so that nobody can guess a text from it."""
    return PREFIX + hmac.digest(key, data, "sha256").hex()[:32]


class Answers:
    """Brings what the store's thread has committed back to the loop: one wake-up for a whole group."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[asyncio.Future[None], BaseException | None]] = deque()

    def add(self, future: "asyncio.Future[None]", error: BaseException | None) -> None:
        """From the store's thread."""
        self._waiting.append((future, error))
        if len(self._waiting) == 1:
            self._loop.call_soon_threadsafe(self._give)

    def _give(self) -> None:
        while self._waiting:
            future, error = self._waiting.popleft()
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(None)


_answers: "WeakKeyDictionary[asyncio.AbstractEventLoop, Answers]" = WeakKeyDictionary()


def answers_of(loop: asyncio.AbstractEventLoop) -> Answers:
    """The loop's own."""
    found = _answers.get(loop)
    if found is None:
        found = _answers[loop] = Answers(loop)
    return found


class Live:
    """A run that is ours to drive."""

    def __init__(
        self, world: World, m: Machine, snapshot: Snapshot, title: str, created: int, key: bytes | None
    ) -> None:
        self.world, self.machine, self.snapshot = world, m, snapshot
        self.title, self.created = title, created
        self.payloads = Payloads(
            world.journal, snapshot.root, key, lambda: world.secrets(self.config.redact.env)
        )
        self.stored = (0, 0)  # seq and epoch in the store: the fence
        self.ancestors: tuple[str, ...] = ()
        self.together = False  # many runs at once: commit in groups
        self.watch: Callable[[Live, Sequence[Sealed]], None] = lambda *_: None
        self.made: Advance | None = None  # the creation, until it is appended
        self._since = 0  # bytes of entries since the last snapshot
        self._weight = 0
        self._config: FrozenConfig | None = None
        self._head: Head | None = None  # as stored

    @property
    def config(self) -> FrozenConfig:
        """The project's configuration as it was when the run began."""
        if self._config is None:
            ref = getattr(self.snapshot.context, "config_ref", "")
            self._config = decode_frozen_config(self.payloads.get(ref)) if ref else FrozenConfig()
        return self._config

    def apply_limits(self) -> None:
        """Holds the run's configuration to the limits of now, as that of a new run; raises BeyondLimitsError."""
        if self.payloads.gone:  # nothing is started for it any more
            return
        self._config, _, problems = self.world.limit_config(self.config)
        if problems:
            raise BeyondLimitsError(
                f"run {self.run} waits: its settings go beyond a limit that holds now. Nothing was done.\n"
                + "\n".join(problems)
                + f"\nTo go on, have the limit changed. To end it: `steersman abort {self.run}`, then start a new run"
            )

    @property
    def run(self) -> str:
        return self.snapshot.run

    def head(self) -> Head:
        """The run's row for listing: a function of its tape."""
        return head_of(self.machine, self.snapshot, self.title, self.created)

    async def append(
        self,
        advance: Advance,
        *,
        taken: tuple[tuple[int, dict[str, Any]], ...] = (),
        spends: tuple[Spend, ...] = (),
        posts: tuple[tuple[str, str, dict[str, Any]], ...] = (),
        **more: Any,
    ) -> None:
        """One commit; afterwards, and only then, the snapshot is the new one."""
        before = self.snapshot
        self.snapshot = advance.snapshot
        payloads = self.payloads.take()
        opened, closed = _gates(self.run, before, advance)
        head = self.head()
        batch = Batch(
            head=head,
            quiet=self._quiet(head),
            expect_seq=self.stored[0],
            expect_epoch=self.stored[1],
            entries=tuple([(s.entry.seq, s.body, s.hash) for s in advance.entries]),
            snapshot=self._due_snapshot(advance.entries),
            payloads=payloads,
            taken=taken,
            gates=opened,
            closed=closed,
            spends=spends,
            posts=posts,
            **more,
        )
        try:
            await self._commit(batch)
        except BaseException:
            self.snapshot = before
            self.payloads.give_back(payloads)
            raise
        self.stored = (self.snapshot.seq, self.snapshot.epoch)
        self._head = head
        self.watch(self, advance.entries)

    def _quiet(self, head: Head) -> bool:
        """Whether the stored head differs only in what every step changes."""
        old = self._head
        return (
            old is not None
            and old.status == head.status
            and old.outcome == head.outcome
            and old.due == head.due
            and old.epoch == head.epoch
            and old.definition == head.definition
        )

    async def _commit(self, batch: Batch) -> None:
        if not self.together:
            self.world.journal.append(batch)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answers = answers_of(future.get_loop())
        self.world.journal.submit(batch, lambda error: answers.add(future, error))
        await future

    def weigh(self, since: int, weight: int) -> None:
        """What the store holds already: a run driven in many short sittings gets its snapshots too."""
        self._since, self._weight = since, weight

    def _due_snapshot(self, entries: Sequence[Sealed]) -> bytes | None:
        """Snapshots when what came since the last outweighs it: loading stays short, the store stays small."""
        self._since += sum(len(s.body) for s in entries)
        if self._since < max(self._weight * 2, 16_384):
            return None
        body = canonical(self.snapshot)
        self._since, self._weight = 0, len(body)
        return body


def head_of(m: Machine, s: Snapshot, title: str, created: int) -> Head:
    """What a listing shows of a run."""
    dues = [i.due for i in s.items.values() if i.due is not None]
    return Head(
        run=s.run,
        root=s.root,
        parent=s.parent,
        machine=s.machine,
        definition=s.definition,
        title=title,
        state=s.state,
        status=status(m, s),
        outcome=outcome(m, s),
        seq=s.seq,
        hash=s.hash,
        epoch=s.epoch,
        created=created,
        at=s.at,
        due=min(dues) if dues else None,
    )


def _gates(run: str, before: Snapshot, advance: Advance) -> tuple[tuple[Gate, ...], tuple[str, ...]]:
    """The gates that these entries open, and those they close."""
    opened: list[Gate] = []
    closed: list[str] = []
    for stored in advance.entries:
        entry = stored.entry
        if entry.planned:
            opened += [gate_row(run, i, entry.at) for i in entry.planned if i.kind == "gate"]
        for c in entry.closed:
            known = before.items.get(c)
            if any(g.id == c for g in opened) if known is None else known.kind == "gate":
                closed.append(c)
    return tuple(opened), tuple(closed)


def gate_row(run: str, item: Item, at: int) -> Gate:
    """The row of a gate that an entry of this time has opened."""
    given = item.input
    return Gate(
        id=item.id,
        run=run,
        job=item.job,
        digest=given["digest"],
        choices=tuple(given["choices"]),
        shown=given.get("shown", {}),
        opened=at,
        due=item.due,
        default=given.get("default", ""),
    )


def load(world: World, run: str, *, migrating: bool = False) -> Live:
    """The run as its tape says, ready to be driven; quarantines one whose tape cannot be read, and releases one whose tape can be again."""
    head = world.journal.head(run)
    if head is None:
        raise UserError(f"there is no run {run}: see `steersman runs`")
    m = world.machines.get(head.machine)
    if m is None:
        raise UserError(
            f"run {run} needs machine {head.machine}, which is not installed here: see `steersman machine list`"
        )
    weighed = _Weighed(world.journal)
    snapshot = read_snapshot(weighed, run)
    if isinstance(snapshot, Snapshot) and _cut(snapshot, head):
        snapshot = Bad(snapshot.seq + 1, f"the tape ends at {snapshot.seq}, its head says {head.seq}")
    if isinstance(snapshot, Bad):
        why = f"entry {snapshot.seq}: {snapshot.why}"
        world.journal.quarantine(run, why)
        raise StoreBroken(
            f"run {run} is quarantined, its tape cannot be read ({why}); the other runs go on: see `steersman audit verify {run}`"
        )
    world.journal.release(run)
    if snapshot.definition != m.digest and not migrating:
        _compatible(world, m, snapshot)
    live = Live(world, m, typed(m, snapshot), head.title, head.created, world.journal.key(head.root))
    live.stored = (snapshot.seq, snapshot.epoch)
    live.weigh(weighed.since, weighed.weight)
    live.ancestors = _ancestors(world.journal, head)
    return live


class _Weighed:
    """A tape on its way: how much of it came after its snapshot, and how heavy that is."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.since = self.weight = 0

    def snapshot(self, run: str) -> tuple[int, bytes] | None:
        kept = self._journal.snapshot(run)
        self.weight = len(kept[1]) if kept is not None else 0
        return kept

    def rows(self, run: str, after: int = 0) -> Iterator[tuple[int, bytes, str]]:
        self.since = 0
        for row in self._journal.rows(run, after):
            self.since += len(row[1])
            yield row


def _cut(snapshot: Snapshot, head: Head) -> bool:
    """The head was read first: a longer tape has grown meanwhile, a shorter or another one is damaged."""
    return snapshot.seq < head.seq or (snapshot.seq == head.seq and snapshot.hash != head.hash)


def read_snapshot(journal: "Journal | _Weighed", run: str) -> Snapshot | Bad:
    """From the last snapshot and the entries after it; from the beginning when the snapshot does not fit."""
    kept = journal.snapshot(run)
    if kept is not None:
        try:
            start = _snapshot.decode(kept[1])
        except msgspec.MsgspecError:
            start = None
        if start is not None and start.seq == kept[0]:
            after = _onward(journal, run, start)
            if after is not None:
                return after
    return rebuilt(journal.rows(run), run)


def _onward(journal: "Journal | _Weighed", run: str, start: Snapshot) -> Snapshot | None:
    snapshot = start
    for seq, body, hash_ in journal.rows(run, start.seq):
        try:
            entry = read(body)
        except msgspec.MsgspecError:
            return None
        if seq != snapshot.seq + 1 or entry.prev != snapshot.hash:
            return None
        snapshot = applied(snapshot, entry, hash_)
    return snapshot


def _compatible(world: World, m: Machine, snapshot: Snapshot) -> None:
    old = world.journal.definition(snapshot.definition)
    if old is None:
        raise ContractError(
            f"run {snapshot.run} was made under definition {snapshot.definition}, which the store does not have: run `steersman machine migrate {snapshot.run} --reason …`"
        )
    running = {i.job for i in snapshot.items.values() if i.job != BUDGET}
    changes = difference(msgspec.json.decode(old), definition(m), snapshot.state, running)
    if changes:
        told = "; ".join(changes)
        raise UserError(
            f"run {snapshot.run} was made under another {m.name}, and what it can still reach has changed: {told}. Look at it, then `steersman machine migrate {snapshot.run} --reason …`"
        )


def _ancestors(journal: Journal, head: Head) -> tuple[str, ...]:
    chain = [head.run]
    while head.parent:
        parent = journal.head(head.parent)
        if parent is None:
            break
        chain.append(parent.run)
        head = parent
    return tuple(chain)


def released(item: Item) -> Item:
    """A held effect that may start."""
    return structs.replace(item, held=False)
