"""The files people read beside a run: projections of its tape, written again whenever a drive ends.

**Invariant:** never the source of anything; a file that cannot be written is a warning, never a failure of the run.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.task.words import STATE_FILE, TRANSCRIPT_FILE
from steersman.engine.active_run import ActiveRun, load_active_run
from steersman.engine.ports import Ports
from steersman.errors import SteersmanError
from steersman.judges.task.found import ArtifactOnDisk
from steersman.judges.text import printable_json
from steersman.kernel.definition import Origin
from steersman.kernel.snapshot import Snapshot, context_fields
from steersman.kernel.tape import Entry, read_entry
from steersman.ports.sandbox import NOT_ISOLATED
from steersman.views.report import render_run_report
from steersman.views.run_summary import (
    BEGIN_REQUESTED,
    DRIVEN_DESPITE_VERIFY,
    GuardOverride,
    PayloadReader,
    RunSummary,
    summarize_run,
    find_base_problem,
    find_override,
)
from steersman.views.run_summary import find_isolation_warning as said

if TYPE_CHECKING:
    from steersman.contracts.task.documents import TaskState

TIMELINE_FILE = "timeline.json"  # comes after those that are looked at: where it is, they were
MAX_PROJECTION_BYTES = 16 * 1024 * 1024  # bytes of one that is looked at, unless it has to be longer
CONTRACT_TEXTS = ("task", "followup", "core_plan", "reviewer_notes", "tester_notes")


class RunView(msgspec.Struct, frozen=True):
    """A run read whole: what every view of it is made from."""

    live: Any
    entries: tuple[Entry, ...]
    status: RunSummary
    text: Any

    @property
    def snapshot(self) -> Snapshot:
        snapshot: Snapshot = self.live.snapshot
        return snapshot


def read_run_view(ports: Ports, run: str) -> RunView:
    """Reads a run as its tape says, for showing."""
    active_run = load_active_run(ports, run, migrating=True)
    entries = tuple(read_entry(body) for _, body, _ in ports.journal.rows(run))
    text = payload_reader(active_run)
    run_status = summarize_run(
        active_run.machine,
        active_run.snapshot,
        active_run.title,
        entries,
        gates=ports.journal.gates(run),
        budget=ports.journal.budget(run),
        text=text,
    )
    return RunView(
        active_run, entries, msgspec.structs.replace(run_status, issue=issue_text(active_run)), text
    )


def issue_text(active_run: ActiveRun) -> str:
    """The text that came with the task and is not the person's own; nothing where it was pruned."""
    return "" if active_run.payloads.is_pruned else active_run.payloads.get(active_run.config.issue_ref)


def recorded_isolation_warning(ports: Ports, run: str) -> str:
    """Why nothing kept the agents of a run from approving, or nothing; only the entries that say so are read."""
    label_bytes = NOT_ISOLATED.encode()
    warnings = [said(read_entry(body)) for _, body, _ in ports.journal.rows(run) if label_bytes in body]
    return next(filter(None, reversed(warnings)), "")


def read_overrides(ports: Ports, run: str) -> list[GuardOverride]:
    """What people have waived, as the tape has it; only the entries that may say so are read."""
    signs = (b'"override"', BEGIN_REQUESTED.encode(), DRIVEN_DESPITE_VERIFY.encode())
    rows = (body for _, body, _ in ports.journal.rows(run) if any(sign in body for sign in signs))
    overrides_found: list[GuardOverride | None] = []
    for body in rows:
        with suppress(msgspec.MsgspecError):  # that an entry cannot be read is told where its run is
            overrides_found.append(find_override(read_entry(body)))
    return [override for override in overrides_found if override is not None]


def task_blocked_reason(ports: Ports, active_run: ActiveRun) -> str:
    """Why a task cannot go on by itself, in one line; nothing where it can, and then the tape is not read."""
    from steersman.machines.task.views.blocked_reason import BLOCKED_STEPS, blocked_reason

    if context_fields(active_run.snapshot.context).get("step") not in BLOCKED_STEPS:
        return ""
    entries = [read_entry(body) for _, body, _ in ports.journal.rows(active_run.run)]
    return blocked_reason(active_run.machine, active_run.snapshot, entries, payload_reader(active_run))


