"""`audit verify`: one pass over a tape that rebuilds the run and holds everything derived from it against that.

It streams: memory does not grow with the tape. A row that cannot be read or applied is a finding, never a crash.
**Invariant:** only recorded ops rebuild the run; a machine's code is asked for nothing but the words of its head row.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.config import decode_frozen_config
from steersman.errors import UserError
from steersman.kernel.build import Machine
from steersman.kernel.canonical import canonical, digest
from steersman.kernel.replay import Bad, Row, applied, chain
from steersman.kernel.snapshot import Snapshot, state_hash
from steersman.kernel.tape import Entry, read
from steersman.ports.anchors import Kept
from steersman.ports.journal import UNFINISHED, BudgetRow, Gate, Head, Journal
from steersman.runtime.audit.anchoring import Vouched, kept_anchors, known_runs
from steersman.runtime.audit.budgets import Spent, compare_budget
from steersman.runtime.audit.gates import compare_gates, waiting
from steersman.runtime.audit.heads import compare_head
from steersman.runtime.audit.refs import Pins, ReadRefs, refs_reader, unknown_runs
from steersman.runtime.audit.texts import Texts
from steersman.runtime.audit.verdict import Findings, Verdict
from steersman.runtime.budget import limits
from steersman.runtime.world import World

FEW = 500  # entries: of a longer run only the texts that it can still reach are read before it is driven
TRIES = 3  # a run that moves while it is read may look torn once
UNANCHORED = (
    "entries cut off the end with the rows beside the tape rewritten to fit: no anchor says how long the tape was",
    "a tape rewritten as a whole with every hash computed anew: no anchor says what it was",
)
BEYOND = (
    "an answer, an event or an abort put into the inbox with the rights of this account: told while it waits, then on tape in the name it gave",
    "inbox rows that were taken: the tape says what came of them",
    "a run put aside by hand: it is released when it fits",
    "refusals beyond those on tape: they are only counted",
)


def audited(world: World, run: str) -> Verdict:
    """The verdict on a run, with every anchor that the project keeps; one that was put aside and fits is released."""
    verdict = verify(world.journal, world.machines, run, kept_anchors(world, run), refs_reader(world, run))
    if not verdict.ok:
        return verdict
    found = Findings()
    lifted = found.read("the list of runs put aside", lambda: world.journal.release(run))
    return replace(verdict, ok=not found.count, problems=found.problems(), released=bool(lifted))


def around(world: World) -> Verdict:
    """The verdict on what lies in the store beside the runs; it has no run's name."""
    found = Findings()
    for words in found.read("the store's own tables", world.journal.strays) or ():
        found.add(words)
    gone = unknown_runs(world, known_runs(world))
    return Verdict("", not found.count, 0, problems=found.problems(), gone=gone)


def missing(world: World, run: str) -> Verdict:
    """The verdict on an anchored run where the store itself is gone: the same as on one that the store has lost."""
    return _Audit(world.journal, world.machines, run, kept_anchors(world, run)).gone()


def verify(
    journal: Journal,
    machines: Mapping[str, Machine],
    run: str,
    anchors: Kept | None = None,
    refs: ReadRefs | None = None,
) -> Verdict:
    """Holds chain, state, seals, snapshot, head, gates, payloads, definitions, anchors and refs against each other."""
    return _verify(lambda: _Audit(journal, machines, run, anchors or Kept(), refs))


def verify_for_driving(
    journal: Journal, machines: Mapping[str, Machine], run: str, refs: ReadRefs | None = None
) -> Verdict:
    """The part of `verify` that needs no other run and no anchor. It leaves out budgets too, and answers in the inbox,
    which the driver refuses on tape where they do not fit."""
    return _verify(lambda: _Audit(journal, machines, run, Kept(), refs, driving=True))


def _verify(new_audit: Callable[[], "_Audit"]) -> Verdict:
    """The verdict of a pass during which nothing moved, or of the last try."""
    for _ in range(TRIES):
        audit = new_audit()
        verdict = audit.verdict()
        if not audit.moved:
            break
    return verdict


