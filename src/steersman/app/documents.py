"""The documents of a run: which there are, how the files on disk compare, one in full, the change, and restoring them.

**Invariant:** what is shown is what was recorded; where the file on disk differs, a warning says so.
"""

import msgspec

from steersman.app.principal import Principal, require_person_for_run
from steersman.app.runs import RunService
from steersman.contracts.artifacts import REPORT_FILE, STATE_FILE, TRANSCRIPT_FILE, DamagedFile
from steersman.engine.active_run import ActiveRun, load_active_run
from steersman.engine.driver import RunBusy
from steersman.engine.machine_package import DocumentOnDisk, RunDocuments, RunView, find_package
from steersman.engine.ports import Ports
from steersman.engine.projections import (
    find_unreadable_projections,
    read_overrides,
    read_run_view,
    render_projection,
    write_projections,
)
from steersman.errors import UserError
from steersman.judges.artifact_names import find_file_name_problem
from steersman.judges.text import printable_line
from steersman.views.run_summary import GuardOverride

__all__ = [
    "AS_RECORDED",
    "PROJECTION_NAMES",
    "DocumentList",
    "DocumentOnDisk",
    "DocumentText",
    "RestoredFiles",
    "RunChange",
    "describe_touched_files",
    "list_document_status",
    "list_documents",
    "list_wrong_files",
    "read_document",
    "read_run_change",
    "restore_run_files",
]

MAX_DAMAGED_FILES = 20  # damaged files in a list of all tasks
PROJECTION_NAMES = (STATE_FILE, TRANSCRIPT_FILE, REPORT_FILE)  # made from the tape on request
AS_RECORDED = "as recorded"


class DocumentList(msgspec.Struct, frozen=True):
    """Every document of a run, and what people have overridden in it."""

    folder: str
    documents: tuple[DocumentOnDisk, ...]
    overrides: tuple[GuardOverride, ...]


class DocumentText(msgspec.Struct, frozen=True):
    """One document in full; each warning says how it is not what lies on the disk."""

    text: str
    warnings: tuple[str, ...] = ()


class RunChange(msgspec.Struct, frozen=True):
    """The change of a run as git shows it."""

    tree: str
    patch: str


class RestoredFiles(msgspec.Struct, frozen=True):
    """What became of the files of a run: in words, those that were put back, and those that are still wrong."""

    messages: tuple[str, ...]
    put_back: tuple[str, ...]
    left: tuple[str, ...]


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_documents(ports: Ports, run: str) -> DocumentList:
    """Every document of a run with how it compares with the file on disk."""
    return DocumentList(
        ports.artifacts.folder(run),
        tuple(list_document_status(ports, run)),
        tuple(read_overrides(ports, run)),
    )


def list_document_status(ports: Ports, run: str) -> list[DocumentOnDisk]:
    """Every document of a run, then the files that are not on record, then the projections that cannot be read."""
    active_run = _load_run(ports, run)
    documents = _find_run_documents(ports, active_run)
    unreadable = find_unreadable_projections(ports, active_run)
    return [
        *(documents.compare(ports, active_run) if documents is not None else ()),
        *(DocumentOnDisk(name, "", reason) for name, reason in unreadable.items()),
    ]


def _load_run(ports: Ports, run: str) -> ActiveRun:
    return load_active_run(ports, run, migrating=True)


def _find_run_documents(ports: Ports, active_run: ActiveRun) -> RunDocuments | None:
    return find_package(ports.packages, active_run.machine).documents


def _find_document_damage(ports: Ports, active_run: ActiveRun) -> list[DamagedFile]:
    documents = _find_run_documents(ports, active_run)
    return documents.find_damage(ports, active_run) if documents is not None else []


def describe_touched_files(ports: Ports, run: str, command_prefix: str) -> list[str]:
    """Each document that was changed and each projection that cannot be read, in words, with what to type; without a
    prefix in the words of the prompt."""
    active_run = _load_run(ports, run)
    restore_command = f"{command_prefix} tasks restore {run}" if command_prefix else "/restore"
    lines = [
        f"{printable_line(damage.name)} {damage.problem}: {_document_remedy(ports, run, damage, command_prefix)}"
        for damage in _find_document_damage(ports, active_run)
    ]
    if len(lines) > MAX_DAMAGED_FILES:
        rest = len(lines) - MAX_DAMAGED_FILES
        lines = [*lines[:MAX_DAMAGED_FILES], f"… and {rest} more files: {restore_command}"]
    unreadable = find_unreadable_projections(ports, active_run)
    return [
        *lines,
        *(f"{name} {reason}: `{restore_command}` writes it again" for name, reason in unreadable.items()),
    ]


