"""A run read whole, with its summary: the value that every view is rendered from."""

import msgspec

from steersman.engine.active_run import ActiveRun
from steersman.kernel.machine import Machine
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.views.report import ReportFacts
from steersman.views.run_summary import PayloadReader, RunFacts, RunSummary


class RunView(msgspec.Struct, frozen=True, eq=False):
    """One run: the facts of its tape, and its summary."""

    live: ActiveRun
    facts: RunFacts
    status: RunSummary

    @property
    def machine(self) -> Machine:
        return self.facts.machine

    @property
    def snapshot(self) -> Snapshot:
        return self.facts.snapshot

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.facts.entries

    @property
    def text(self) -> PayloadReader:
        return self.facts.text

    @property
    def report(self) -> ReportFacts:
        """What the report is rendered from."""
        return ReportFacts(self.facts, self.status)
