"""The documents of a run: which there are, how the files on disk compare, and one in full.

**Invariant:** what is shown is what was recorded; where the file on disk differs, a warning says so.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from steersman.contracts.artifacts import REPORT_FILE, STATE_FILE, TRANSCRIPT_FILE
from steersman.engine.machine_package import DocumentOnDisk, MachinePackage, find_package
from steersman.engine.person_words import RunView
from steersman.engine.projections import read_overrides, read_run_view, render_projection
from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext
from steersman.judges.text import printable_line
from steersman.views.run_summary import override_line

if TYPE_CHECKING:
    from steersman.engine.active_run import ActiveRun
    from steersman.engine.ports import Ports
    from steersman.judges.task.inspection import DamagedFile

MAX_DAMAGED_FILES = 20  # damaged files in a list of all tasks
PROJECTION_NAMES = (STATE_FILE, TRANSCRIPT_FILE, REPORT_FILE)  # made from the tape when somebody asks
AS_RECORDED = "as recorded"


def list_document_status(context: CommandContext, run: str) -> list[DocumentOnDisk]:
    """Every document of a run, then the files that are not on record, then the projections that cannot be read."""
    from steersman.engine.projections import find_unreadable_projections

    active_run, ports = context.read_only_runs.live(run), context.read_only_runs.ports
    documents = _find_run_package(ports, active_run).documents
    return [
        *(documents.compare(ports, active_run) if documents is not None else ()),
        *(
            DocumentOnDisk(name, "", reason)
            for name, reason in find_unreadable_projections(ports, active_run).items()
        ),
    ]


def _find_run_package(ports: "Ports", active_run: "ActiveRun") -> MachinePackage:
    return find_package(ports.packages, active_run.machine)


def _find_document_damage(ports: "Ports", active_run: "ActiveRun") -> "list[DamagedFile]":
    documents = _find_run_package(ports, active_run).documents
    return documents.find_damage(ports, active_run) if documents is not None else []


def describe_touched_files(context: CommandContext, run: str) -> list[str]:
    """Each document that was changed and each projection that cannot be read, in words, with what to do."""
    from steersman.engine.projections import find_unreadable_projections

    ports, active_run = context.read_only_runs.ports, context.read_only_runs.live(run)
    restore_command = "/restore" if context.prompting else f"{context.command_prefix} tasks restore {run}"
    damage_lines = [
        f"{printable_line(damage.name)} {damage.problem}: {_document_remedy(context, run, damage, restore_command)}"
        for damage in _find_document_damage(ports, active_run)
    ]
    if len(damage_lines) > MAX_DAMAGED_FILES:
        rest = len(damage_lines) - MAX_DAMAGED_FILES
        damage_lines = [*damage_lines[:MAX_DAMAGED_FILES], f"… and {rest} more files: {restore_command}"]
    return [
        *damage_lines,
        *(
            f"{name} {reason}: `{restore_command}` writes it again"
            for name, reason in find_unreadable_projections(ports, active_run).items()
        ),
    ]


def _document_remedy(context: CommandContext, run: str, damage: "DamagedFile", restore_command: str) -> str:
    """What to type for a document; a plan is taken over only where an open gate offers it."""
    can_adopt = any(
        "adopt" in gate.choices for gate in context.read_only_runs.ports.journal.gates(run) if not gate.answer
    )
    adopt_command = "/adopt" if context.prompting else f"{context.command_prefix} tasks adopt {run}"
    adopt_text = f"`{adopt_command}` takes" if can_adopt else "the task's next step asks whether it takes"
    return damage.next.replace("`adopt` takes", adopt_text).replace("`restore`", f"`{restore_command}`")


def print_document_list(context: CommandContext, run: str) -> None:
    """The list."""
    documents = list_document_status(context, run)
    override_list = read_overrides(context.read_only_runs.ports, run)
    directory = context.read_only_runs.ports.artifacts.folder(run)
    context.set_result({"run": run, "folder": directory, "documents": documents, "overrides": override_list})
    context.print(f"documents in {directory}:")
    for document in documents:
        context.print(
            f"  {document.digest[:12]:12}  {document.name}  {document.disk}",
            fg=None if document.disk == AS_RECORDED else "red",
        )
    if not documents:
        context.print("  none yet")
    for override in override_list:
        context.print(f"overridden: {override_line(override)}", fg="yellow")
    for touched_line in describe_touched_files(context, run):
        context.print(touched_line, fg="red")


def print_document(context: CommandContext, run: str, name: str) -> None:
    """One document as it was recorded, or made from the tape; else a file beside them as it is on disk."""
    ports = context.read_only_runs.ports
    run_view = read_run_view(ports, run)
    documents = find_package(ports.packages, run_view.machine).documents
    recorded = documents.read_texts(run_view.snapshot.context) if documents is not None else {}
    if name in recorded:
        text = run_view.text(recorded[name])
        _warn_document_changed(context, run, name)
    elif (projection := render_projection(ports, run_view, name)) is not None:
        text = projection.decode("utf-8", "backslashreplace")
        for touched_line in describe_touched_files(context, run):
            if touched_line.startswith(f"{name} "):
                context.warn(f"{touched_line}; this is what the tape says", fg="yellow")
    else:
        text = _read_unrecorded_file(context, run_view, name, sorted(recorded))
    context.set_result({"run": run, "name": name, "text": text})
    context.print(text.rstrip("\n"))


def _warn_document_changed(context: CommandContext, run: str, name: str) -> None:
    document = next(status for status in list_document_status(context, run) if status.name == name)
    if document.disk != AS_RECORDED:
        kind = context.read_only_runs.ports.artifacts.read(run, name).kind
        difference = "is not what was recorded" if kind == "file" else f"is not there ({kind})"
        context.warn(f"{name} on disk {difference}; this is what was recorded", fg="yellow")


def _read_unrecorded_file(
    context: CommandContext, run_view: RunView, name: str, known_names: list[str]
) -> str:
    from steersman.judges.artifact_names import find_file_name_problem

    ports, run = context.read_only_runs.ports, run_view.snapshot.run
    disk_file = ports.artifacts.read(run, name) if not find_file_name_problem(name) else None
    if disk_file is None or disk_file.kind != "file":
        raise UserError(f"run {run} has no document {name!r}: {', '.join((*known_names, *PROJECTION_NAMES))}")
    documents = find_package(ports.packages, run_view.machine).documents
    if documents is None or not documents.is_copy(name):
        context.warn(
            f"{name} is not on record: steersman did not write it; this is what lies on the disk", fg="yellow"
        )
    return disk_file.data.decode("utf-8", "backslashreplace")


def print_run_diff(context: CommandContext, run: str) -> None:
    """The change of a run as git shows it."""
    ports = context.read_only_runs.ports
    run_view = read_run_view(ports, run)
    read_patch = find_package(ports.packages, run_view.machine).read_patch
    patch = read_patch(run_view) if read_patch is not None else ""
    context.set_result({"run": run, "tree": run_view.status.tree, "patch": patch})
    if not patch:
        context.print("nothing is changed yet")
    for line, color in _color_patch_lines(patch):
        context.print(line, fg=color)


def _color_patch_lines(patch: str) -> Iterator[tuple[str, str | None]]:
    for line in patch.splitlines():
        color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield line, None if line.startswith(("+++", "---")) else color


# ── restored ────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_wrong_files(context: CommandContext, run: str) -> list[str]:
    """The names of files that are not what they should be."""
    from steersman.engine.projections import find_unreadable_projections

    ports, active_run = context.runs.ports, context.runs.live(run)
    damages = _find_document_damage(ports, active_run)
    return [*(damage.name for damage in damages), *find_unreadable_projections(ports, active_run)]


def restore_run_files(context: CommandContext, run: str) -> list[str]:
    """Restores the files of a run and says what became of each; returns the names of those that are still wrong."""
    from steersman.engine.driver import RunBusy
    from steersman.engine.projections import write_projections

    ports, active_run = context.runs.ports, context.runs.live(run)
    documents = _find_run_package(ports, active_run).documents
    damages = _find_document_damage(ports, active_run)
    lock = ports.locks.acquire(run)
    if lock is None:
        raise RunBusy(
            f"run {run} is driven by {ports.locks.owner(run) or 'another process'}: try again later"
        )
    try:
        messages, leftovers = documents.restore(ports, active_run) if documents and damages else ([], [])
    finally:
        lock.release()
    messages += write_projections(ports, run)
    still_wrong = list_wrong_files(context, run)
    restored = [damage for damage in damages if damage.name not in still_wrong and damage.recorded]
    messages = [
        *(f"{printable_line(damage.name)} {damage.problem}: it was put back" for damage in restored),
        *messages,
        *leftovers,
    ]
    for line in messages:
        context.print(line)
    context.set_result(
        {"run": run, "put_back": [damage.name for damage in restored], "left": still_wrong, "told": messages}
    )
    return still_wrong
