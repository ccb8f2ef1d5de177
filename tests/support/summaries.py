"""Summaries, reports and reasons of a run that lies in memory, as its machine's package makes them."""

from collections.abc import Callable, Iterable

from steersman.engine.machine_package import MachinePackage
from steersman.kernel.snapshot import Snapshot
from steersman.kernel.tape import Entry
from steersman.ports.journal import BudgetRow, Gate
from steersman.views.gates import describe_gate
from steersman.views.report import ReportFacts, render_run_report
from steersman.views.run_summary import RunFacts, RunSummary, summarize_run
from steersman.views.why import WaitReason, find_wait_reasons

Text = Callable[[str], str]


def no_text(_ref: str) -> str:
    return ""


def facts_of(
    package: MachinePackage,
    snapshot: Snapshot,
    title: str = "t",
    entries: Iterable[Entry] = (),
    *,
    text: Text = no_text,
    gates: Iterable[Gate] = (),
    budget: Iterable[BudgetRow] = (),
) -> RunFacts:
    """What the tape and the store would say of the run."""
    shown = tuple(describe_gate(package.machine, gate) for gate in gates)
    return RunFacts(machine=package.machine, snapshot=snapshot, title=title, entries=tuple(entries), gates=shown, budget=tuple(budget), text=text)  # fmt: skip


def summary_of(package: MachinePackage, snapshot: Snapshot, *more, **other) -> RunSummary:
    """The summary of the run."""
    facts = facts_of(package, snapshot, *more, **other)
    return summarize_run(facts, package.summary_fields(facts))


def report_of(package: MachinePackage, snapshot: Snapshot, summary: RunSummary, entries: Iterable[Entry] = (), text: Text = no_text) -> str:  # fmt: skip
    """The report of the run with this summary."""
    facts = facts_of(package, snapshot, summary.title, entries, text=text)
    return render_run_report(ReportFacts(facts, summary), package.report_sections)


def reasons_of(package: MachinePackage, snapshot: Snapshot, *, pending: int = 0, owner: str | None = None, now: int = 0, command_prefix: str = "steersman", **other) -> list[WaitReason]:  # fmt: skip
    """What the run waits for."""
    summary = summary_of(package, snapshot, **other)
    return find_wait_reasons(package.machine, snapshot, summary, pending=pending, owner=owner, now=now, command_prefix=command_prefix)  # fmt: skip
