"""Writes the files that people read beside a run: projections of its tape, written at the end of each drive.

**Invariant:** steersman never reads a projection back. A file that cannot be written is a warning, not a failure.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from steersman.contracts.artifacts import REPORT_FILE, STATE_FILE, TIMELINE_FILE, TRANSCRIPT_FILE
from steersman.engine.active_run import ActiveRun, load_active_run
from steersman.engine.machine_package import RunView, find_package
from steersman.engine.ports import Ports
from steersman.errors import SteersmanError
from steersman.judges.text import printable_json
from steersman.kernel.tape import Entry, read_entry
from steersman.views.gates import describe_gate
from steersman.views.report import render_run_report
from steersman.views.run_summary import (
    DRIVEN_DESPITE_VERIFY,
    GuardOverride,
    PayloadReader,
    RunFacts,
    find_override,
    summarize_run,
)

MAX_PROJECTION_BYTES = 16 * 1024 * 1024  # of one that is read


def read_run_facts(ports: Ports, active_run: ActiveRun, entries: Iterable[Entry] | None = None) -> RunFacts:
    """Reads what tape and store hold of a run; `entries` are its entries where they were read already."""
    run, machine = active_run.run, active_run.machine
    if entries is None:
        entries = (read_entry(body) for _, body, _ in ports.journal.rows(run))
    return RunFacts(
        machine=machine,
        snapshot=active_run.snapshot,
        title=active_run.title,
        entries=tuple(entries),
        gates=tuple(describe_gate(machine, gate) for gate in ports.journal.gates(run)),
        budget=tuple(ports.journal.budget(run)),
        text=payload_reader(active_run),
    )


def build_run_view(ports: Ports, active_run: ActiveRun, entries: Iterable[Entry] | None = None) -> RunView:
    """Builds the view of a loaded run."""
    facts = read_run_facts(ports, active_run, entries)
    fields = find_package(ports.packages, facts.machine).summary_fields(facts)
    return RunView(active_run, facts, summarize_run(facts, fields, issue=issue_text(active_run)))


def read_run_view(ports: Ports, run: str) -> RunView:
    """Reads a run from its tape, for showing."""
    return build_run_view(ports, load_active_run(ports, run, migrating=True))


def issue_text(active_run: ActiveRun) -> str:
    """Returns the issue text that came with the task; empty where it was pruned."""
    return "" if active_run.payloads.is_pruned else active_run.payloads.get(active_run.config.issue_ref)


def read_overrides(ports: Ports, run: str) -> list[GuardOverride]:
    """Returns what people have waived, from the tape; decodes only entries that may say so."""
    machine = load_active_run(ports, run, migrating=True).machine
    waiving = (name for name, event in machine.events.items() if event.waives)
    signs = (b'"override"', DRIVEN_DESPITE_VERIFY.encode(), *(name.encode() for name in waiving))
    rows = (body for _, body, _ in ports.journal.rows(run) if any(sign in body for sign in signs))
    overrides_found: list[GuardOverride | None] = []
    for body in rows:
        with suppress(msgspec.MsgspecError):  # views of the run report unreadable entries
            overrides_found.append(find_override(machine, read_entry(body)))
    return [override for override in overrides_found if override is not None]


def payload_reader(active_run: ActiveRun) -> PayloadReader:
    """Returns a reader of texts that answers with a placeholder where a text was pruned."""

    def text(ref: str) -> str:
        if not ref:
            return ""
        try:
            return active_run.payloads.get(ref)
        except SteersmanError:
            return "(this text was pruned)"

    return text


def write_projections(ports: Ports, run: str) -> list[str]:
    """Writes every projection of a run; returns one line for each that could not be written or that was unreadable."""
    run_view, troubles = read_run_view(ports, run), []
    unreadable = find_unreadable_projections(ports, run_view.live)
    for name, render in _projection_files(ports, run_view).items():
        try:
            ports.artifacts.write(run, name, render())
            trouble = f"{name} {unreadable[name]}: steersman wrote it again" if name in unreadable else ""
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            trouble = f"{name} was not written: {error}"
        troubles += [trouble] if trouble else []
    return troubles


def _projection_files(ports: Ports, run_view: RunView) -> dict[str, Callable[[], bytes]]:
    """Returns the files of any run, and those of its machine, each with what renders it."""
    package = find_package(ports.packages, run_view.machine)
    return {
        TRANSCRIPT_FILE: lambda: render_transcript(run_view.entries),
        STATE_FILE: lambda: format_json_file(msgspec.json.encode(run_view.status)),
        REPORT_FILE: lambda: render_view_report(ports, run_view).encode(),
        TIMELINE_FILE: lambda: _render_timeline(run_view, package.round_field),
        **dict(package.artifacts(run_view) if package.artifacts is not None else ()),
    }


def render_projection(ports: Ports, run_view: RunView, name: str) -> bytes | None:
    """Renders one projection from the tape; None where the run has no file of that name."""
    render = _projection_files(ports, run_view).get(name)
    return render() if render is not None else None


def render_transcript(entries: Iterable[Entry]) -> bytes:
    """Renders the tape as JSON lines."""
    return b"".join(escape_for_terminals(msgspec.json.encode(e)) + b"\n" for e in entries)


def find_unreadable_projections(ports: Ports, active_run: ActiveRun) -> dict[str, str]:
    """Returns the derived files that cannot be read, by name, each with why, where the run's machine looks at them."""
    package = find_package(ports.packages, active_run.machine)
    return package.find_file_problems(ports, active_run) if package.find_file_problems else {}


def format_json_file(document: bytes) -> bytes:
    """Returns JSON indented, for people who read it with `cat`."""
    return escape_for_terminals(msgspec.json.format(document))


def escape_for_terminals(document: bytes) -> bytes:
    """Returns the same JSON without characters that a terminal would obey."""
    return printable_json(document.decode()).encode()


def render_view_report(ports: Ports, run_view: RunView) -> str:
    """Renders the report of a run."""
    package = find_package(ports.packages, run_view.machine)
    return render_run_report(run_view.report, package.report_sections)


def _render_timeline(run_view: RunView, round_field: str) -> bytes:
    from steersman.views.report import build_timeline

    steps = build_timeline(run_view.entries, run_view.live.machine, round_field=round_field)
    return format_json_file(msgspec.json.encode(list(steps)))
