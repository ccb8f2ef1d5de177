"""A finished run to be tampered with: its store, its anchors, and every row as it was written.

The store is a real one. A case changes it inside a transaction of the very connection that verify reads through, and
is rolled back afterwards: what verify sees is what a changed file would give it, and nothing is left of it.
"""

import asyncio
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.long_tapes import CREW_ROLES, SAMPLE_PERSON, anchor_ports, drive_sample_run, instant_ports

from steersman.adapters.storage.anchors import FileAnchors
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.app.runs import RunService
from steersman.contracts.config import Config, Role
from steersman.engine.active_run import head_from_snapshot
from steersman.engine.audit import AuditVerdict, verify_run
from steersman.engine.ports import Ports
from steersman.engine.start import StartRequest
from steersman.kernel.replay import apply_entry, convert_context
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry, read_entry
from steersman.machines.roundtable import MACHINE
from steersman.ports.anchors import RunAnchors
from steersman.ports.journal import Head

FOLLOWUPS = 12
LARGE = 65_600  # one text over 64 KB, so that it is a file


class FinishedRun:
    """One run, verified sound."""

    def __init__(self, folder: Path, followups: int = FOLLOWUPS) -> None:
        self.anchors = FileAnchors(folder)
        self.journal = SqliteJournal(folder / "store.db")
        ports = instant_ports(self.journal, large=LARGE, **anchor_ports({"file": self.anchors}))
        self.machines = ports.machines
        self.asking = asyncio.run(_asking(ports))
        self.head = drive_sample_run(ports, followups)
        self.run = self.head.run
        self.rows = list(self.journal.rows(self.run))
        self.last = self.rows[-1][0]
        self.entries = [read_entry(body) for _, body, _ in self.rows]
        self.states = _states(self.entries, [hash_ for _, _, hash_ in self.rows])
        self.kept = self.anchors.list_anchors(self.run)
        self.texts = {ref: self.journal.payload(self.run, ref) for ref in self.journal.payload_refs(self.run)}
        self.naming = _naming(self.rows)
        self.marked = self.journal.snapshot(self.run)
        self.db = self.journal._reader  # noqa: SLF001  a case changes what this connection sees, and no more
        self.db.execute("PRAGMA busy_timeout=0")

    def verify(self, kept: RunAnchors | None = None) -> AuditVerdict:
        return verify_run(self.journal, self.machines, self.run, kept if kept is not None else self.kept)

    def verify_asking(self) -> AuditVerdict:
        """The run that waits for an answer; nobody has anchored it."""
        return verify_run(self.journal, self.machines, self.asking)

    def head_at(self, snapshot: Snapshot) -> Head:
        """The head row as the runtime would have written it after this entry."""
        return head_from_snapshot(
            MACHINE, convert_context(MACHINE, snapshot), self.head.title, self.head.created
        )

    def anchored_after(self, seq: int) -> int:
        """The first anchored entry from this one on: the latest place where a rewritten tape is noticed."""
        return min((a.seq for a in self.kept.genuine if a.seq >= seq), default=self.last + 1)

    def file_of(self, ref: str) -> Path:
        return Path(self.journal.path).parent / "payloads" / self.run / ref

    def close(self) -> None:
        self.journal.close()


async def _asking(ports: Ports) -> str:
    """A second run, which stays at its first gate."""
    config = Config(roles={name: Role(agent="fake") for name in CREW_ROLES})
    driver, lock, live = await RunService(ports).start(
        StartRequest(MACHINE.name, "Mend the sail", SAMPLE_PERSON, config)
    )
    await driver.drive(live.run, held=lock, live=live)
    return live.run


def _states(entries: list[Entry], hashes: list[str]) -> list[Snapshot]:
    states: list[Snapshot] = []
    for entry, hash_ in zip(entries, hashes, strict=True):
        states.append(apply_entry(states[-1] if states else None, entry, hash_))
    return states


def _naming(rows: list[tuple[int, bytes, str]]) -> dict[str, int]:
    """Which entry is the first to name each payload."""
    found: dict[str, int] = {}
    for seq, body, _ in rows:
        for ref in re.findall(rb'"(p-[0-9a-f]{32})"', body):
            found.setdefault(ref.decode(), seq)
    return found
