"""Reads one run: its summary, why it waits, its report, its timeline, and its ending."""

import msgspec

from steersman.engine.active_run import ActiveRun
from steersman.engine.machine_package import GatePreview, MachinePackage, RunEnding, find_package
from steersman.engine.person_words import RunView
from steersman.engine.ports import Ports
from steersman.engine.projections import (
    build_run_view,
    payload_reader,
    read_overrides,
    read_run_view,
    render_view_report,
    write_projections,
)
from steersman.views.gates import GateView
from steersman.views.report import RecordedReview, find_recorded_reviews
from steersman.views.run_summary import RunSummary, override_line
from steersman.views.timeline import TimelineStep, build_timeline
from steersman.views.why import WaitReason, find_wait_reasons

__all__ = [
    "ActiveRun",
    "MachinePackage",
    "RunDetails",
    "RunEnding",
    "RunExplanation",
    "RunOutcome",
    "RunReport",
    "RunView",
    "build_run_view",
    "explain_run",
    "payload_reader",
    "read_overrides",
    "read_run_details",
    "read_run_outcome",
    "read_run_report",
    "read_run_timeline",
    "read_run_view",
    "write_projections",
]


class RunDetails(msgspec.Struct, frozen=True):
    """The summary of a run, who drives it, and the moment of reading."""

    summary: RunSummary
    driven_by: str | None
    at: int


class RunExplanation(msgspec.Struct, frozen=True):
    """What a run waits for and what would move it, the nearest reason first."""

    run: str
    state: str
    status: str
    meaning: str  # of the state
    reasons: tuple[WaitReason, ...]


class RunReport(msgspec.Struct, frozen=True):
    """A run as Markdown, with the reviews that it recorded."""

    run: str
    report: str
    reviews: tuple[RecordedReview, ...]


class RunOutcome(msgspec.Struct, frozen=True, eq=False):
    """A run whose drive has ended, with what its machine says about that."""

    view: RunView
    package: MachinePackage
    ending: RunEnding

    def preview_gate(self, gate: GateView, max_change_lines: int) -> GatePreview:
        """What is shown above the question of a gate."""
        preview = self.package.preview_gate
        return (preview(self.view, gate, max_change_lines) if preview is not None else None) or GatePreview()


def read_run_details(ports: Ports, run: str) -> RunDetails:
    """Everything that a person asks about a run first."""
    summary = read_run_view(ports, run).status
    return RunDetails(summary, ports.locks.owner(run), ports.clock.now())


def explain_run(ports: Ports, run: str, command_prefix: str) -> RunExplanation:
    """Why a run is where it is, with the commands that would move it and what people have overridden."""
    view = read_run_view(ports, run)
    machine, head = view.machine, view.live.head()
    reasons = find_wait_reasons(
        machine,
        view.snapshot,
        view.status,
        pending=len(ports.journal.pending(run)),
        owner=ports.locks.owner(run),
        now=ports.clock.now(),
        command_prefix=command_prefix,
    )
    overrides = (
        WaitReason("override", f"overridden: {override_line(override)}") for override in view.status.overrides
    )
    meaning = machine.states[head.state].meaning
    return RunExplanation(run, head.state, head.status, meaning, (*reasons, *overrides))


def read_run_report(ports: Ports, run: str) -> RunReport:
    """What was asked, decided, changed and proven in a run, and by whom."""
    view = read_run_view(ports, run)
    reviews = find_recorded_reviews(view.entries, view.text)
    return RunReport(run, render_view_report(ports, view), tuple(reviews))


def read_run_timeline(ports: Ports, run: str) -> tuple[TimelineStep, ...]:
    """What happened in a run, in order."""
    view = read_run_view(ports, run)
    return tuple(build_timeline(view.entries, view.machine))


def read_run_outcome(ports: Ports, run: str) -> RunOutcome:
    """What a face shows when a run waits, stops or has its outcome."""
    view = read_run_view(ports, run)
    package = find_package(ports.packages, view.machine)
    ending = package.ending(view) if package.ending is not None else None
    return RunOutcome(view, package, ending or RunEnding())
