"""`audit verify`: rebuilds a run in one pass over its tape and compares everything derived from it.

Memory does not grow with the tape. A row that cannot be read or applied is a finding, never a crash.
**Invariant:** only recorded ops rebuild the run; the machine's code supplies nothing but the words of the head row.

A person accepts findings by the digest of their words, so a changed wording voids older acceptances.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.config import decode_frozen_config
from steersman.engine.audit.anchoring import AnchorComparison, collect_anchors, list_known_runs
from steersman.engine.audit.refs import RefComparison, RefsReader, find_unknown_runs, make_refs_reader
from steersman.engine.audit.side_rows import (
    TapeSpending,
    compare_budget,
    compare_gates,
    compare_head,
    describe_waiting_items,
)
from steersman.engine.audit.texts import PayloadAudit
from steersman.engine.audit.verdict import AuditFindings, AuditVerdict
from steersman.engine.ports import Ports
from steersman.engine.run_writer import budget_limits
from steersman.errors import UnknownRunError
from steersman.kernel.canonical import canonical_bytes, sha256_hex
from steersman.kernel.machine import Machine
from steersman.kernel.replay import BadEntry, StoredRow, apply_entry, verify_chain
from steersman.kernel.snapshot import Snapshot, runtime_field, state_hash
from steersman.kernel.tape import Entry, read_entry
from steersman.ports.anchors import RunAnchors
from steersman.ports.journal import UNFINISHED_STATUSES, BudgetRow, Gate, Head, Journal

SHORT_TAPE_ENTRIES = 500  # before a drive, a longer run has only the texts read that it can still reach
MAX_AUDIT_PASSES = 3  # a run that moves while it is read may look inconsistent
UNANCHORED_GAPS = (
    "entries removed from the end, if the rows beside the tape were changed to match: no anchor recorded how long the tape was",
    "a tape rewritten as a whole, with every hash computed again: no anchor recorded its hash",
)
UNVERIFIABLE_FACTS = (
    "an answer, event or abort that another program of this account put into the inbox. It is reported while it waits, and recorded on tape under the name it gave",
    "changes to inbox rows that were processed. The tape records what they caused",
    "a run that was put aside by hand. It is released when its tape is intact",
    "refusals that are not on tape. They are only counted",
)


def audit_run(ports: Ports, run: str) -> AuditVerdict:
    """Verifies a run with every anchor of the project; lifts the quarantine of a run that fits."""
    verdict = verify_run(
        ports.journal, ports.machines, run, collect_anchors(ports, run), make_refs_reader(ports, run)
    )
    if not verdict.ok:
        return verdict
    findings = AuditFindings()
    was_lifted = findings.read("the list of runs put aside", lambda: ports.journal.lift_quarantine(run))
    return replace(verdict, ok=not findings.count, problems=findings.problems(), released=bool(was_lifted))


def audit_store(ports: Ports) -> AuditVerdict:
    """Verifies the store's own tables; the verdict names no run."""
    findings = AuditFindings()
    for message in findings.read("the store's own tables", ports.journal.list_strays) or ():
        findings.add(message)
    unknown_run_notes = find_unknown_runs(ports, list_known_runs(ports))
    return AuditVerdict("", not findings.count, 0, problems=findings.problems(), gone=unknown_run_notes)


def audit_missing_run(ports: Ports, run: str) -> AuditVerdict:
    """Verifies an anchored run that the store has lost, or whose store is missing."""
    return _TapeAudit(ports.journal, ports.machines, run, collect_anchors(ports, run)).gone()


def verify_run(
    journal: Journal,
    machines: Mapping[str, Machine],
    run: str,
    anchors: RunAnchors | None = None,
    refs: RefsReader | None = None,
) -> AuditVerdict:
    """Compares chain, state, seals, snapshot, head, gates, payloads, definitions, anchors and refs of a run."""
    return _verify_until_settled(lambda: _TapeAudit(journal, machines, run, anchors or RunAnchors(), refs))


def verify_for_driving(
    journal: Journal, machines: Mapping[str, Machine], run: str, refs: RefsReader | None = None
) -> AuditVerdict:
    """Runs the part of `verify` that needs no other run and no anchor, without budgets and answers in the inbox;
    the driver refuses an answer that does not fit."""
    return _verify_until_settled(lambda: _TapeAudit(journal, machines, run, RunAnchors(), refs, driving=True))


