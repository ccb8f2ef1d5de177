"""The documents of a task for a person's eyes: which there are, whether the disk still has them, and one in full.

**Invariant:** what is shown is what was recorded; where the disk has something else, that is said beside it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from steersman.contracts.artifacts import STATE_FILE, TRANSCRIPT_FILE
from steersman.contracts.task.words import COPIES_DIRECTORY, PATCH_FILE
from steersman.engine.projections import read_overrides, read_run_view, render_projection
from steersman.engine.run_view import RunView
from steersman.errors import UserError
from steersman.faces.cli.context import CommandContext
from steersman.kernel.snapshot import context_fields
from steersman.views.run_summary import override_line

if TYPE_CHECKING:
    from steersman.judges.task.inspection import DamagedFile

MAX_DAMAGED_FILES = 20  # damaged files in a list of all tasks
PROJECTION_NAMES = (
    STATE_FILE,
    TRANSCRIPT_FILE,
    "report.md",
)  # projections: made from the tape whenever they are wanted
AS_RECORDED, NOT_ON_RECORD = "as recorded", "NOT on record: nobody has laid it down"


class DocumentStatus(msgspec.Struct, frozen=True):
    """One document and how the disk compares."""

    name: str
    digest: str
    disk: str  # as recorded | NOT as recorded | missing | NOT on record …


def list_document_status(context: CommandContext, run: str) -> list[DocumentStatus]:
    """Every document of a run in the order of their names, then what lies among them and is none, and derived files that
    cannot be read."""
    from steersman.engine.projections import find_unreadable_projections
    from steersman.machines.task.effects.document_digests import find_unrecorded_artifacts

    active_run, ports = context.read_only_runs.live(run), context.read_only_runs.ports
    run_fields = context_fields(active_run.snapshot.context)
    recorded: dict[str, str] = run_fields.get("artifacts", {})
    statuses = [
        DocumentStatus(name, digest, _compare_with_disk(context, run, name, digest))
        for name, digest in sorted(recorded.items())
    ]
    if "artifacts" in run_fields:
        statuses += [
            DocumentStatus(name, "", NOT_ON_RECORD)
            for name in find_unrecorded_artifacts(ports.artifacts, run, recorded)
        ]
    return [
        *statuses,
        *(
            DocumentStatus(name, "", reason)
            for name, reason in find_unreadable_projections(ports, active_run).items()
        ),
    ]


def _compare_with_disk(context: CommandContext, run: str, name: str, recorded: str) -> str:
    from steersman.judges.task.inspection import find_unreadable_file_problem
    from steersman.machines.task.effects.document_digests import artifact_digests

    artifacts = context.read_only_runs.ports.artifacts
    if artifact_digests(artifacts, run, (name,))[name] == recorded:
        return AS_RECORDED
    disk_file = artifacts.read(run, name)
    if name == COPIES_DIRECTORY or disk_file.kind == "file":
        return "NOT as recorded"
    return (
        "missing"
        if disk_file.kind == "missing"
        else f"NOT as recorded: it {find_unreadable_file_problem(disk_file)}"
    )


def describe_touched_files(context: CommandContext, run: str) -> list[str]:
    """What hands did to a task's documents and to the files that are made from its tape, in words, with what to do."""
    from steersman.engine.projections import find_unreadable_projections
    from steersman.judges.text import printable_line
    from steersman.machines.task.document_repair import find_document_damage

    ports, active_run = context.read_only_runs.ports, context.read_only_runs.live(run)
    restore_command = "/restore" if context.prompting else f"{context.command_prefix} tasks restore {run}"
    damage_lines = [
        f"{printable_line(damage.name)} {damage.problem}: {_document_remedy(context, run, damage, restore_command)}"
        for damage in find_document_damage(ports, active_run)
    ]
    return [
        *(
            damage_lines
            if len(damage_lines) <= MAX_DAMAGED_FILES
            else [
                *damage_lines[:MAX_DAMAGED_FILES],
                f"… and {len(damage_lines) - MAX_DAMAGED_FILES} more files: {restore_command}",
            ]
        ),
        *(
            f"{name} {reason}: `{restore_command}` writes it again"
            for name, reason in find_unreadable_projections(ports, active_run).items()
        ),
    ]


def _document_remedy(context: CommandContext, run: str, damage: "DamagedFile", restore_command: str) -> str:
    """What to type for a document; a plan is taken over only where the task asks about it."""
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
    run_view = read_run_view(context.read_only_runs.ports, run)
    documents = context_fields(run_view.snapshot.context).get("documents", {})
    if name in documents:
        text = run_view.text(documents[name])
        _warn_document_changed(context, run, name, run_view)
    elif (projection := render_projection(context.read_only_runs.ports, run_view, name)) is not None:
        text = projection.decode("utf-8", "backslashreplace")
        for touched_line in (
            touched_text
            for touched_text in describe_touched_files(context, run)
            if touched_text.startswith(f"{name} ")
        ):
            context.warn(f"{touched_line}; this is what the tape says", fg="yellow")
    else:
        text = _read_unrecorded_file(context, run, name, sorted(documents))
    context.set_result({"run": run, "name": name, "text": text})
    context.print(text.rstrip("\n"))


def _warn_document_changed(context: CommandContext, run: str, name: str, run_view: RunView) -> None:
    from steersman.machines.task.effects.document_digests import artifact_digest

    disk_file = context.read_only_runs.ports.artifacts.read(run, name)
    recorded = context_fields(run_view.snapshot.context)["artifacts"].get(name, "")
    if artifact_digest(disk_file) != recorded:
        difference = (
            "is not what was recorded" if disk_file.kind == "file" else f"is not there ({disk_file.kind})"
        )
        context.warn(f"{name} on disk {difference}; this is what was recorded", fg="yellow")


def _read_unrecorded_file(context: CommandContext, run: str, name: str, known_names: list[str]) -> str:
    from steersman.judges.artifact_names import find_file_name_problem

    problem = find_file_name_problem(name)
    disk_file = context.read_only_runs.ports.artifacts.read(run, name) if not problem else None
    if disk_file is None or disk_file.kind != "file":
        raise UserError(f"run {run} has no document {name!r}: {', '.join((*known_names, *PROJECTION_NAMES))}")
    if not name.startswith(f"{COPIES_DIRECTORY}/"):
        context.warn(
            f"{name} is not on record: nobody has laid it down; this is what lies on the disk", fg="yellow"
        )
    return disk_file.data.decode("utf-8", "backslashreplace")


def print_run_diff(context: CommandContext, run: str) -> None:
    """The change of a run as git shows it."""
    run_view = read_run_view(context.read_only_runs.ports, run)
    run_fields = context_fields(run_view.snapshot.context)
    patch = run_view.text(
        run_fields.get("documents", {}).get(PATCH_FILE, "") or run_fields.get("patch_ref", "")
    )
    context.set_result({"run": run, "tree": run_fields.get("tree", ""), "patch": patch})
    if not patch:
        context.print("nothing is changed yet")
    for colored_line in _color_patch_lines(patch):
        context.print(colored_line[0], fg=colored_line[1])


def _color_patch_lines(patch: str) -> Iterator[tuple[str, str | None]]:
    for line in patch.splitlines():
        color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield line, None if line.startswith(("+++", "---")) else color