def task_base_problem(ports: Ports, active_run: ActiveRun) -> str:
    """Which problem of its base tree keeps a task from going on; nothing where another one does, or none."""
    from steersman.machines.task.views.blocked_reason import BLOCKED_STEPS

    if context_fields(active_run.snapshot.context).get("step") not in BLOCKED_STEPS:
        return ""
    entries = [read_entry(body) for _, body, _ in ports.journal.rows(active_run.run)]
    return find_base_problem(active_run.machine, active_run.snapshot, entries)


def payload_reader(active_run: ActiveRun) -> PayloadReader:
    """A getter for texts that says so where one was pruned."""

    def text(ref: str) -> str:
        if not ref:
            return ""
        try:
            return active_run.payloads.get(ref)
        except SteersmanError:
            return "(this text was pruned)"

    return text


def write_projections(ports: Ports, run: str, *, older: bool = False) -> list[str]:
    """Writes every projection of a run; returns what could not be written, and what hands had done to it, in words; and
    which was `older`, for who asks: one that was killed while it wrote leaves such a state too."""
    run_view, troubles = read_run_view(ports, run), []
    manual_edits = find_manual_edits(ports, run_view.live, older=older)
    for name, render in _projection_files(run_view):
        try:
            ports.artifacts.write(run, name, render())
            trouble = (
                f"{name} {manual_edits[name]}: it was made again from the tape"
                if name in manual_edits
                else ""
            )
        except (SteersmanError, OSError, msgspec.MsgspecError) as error:
            trouble = f"{name} was not written: {error}"
        troubles += [trouble] if trouble else []
    return troubles


def _projection_files(run_view: RunView) -> Iterator[tuple[str, Callable[[], bytes]]]:
    context = context_fields(run_view.snapshot.context)
    yield TRANSCRIPT_FILE, lambda: render_transcript(run_view.entries)
    # After it: a state that was made from so many entries says that the transcript has as many lines.
    yield STATE_FILE, lambda: render_state_file(run_view)
    yield "report.md", lambda: render_view_report(run_view).encode()
    yield TIMELINE_FILE, lambda: _render_timeline(run_view)
    if context.get("contract"):
        yield "discussion_contract.json", lambda: _render_contract(context, run_view.text)
    if context.get("patch_ref") and not _has_task_documents(run_view.snapshot):
        yield "code/diff.patch", lambda: run_view.text(context["patch_ref"]).encode()
    if context.get("results_ref"):
        yield (
            "test-results.json",
            lambda: _format_projection_json(run_view.text(context["results_ref"]).encode()),
        )
    if not run_view.live.machine.tree:
        yield from _plan_projection_files(run_view)


def render_projection(run_view: RunView, name: str) -> bytes | None:
    """A projection as the tape has it now; None where it is none of this run."""
    render = dict(_projection_files(run_view)).get(name)
    return render() if render is not None else None


def render_transcript(entries: Iterable[Entry]) -> bytes:
    """The tape in lines."""
    return b"".join(_escape_projection(msgspec.json.encode(e)) + b"\n" for e in entries)


def _has_task_documents(snapshot: Snapshot) -> bool:
    """Whether the run lays its documents down itself, and looks at them before they count."""
    return "artifacts" in context_fields(snapshot.context)


def render_state_file(run_view: RunView) -> bytes:
    """`state.json`: of a task in the specification's form, of any other run its status."""
    if _has_task_documents(run_view.snapshot):
        from steersman.machines.task.views.state_file import render_task_state

        return render_task_state(_build_task_state(run_view))
    return _format_projection_json(msgspec.json.encode(run_view.status))


def _build_task_state(run_view: RunView) -> "TaskState":
    from steersman.kernel.step import legal_events
    from steersman.machines.task.views.state_file import build_task_state

    machine, snapshot = run_view.live.machine, run_view.snapshot
    open_questions = [f"{g.job}: {' | '.join(g.choices)}" for g in run_view.status.gates if not g.answer]
    legal_now = (*open_questions, *legal_events(machine, snapshot.state, Origin.PERSON, snapshot.context))
    return build_task_state(snapshot, run_view.status, legal_now, run_view.live.payloads.keyed_digest)