class _Audit:
    """One pass."""

    def __init__(
        self,
        journal: Journal,
        machines: Mapping[str, Machine],
        run: str,
        anchors: Kept,
        refs: ReadRefs | None = None,
        *,
        driving: bool = False,
    ) -> None:
        self.journal, self.machines, self.run, self.anchors = journal, machines, run, anchors
        self.read_refs, self.driving = refs, driving
        self.pins: Pins | None = None
        self.gone_refs: tuple[str, ...] = ()
        self.found = Findings()
        self.vouched = Vouched(anchors)
        self.texts: Texts | None = None
        self.spent = Spent()
        self.first = ("", 0)  # title and time of the creation
        self.pruned = False
        self.moved = False
        self.opened: dict[str, int] = {}  # the gates that are open, and when they were opened
        self.waiting: tuple[str, ...] = ()  # sent, and not taken yet
        self.at_head: Snapshot | None = None
        self._row: Row = (0, b"", "")
        self._prev = ""
        self._definitions: set[str] = set()

    def verdict(self) -> Verdict:
        kept = self.found.read("the snapshot row", lambda: self.journal.snapshot(self.run))
        head: Head | None = self.found.read("the head row", lambda: self.journal.head(self.run))
        self.pins = Pins(self.run, self.read_refs) if self.read_refs is not None else None
        last = self._walk(head, kept)
        nothing = last is None and head is None and kept is None
        if nothing and not self.found.count and not self.anchors.genuine:
            raise UserError(f"there is no run {self.run}: see `steersman runs --all`")
        if last is not None:
            self._ends(head, last, kept)
        elif not self.found.count:
            return self.gone()
        return self._told(last)

    def gone(self) -> Verdict:
        """Nothing is left of the tape; no row is asked for."""
        self.found.add("entry 1 is missing: nothing is left of this tape", 1)
        return self._told(None)

    def _told(self, last: Snapshot | None) -> Verdict:
        seq, known = last.seq if last is not None else 0, self.vouched.highest
        for doubt in self.anchors.doubts:
            self.found.add(doubt)
        unseen: tuple[str, ...] = UNANCHORED if known is None else ()
        if known is not None and known < seq:
            unseen = (
                f"entries {known + 1} to {seq} cut off or rewritten with new hashes: the newest anchor is of entry {known}",
            )
        if self.anchors.blanks:
            unseen += (f"what {self.anchors.blanks} unreadable lines among the anchors said",)
        return Verdict(
            self.run,
            not self.found.count,
            seq,
            self.found.first,
            self.found.problems(),
            known is not None,
            (*unseen, *self.found.unseen),
            waiting=self.waiting,
            gone=self.gone_refs,
            beyond=BEYOND,
        )

    # ── the entries ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _walk(self, head: Head | None, kept: Any) -> Snapshot | None:
        """The run after its last good entry; stops at the first that does not fit."""
        snapshot: Snapshot | None = None
        wanted = head.seq if head is not None else None
        every = not self.driving or (isinstance(wanted, int) and wanted <= FEW)
        marked = kept[0] if kept is not None else None
        links = chain(self._rows(), self.run)
        try:
            for link in links:
                if isinstance(link, Bad):
                    self._broken(link, snapshot)
                    return None
                entry, hash_ = link
                problem = self._problem(snapshot, entry)
                if problem:
                    self.found.add(f"entry {entry.seq} {problem}", entry.seq)
                    return None
                snapshot = applied(snapshot, entry, hash_)
                self._prev = entry.prev
                if entry.kind != "transition":
                    self._beside(snapshot, entry)
                if entry.planned or entry.closed:
                    self._asked(entry)
                if entry.spent or entry.kind == "gate_answered":
                    self.spent.see(entry)
                if self.texts is not None and every:
                    self.texts.see(self._row[1], entry)
                if self.pins is not None:
                    self.pins.see(self._row[1], entry)
                self.vouched.see(entry.seq, hash_, self.found)
                if entry.seq == wanted:
                    self.at_head = snapshot
                if entry.seq == marked and canonical(snapshot) != kept[1]:
                    self.found.add(f"the snapshot of entry {marked} is not what the tape gives")
        except Exception as error:
            at = (snapshot.seq if snapshot is not None else 0) + 1
            self.found.unreadable(f"entry {at}", error, at)
            return None
        if self.texts is not None and snapshot is not None and not every:
            self.texts.see_state(snapshot)
        return snapshot

    def _asked(self, entry: Entry) -> None:
        self.opened.update({i.id: entry.at for i in entry.planned if i.kind == "gate"})
        for closed in entry.closed:
            self.opened.pop(closed, None)

    def _rows(self) -> Iterator[Row]:
        for row in self.journal.rows(self.run):
            self._row = row
            yield row

    def _broken(self, bad: Bad, last: Snapshot | None) -> None:
        """An entry put in between fits its predecessor; what gives it away is that the next one claims its place."""
        if last is not None and self._claims(self._row, last):
            self.found.add(f"entry {last.seq} was put in: the one after it claims its place", last.seq)
        else:
            self.found.add(bad.why, bad.seq)

    def _claims(self, row: Row, last: Snapshot) -> bool:
        try:
            entry = read(row[1])
        except msgspec.MsgspecError:
            return False
        place = (entry.run, entry.seq, entry.prev) == (self.run, last.seq, self._prev)
        return place and row[2] == digest(row[1]) != last.hash

    def _problem(self, before: Snapshot | None, entry: Entry) -> str:
        if (before is None) != (entry.kind == "created"):
            return "does not begin the run" if before is None else "begins the run a second time"
        if before is None:
            return "" if isinstance(entry.context, dict) and entry.to and entry.root else "creates nothing"
        if entry.kind in ("transition", "override") and entry.source != before.state:
            return f"leads from {entry.source}, but the run was in {before.state}"
        if entry.kind == "sealed" and entry.state_hash != state_hash(before):
            return "seals another state than the one the tape gives"
        return ""

    def _beside(self, snapshot: Snapshot, entry: Entry) -> None:
        """What entries other than transitions bring with them."""
        if entry.kind == "created":
            self.first = (entry.title, entry.at)
            self.texts = Texts(self.journal, snapshot.root, self.found)
        if entry.kind == "pruned":
            self.pruned = True
        if entry.definition and entry.definition not in self._definitions:
            self._definitions.add(entry.definition)
            self._define(entry)

    def _define(self, entry: Entry) -> None:
        body = self.found.read("a definition", lambda: self.journal.definition(entry.definition))
        if body is None:
            self.found.add(
                f"entry {entry.seq} names definition {entry.definition}, which is not in the store", entry.seq
            )
        elif not isinstance(body, bytes) or digest(body)[:16] != entry.definition:
            self.found.add(
                f"entry {entry.seq} names definition {entry.definition}, which does not have the digest in its name",
                entry.seq,
            )

    # ── what is derived from them ───────────────────────────────────────────────────────────────────────────────────

    def _ends(self, head: Head | None, last: Snapshot, kept: Any) -> None:
        gates = self.found.read("a gate row", lambda: self.journal.gates(self.run))
        said = self.found.read("an inbox row", lambda: self.journal.pending(self.run))
        named = {g.id: self._gate(g.id) for g in gates or ()}
        children = [] if self.driving else self._children()
        rows = self._budget(self.run)
        of_children = [self._budget(c.run) for c in children]
        now = self.found.read("the head row", lambda: self.journal.head(self.run))  # after what moves with it
        moved = now != head or (not self.driving and children != self._children())
        self.moved = moved or self._answered(gates)
        if self.moved:
            self.found.unseen.append("whether its gates, budget and refs fit: it moved on while it was read")
        else:
            if gates is not None and said is not None:
                compare_gates(last, gates, said, self.found, named, self.opened, driving=self.driving)
            if self.pins is not None:
                self.gone_refs = self.pins.settle(last, self.found)
            if not self.driving:
                idle = not last.items and all(c.status not in UNFINISHED for c in children)
                bound = self._limits(last, bool(children))
                compare_budget(rows, self.spent, of_children, bound, idle=idle, found=self.found)
        self.waiting = self.found.read("an inbox row", lambda: waiting(said or (), last)) or ()
        if head is not None:
            self._head(head, last)
        else:
            self.found.add("the head row is missing")
        if kept is not None and not (isinstance(kept[0], int) and 1 <= kept[0] <= last.seq):
            self.found.add(
                f"there is a snapshot of entry {kept[0]!r}, but the tape ends with entry {last.seq}"
            )
        self.vouched.settle(last.seq, self.found)
        if self.texts is not None:
            if last.root == self.run and not self.driving:
                self.texts.rest()
            self.texts.settle(bool(self.texts.missing) and self._pruned(last.root))

    def _gate(self, gate: str) -> Gate | None:
        row: Gate | None = self.found.read("a gate row", lambda: self.journal.gate(gate))
        return row

    def _answered(self, gates: list[Gate] | None) -> bool:
        """Whether somebody has answered between the look at the gates and that at the inbox."""
        return gates is not None and gates != self.found.read(
            "a gate row", lambda: self.journal.gates(self.run)
        )

    def _children(self) -> list[Head]:
        return self.found.read("a head row", lambda: self.journal.children(self.run)) or []

    def _budget(self, run: str) -> list[BudgetRow]:
        return self.found.read("a budget row", lambda: self.journal.budget(run)) or []

    def _limits(self, last: Snapshot, children: bool) -> dict[str, int] | None:
        """The limits that the run began with: a child has none of its own, and a child may raise its parent's."""
        if last.parent:
            return {}
        ref = last.context.get("config_ref", "") if isinstance(last.context, dict) else ""
        data = self.found.read("the settings", lambda: self.journal.payload(last.root, ref)) if ref else b"{}"
        if children:
            self.found.unseen.append("its budget's limits: its children may have raised them")
        if children or data is None:
            return None
        try:
            return limits(decode_frozen_config(data))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None  # the payload's name has told already that it was changed

    def _head(self, head: Head, last: Snapshot) -> None:
        """The head row, and whether the tape ends where it says; its hash tells which of the two is wrong."""
        seq = head.seq if isinstance(head.seq, int) else 0
        against = last
        if seq > last.seq and head.hash != last.hash:
            self.found.add(f"entry {last.seq + 1} is missing: the head row says {seq} entries", last.seq + 1)
        elif seq < last.seq and self.at_head is not None and self.at_head.hash == head.hash:
            against = self.at_head
            if not self.moved:
                self.found.add(f"entry {seq + 1} lies beyond the head row", seq + 1)
        old = self.found.read("a definition", lambda: self.journal.definition(against.definition))
        compare_head(head, against, self.first, self.machines, old, self.found)

    def _pruned(self, root: str) -> bool:
        """Whether this tape, or that of the tree's first run, says that the texts were dropped."""
        if self.pruned or root == self.run:
            return self.pruned
        return bool(self.found.read("the tape of the tree's first run", lambda: self._says_pruned(root)))

    def _says_pruned(self, root: str) -> bool:
        links = chain(self.journal.rows(root), root)
        return any(not isinstance(link, Bad) and link[0].kind == "pruned" for link in links)