def _document_remedy(ports: Ports, run: str, damage: DamagedFile, command_prefix: str) -> str:
    """What to type for a document; a plan is taken over only where an open gate offers it."""
    can_adopt = any("adopt" in gate.choices for gate in ports.journal.gates(run) if not gate.answer)
    adopt_command = f"{command_prefix} tasks adopt {run}" if command_prefix else "/adopt"
    restore_command = f"{command_prefix} tasks restore {run}" if command_prefix else "/restore"
    adopt_text = f"`{adopt_command}` takes" if can_adopt else "the task's next step asks whether it takes"
    return damage.next.replace("`adopt` takes", adopt_text).replace("`restore`", f"`{restore_command}`")


def read_document(ports: Ports, run: str, name: str, command_prefix: str) -> DocumentText:
    """One document as it was recorded, or made from the tape; else a file beside them as it is on disk."""
    run_view = read_run_view(ports, run)
    documents = find_package(ports.packages, run_view.machine).documents
    recorded = documents.read_texts(run_view.snapshot.context) if documents is not None else {}
    if name in recorded:
        return DocumentText(run_view.text(recorded[name]), _warn_document_changed(ports, run, name))
    if (projection := render_projection(ports, run_view, name)) is not None:
        touched = (
            line for line in describe_touched_files(ports, run, command_prefix) if line.startswith(f"{name} ")
        )
        return DocumentText(
            projection.decode("utf-8", "backslashreplace"),
            tuple(f"{line}; this is what the tape says" for line in touched),
        )
    return _read_unrecorded_file(ports, run_view, name, sorted(recorded))


def _warn_document_changed(ports: Ports, run: str, name: str) -> tuple[str, ...]:
    document = next(status for status in list_document_status(ports, run) if status.name == name)
    if document.disk == AS_RECORDED:
        return ()
    kind = ports.artifacts.read(run, name).kind
    difference = "is not what was recorded" if kind == "file" else f"is not there ({kind})"
    return (f"{name} on disk {difference}; this is what was recorded",)


def _read_unrecorded_file(ports: Ports, run_view: RunView, name: str, known_names: list[str]) -> DocumentText:
    run = run_view.snapshot.run
    disk_file = ports.artifacts.read(run, name) if not find_file_name_problem(name) else None
    if disk_file is None or disk_file.kind != "file":
        raise UserError(f"run {run} has no document {name!r}: {', '.join((*known_names, *PROJECTION_NAMES))}")
    documents = find_package(ports.packages, run_view.machine).documents
    is_copy = documents is not None and documents.is_copy(name)
    warning = f"{name} is not on record: steersman did not write it; this is what lies on the disk"
    return DocumentText(disk_file.data.decode("utf-8", "backslashreplace"), () if is_copy else (warning,))


def read_run_change(ports: Ports, run: str) -> RunChange:
    """The change of a run; its patch is empty while there is none."""
    run_view = read_run_view(ports, run)
    read_patch = find_package(ports.packages, run_view.machine).read_patch
    return RunChange(run_view.status.tree, read_patch(run_view) if read_patch is not None else "")


# ── restoring ───────────────────────────────────────────────────────────────────────────────────────────────────────


def list_wrong_files(ports: Ports, run: str) -> list[str]:
    """The names of files that are not what they should be."""
    active_run = _load_run(ports, run)
    damages = _find_document_damage(ports, active_run)
    return [*(damage.name for damage in damages), *find_unreadable_projections(ports, active_run)]


def restore_run_files(runs: RunService, principal: Principal, run: str) -> RestoredFiles:
    """Restores the files of a run as they were recorded; refuses while another process drives it."""
    require_person_for_run(runs.ports, principal, run, "restore")
    ports, active_run = runs.ports, _load_run(runs.ports, run)
    documents, damages = (
        _find_run_documents(ports, active_run),
        _find_document_damage(ports, active_run),
    )
    lock = ports.locks.acquire(run)
    if lock is None:
        owner = ports.locks.owner(run) or "another process"
        raise RunBusy(f"run {run} is driven by {owner}: try again later")
    try:
        messages, leftovers = documents.restore(ports, active_run) if documents and damages else ([], [])
    finally:
        lock.release()
    messages += write_projections(ports, run)
    still_wrong = list_wrong_files(ports, run)
    restored = [damage for damage in damages if damage.name not in still_wrong and damage.recorded]
    restored_lines = (
        f"{printable_line(damage.name)} {damage.problem}: it was restored" for damage in restored
    )
    return RestoredFiles(
        (*restored_lines, *messages, *leftovers),
        tuple(damage.name for damage in restored),
        tuple(still_wrong),
    )