def find_manual_edits(ports: Ports, active_run: ActiveRun, *, older: bool = True) -> dict[str, str]:
    """What hands did to the files that are made from the tape of a task, by name; of a state that is only `older` than the
    transcript beside it, that; nothing about both where they are."""
    if not _has_task_documents(active_run.snapshot):
        return {}
    from steersman.machines.task.views.state_file import (
        count_state_entries,
        describe_outdated_state,
        describe_state_edit,
        describe_transcript_edit,
    )

    run, problems, entry_count = active_run.run, {}, 0
    file_found = ports.artifacts.read(
        run, STATE_FILE, MAX_PROJECTION_BYTES
    )  # before the transcript, which is written first
    if file_found.kind == "file":
        problems[STATE_FILE] = describe_state_edit(
            file_found.data,
            lambda: _build_task_state(read_run_view(ports, run)),
            run,
            active_run.payloads.keyed_digest,
        )
        entry_count = 0 if problems[STATE_FILE] else count_state_entries(file_found.data)
    else:
        problems[STATE_FILE] = _missing_file_problem(ports, run, file_found)
    expected_transcript = render_transcript(read_entry(body) for _, body, _ in ports.journal.rows(run))
    file_found = ports.artifacts.read(
        run, TRANSCRIPT_FILE, max(MAX_PROJECTION_BYTES, len(expected_transcript))
    )
    problems[TRANSCRIPT_FILE] = (
        describe_transcript_edit(file_found.data, expected_transcript, entry_count)
        if file_found.kind == "file"
        else _missing_file_problem(ports, run, file_found)
    )
    if (
        older and entry_count and not problems[TRANSCRIPT_FILE] and ports.locks.owner(run) is None
    ):  # or somebody is at it
        problems[STATE_FILE] = describe_outdated_state(entry_count, file_found.data)
    return {name: problem for name, problem in problems.items() if problem}


def _missing_file_problem(ports: Ports, run: str, artifact: ArtifactOnDisk) -> str:
    """What is wrong where no file is; nothing where none was written yet."""
    from steersman.judges.task.inspection import find_unreadable_file_problem

    was_never_written = (
        artifact.kind == "missing" and ports.artifacts.read(run, TIMELINE_FILE).kind == "missing"
    )
    return "" if was_never_written else find_unreadable_file_problem(artifact)


def _plan_projection_files(run_view: RunView) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """What the specification of the planner wants to be seen of every run, also of one that has failed."""
    from steersman.machines.coordinator.views.outcome import build_plan_run_summary, read_failure_pack

    yield (
        "coordinator_run_tape.json",
        lambda: _format_projection_json(msgspec.json.encode(planning_tape_form(run_view, "runtape"))),
    )
    yield (
        "audit_log.json",
        lambda: _format_projection_json(msgspec.json.encode(planning_tape_form(run_view, "auditlog"))),
    )
    failure_pack, run_summary = (
        read_failure_pack(run_view.snapshot, run_view.text),
        build_plan_run_summary(run_view.snapshot, run_view.text, run_view.entries),
    )
    if failure_pack is not None:
        yield "failure_pack.json", lambda: _format_projection_json(msgspec.json.encode(failure_pack))
    if run_summary is not None:
        yield "run_summary.json", lambda: _format_projection_json(msgspec.json.encode(run_summary))


def planning_tape_form(run_view: RunView, name: str) -> msgspec.Struct:
    """The tape of a planning run in one of the specification's forms."""
    from steersman.machines.coordinator.views.forms import build_run_tape
    from steersman.machines.coordinator.views.log import build_audit_log

    if name == "runtape":
        return build_run_tape(
            run_view.live.machine, run_view.entries, context_fields(run_view.snapshot.context), run_view.text
        )
    return build_audit_log(run_view.live.machine, run_view.entries, run_view.text)


def _format_projection_json(document: bytes) -> bytes:
    return _escape_projection(msgspec.json.format(document))


def _escape_projection(document: bytes) -> bytes:
    """People look at these files with `cat`."""
    return printable_json(document.decode()).encode()


def render_view_report(run_view: RunView) -> str:
    """The report of a run."""
    return render_run_report(
        run_view.live.machine, run_view.snapshot, run_view.status, run_view.entries, run_view.text
    )


def _render_timeline(run_view: RunView) -> bytes:
    from steersman.views.timeline import build_timeline

    return _format_projection_json(
        msgspec.json.encode(list(build_timeline(run_view.entries, run_view.live.machine)))
    )


def _render_contract(context: dict[str, Any], text: PayloadReader) -> bytes:
    """The contract with its digest, and the texts that its names stand for."""
    contract = context["contract"]
    texts = {name: text(contract[name]) for name in CONTRACT_TEXTS if contract.get(name)}
    document = {"digest": context.get("contract_digest", ""), "contract": contract, "texts": texts}
    return _format_projection_json(msgspec.json.encode(document))