def _verify_until_settled(new_audit: Callable[[], "_TapeAudit"]) -> AuditVerdict:
    """Repeats the pass until the run does not move during it; returns the last verdict."""
    for _ in range(MAX_AUDIT_PASSES):
        audit = new_audit()
        verdict = audit.verdict()
        if not audit.moved:
            break
    return verdict


class _TapeAudit:
    """One pass over one tape."""

    def __init__(
        self,
        journal: Journal,
        machines: Mapping[str, Machine],
        run: str,
        anchors: RunAnchors,
        refs: RefsReader | None = None,
        *,
        driving: bool = False,
    ) -> None:
        self.journal, self.machines, self.run, self.anchors = journal, machines, run, anchors
        self.read_refs, self.driving = refs, driving
        self.pins: RefComparison | None = None
        self.gone_refs: tuple[str, ...] = ()
        self.found = AuditFindings()
        self.vouched = AnchorComparison(anchors)
        self.texts: PayloadAudit | None = None
        self.spent = TapeSpending()
        self.first = ("", 0)  # title and time of entry 1
        self.pruned = False
        self.moved = False
        self.opened: dict[str, int] = {}  # open gates, and when they were opened
        self.waiting: tuple[str, ...] = ()  # inbox items that the run has not taken
        self.at_head: Snapshot | None = None
        self._row: StoredRow = (0, b"", "")
        self._prev = ""
        self._definitions: set[str] = set()

    def verdict(self) -> AuditVerdict:
        snapshot_row = self.found.read("the snapshot row", lambda: self.journal.snapshot(self.run))
        head: Head | None = self.found.read("the head row", lambda: self.journal.head(self.run))
        self.pins = RefComparison(self.run, self.read_refs) if self.read_refs is not None else None
        snapshot = self._walk(head, snapshot_row)
        is_empty = snapshot is None and head is None and snapshot_row is None
        if is_empty and not self.found.count and not self.anchors.genuine:
            raise UnknownRunError(self.run)
        if snapshot is not None:
            self._ends(head, snapshot, snapshot_row)
        elif not self.found.count:
            return self.gone()
        return self._told(snapshot)

    def gone(self) -> AuditVerdict:
        """Returns the verdict where no entry is left; reads no row."""
        self.found.add("entry 1 is missing: nothing is left of this tape", 1)
        return self._told(None)

    def _told(self, snapshot: Snapshot | None) -> AuditVerdict:
        seq, anchored_seq = snapshot.seq if snapshot is not None else 0, self.vouched.highest
        for doubt in self.anchors.doubts:
            self.found.add(doubt)
        unseen: tuple[str, ...] = UNANCHORED_GAPS if anchored_seq is None else ()
        if anchored_seq is not None and anchored_seq < seq:
            unseen = (
                f"entries {anchored_seq + 1} to {seq} removed or rewritten with new hashes: the newest anchor is of entry {anchored_seq}",
            )
        if self.anchors.blanks:
            unseen += (f"what {self.anchors.blanks} unreadable lines among the anchors said",)
        return AuditVerdict(
            self.run,
            not self.found.count,
            seq,
            self.found.first,
            self.found.problems(),
            anchored_seq is not None,
            (*unseen, *self.found.unseen),
            waiting=self.waiting,
            gone=self.gone_refs,
            beyond=UNVERIFIABLE_FACTS,
        )

    # ── the entries ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _walk(self, head: Head | None, snapshot_row: Any) -> Snapshot | None:
        """Returns the run after its last good entry; None where an entry does not fit."""
        snapshot: Snapshot | None = None
        head_seq = head.seq if head is not None else None
        every_entry = not self.driving or (isinstance(head_seq, int) and head_seq <= SHORT_TAPE_ENTRIES)
        snapshot_seq = snapshot_row[0] if snapshot_row is not None else None
        links = verify_chain(self._rows(), self.run)
        try:
            for link in links:
                if isinstance(link, BadEntry):
                    self._broken(link, snapshot)
                    return None
                entry, hash_ = link
                problem = self._problem(snapshot, entry)
                if problem:
                    self.found.add(f"entry {entry.seq} {problem}", entry.seq)
                    return None
                snapshot = apply_entry(snapshot, entry, hash_)
                self._prev = entry.prev
                if entry.kind != "transition":
                    self._beside(snapshot, entry)
                if entry.planned or entry.closed:
                    self._asked(entry)
                if entry.spent or entry.kind == "gate_answered":
                    self.spent.note_entry(entry)
                if self.texts is not None and every_entry:
                    self.texts.judge_entry(self._row[1], entry)
                if self.pins is not None:
                    self.pins.note_entry(self._row[1], entry)
                self.vouched.note_entry(entry.seq, hash_, self.found)
                if entry.seq == head_seq:
                    self.at_head = snapshot
                if entry.seq == snapshot_seq and canonical_bytes(snapshot) != snapshot_row[1]:
                    self.found.add(f"the snapshot of entry {snapshot_seq} is not what the tape gives")
        except Exception as error:
            seq = (snapshot.seq if snapshot is not None else 0) + 1
            self.found.add_read_error(f"entry {seq}", error, seq)
            return None
        if self.texts is not None and snapshot is not None and not every_entry:
            self.texts.see_state(snapshot)
        return snapshot

    def _asked(self, entry: Entry) -> None:
        self.opened.update({i.id: entry.at for i in entry.planned if i.kind == "gate"})
        for closed_id in entry.closed:
            self.opened.pop(closed_id, None)

    def _rows(self) -> Iterator[StoredRow]:
        for row in self.journal.rows(self.run):
            self._row = row
            yield row

    def _broken(self, bad: BadEntry, snapshot: Snapshot | None) -> None:
        """Adds a finding for a bad entry; where the entry after it has the same place, the one before was inserted."""
        if snapshot is not None and self._claims(self._row, snapshot):
            self.found.add(
                f"entry {snapshot.seq} was put in: the one after it claims its place", snapshot.seq
            )
        else:
            self.found.add(bad.why, bad.seq)

    def _claims(self, row: StoredRow, snapshot: Snapshot) -> bool:
        try:
            entry = read_entry(row[1])
        except msgspec.MsgspecError:
            return False
        has_same_place = (entry.run, entry.seq, entry.prev) == (self.run, snapshot.seq, self._prev)
        return has_same_place and row[2] == sha256_hex(row[1]) != snapshot.hash

    def _problem(self, snapshot: Snapshot | None, entry: Entry) -> str:
        if (snapshot is None) != (entry.kind == "created"):
            return "does not begin the run" if snapshot is None else "begins the run a second time"
        if snapshot is None:
            return "" if isinstance(entry.context, dict) and entry.to and entry.root else "creates nothing"
        if entry.kind in ("transition", "override") and entry.source != snapshot.state:
            return f"leads from {entry.source}, but the run was in {snapshot.state}"
        if entry.kind == "sealed" and entry.state_hash != state_hash(snapshot):
            return "seals another state than the one the tape gives"
        return ""

    def _beside(self, snapshot: Snapshot, entry: Entry) -> None:
        """Reads what entries other than transitions carry: creation, pruning, definitions."""
        if entry.kind == "created":
            self.first = (entry.title, entry.at)
            self.texts = PayloadAudit(self.journal, snapshot.root, self.found)
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
        elif not isinstance(body, bytes) or sha256_hex(body)[:16] != entry.definition:
            self.found.add(
                f"entry {entry.seq} names definition {entry.definition}, which does not have the digest in its name",
                entry.seq,
            )

    # ── what is derived from them ───────────────────────────────────────────────────────────────────────────────────

    def _ends(self, head: Head | None, snapshot: Snapshot, row: Any) -> None:
        gates = self.found.read("a gate row", lambda: self.journal.gates(self.run))
        items = self.found.read("an inbox row", lambda: self.journal.pending(self.run))
        gates_by_id = {g.id: self._gate(g.id) for g in gates or ()}
        children = [] if self.driving else self._children()
        rows = self._budget(self.run)
        child_budgets = [self._budget(c.run) for c in children]
        # Read after the rows that change with it.
        current_head = self.found.read("the head row", lambda: self.journal.head(self.run))
        has_moved = current_head != head or (not self.driving and children != self._children())
        self.moved = has_moved or self._answered(gates)
        if self.moved:
            self.found.unseen.append("whether its gates, budget and refs fit: it moved on while it was read")
        else:
            if gates is not None and items is not None:
                compare_gates(
                    snapshot, gates, items, self.found, gates_by_id, self.opened, driving=self.driving
                )
            if self.pins is not None:
                self.gone_refs = self.pins.report_unexplained_refs(snapshot, self.found)
            if not self.driving:
                idle = not snapshot.items and all(c.status not in UNFINISHED_STATUSES for c in children)
                limits = self._limits(snapshot, bool(children))
                compare_budget(rows, self.spent, child_budgets, limits, idle=idle, findings=self.found)
        self.waiting = (
            self.found.read("an inbox row", lambda: describe_waiting_items(items or (), snapshot)) or ()
        )
        if head is not None:
            self._head(head, snapshot)
        else:
            self.found.add("the head row is missing")
        if row is not None and not (isinstance(row[0], int) and 1 <= row[0] <= snapshot.seq):
            self.found.add(
                f"there is a snapshot of entry {row[0]!r}, but the tape ends with entry {snapshot.seq}"
            )
        self.vouched.report_missing(snapshot.seq, self.found)
        if self.texts is not None:
            if snapshot.root == self.run and not self.driving:
                self.texts.judge_remaining()
            self.texts.report_missing(bool(self.texts.missing) and self._pruned(snapshot.root))

    def _gate(self, gate: str) -> Gate | None:
        row: Gate | None = self.found.read("a gate row", lambda: self.journal.gate(gate))
        return row

    def _answered(self, gates: list[Gate] | None) -> bool:
        """Whether a gate was answered between the reads of gates and inbox."""
        return gates is not None and gates != self.found.read(
            "a gate row", lambda: self.journal.gates(self.run)
        )

    def _children(self) -> list[Head]:
        return self.found.read("a head row", lambda: self.journal.children(self.run)) or []

    def _budget(self, run: str) -> list[BudgetRow]:
        return self.found.read("a budget row", lambda: self.journal.budget(run)) or []

    def _limits(self, snapshot: Snapshot, children: bool) -> dict[str, int] | None:
        """Returns the limits that the run began with; None where they are unknown. A child has none of its own."""
        if snapshot.parent:
            return {}
        ref = runtime_field(snapshot.context, "config_ref") if isinstance(snapshot.context, dict) else ""
        data = (
            self.found.read("the settings", lambda: self.journal.payload(snapshot.root, ref))
            if ref
            else b"{}"
        )
        if children:
            self.found.unseen.append("its budget's limits: its children may have raised them")
        if children or data is None:
            return None
        try:
            return budget_limits(decode_frozen_config(data))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None  # the check of the payload's name reports it

    def _head(self, head: Head, snapshot: Snapshot) -> None:
        """Compares the head row, and whether the tape ends where it says; the hash shows which of the two is wrong."""
        seq = head.seq if isinstance(head.seq, int) else 0
        expected_snapshot = snapshot
        if seq > snapshot.seq and head.hash != snapshot.hash:
            self.found.add(
                f"entry {snapshot.seq + 1} is missing: the head row says {seq} entries", snapshot.seq + 1
            )
        elif seq < snapshot.seq and self.at_head is not None and self.at_head.hash == head.hash:
            expected_snapshot = self.at_head
            if not self.moved:
                self.found.add(f"entry {seq + 1} lies beyond the head row", seq + 1)
        old_definition = self.found.read(
            "a definition", lambda: self.journal.definition(expected_snapshot.definition)
        )
        compare_head(head, expected_snapshot, self.first, self.machines, old_definition, self.found)

    def _pruned(self, root: str) -> bool:
        """Whether this tape, or that of the tree's first run, says that the texts were pruned."""
        if self.pruned or root == self.run:
            return self.pruned
        return bool(self.found.read("the tape of the tree's first run", lambda: self._says_pruned(root)))

    def _says_pruned(self, root: str) -> bool:
        links = verify_chain(self.journal.rows(root), root)
        return any(not isinstance(link, BadEntry) and link[0].kind == "pruned" for link in links)
