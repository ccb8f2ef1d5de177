"""Restores files of a task that are not as recorded, moves unknown files aside, and adopts a plan that a person edited.

**Invariant:** restored bytes are the recorded bytes. An adopted plan was read strictly, and is the one that the person was
shown. An unknown plain file is kept under another name.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from steersman.engine.effects import EffectCall
from steersman.errors import SteersmanError
from steersman.judges.artifact_names import find_file_name_problem
from steersman.judges.text import printable_line
from steersman.machines.task.documents.inspection import find_file_damage
from steersman.machines.task.documents.schemas import PlanFiles, TaskPlan
from steersman.machines.task.documents.words import COPIES_DIRECTORY, PLAN_FILE, SCOPE_FILE
from steersman.machines.task.effects.document_digests import artifact_digest, read_artifacts
from steersman.machines.task.effects.document_writer import (
    DocumentWriter,
    perform_in_thread,
    write_change_copies,
)
from steersman.machines.task.effects.inspection import find_all_unrecorded
from steersman.machines.task.effects.task_documents import write_scope_document
from steersman.machines.task.facts import RecordFacts

MOVED_ASIDE_PREFIX = "moved aside: "
ASIDE_DIRECTORY = "aside"  # in the run's folder: what was found among its documents, and is none


@perform_in_thread
def restore_documents(call: EffectCall) -> RecordFacts:
    """Writes every recorded document with its recorded bytes and copies from the recorded tree, and moves unknown files aside."""
    recorded, refs = call.given("artifacts"), call.given("documents")
    moved_lines, failures = restore_recorded_files(call)
    if failures:
        raise ValueError("; ".join([*failures, *moved_lines]))
    lines = call.payloads.get(call.given("told")).splitlines()
    summary = "\n".join([*(line for line in lines if not line.startswith(MOVED_ASIDE_PREFIX)), *moved_lines])
    return RecordFacts(written=dict(recorded), refs=dict(refs), told_ref=call.payloads.add_text(summary))


def restore_recorded_files(call: EffectCall) -> tuple[list[str], list[str]]:
    """Puts everything back that can be; what was moved aside, and what is left with why, in words."""
    unrecorded_names = find_all_unrecorded(call)
    aside_directory = _free_aside_directory(call) if unrecorded_names else ""
    failures, lines = dict[str, str](), dict[str, str]()
    for name in unrecorded_names:
        with _note_failure(failures, name):
            lines[name] = _move_file_aside(call, name, aside_directory)
    for name, ref in call.given("documents").items():
        with _note_failure(failures, name):
            call.world.artifacts.write(call.run, name, call.payloads.get(ref).encode(), durable=True)
    names = find_all_unrecorded(call)
    if COPIES_DIRECTORY in call.given("artifacts"):
        with _note_failure(failures, COPIES_DIRECTORY):
            change = call.world.workspace(call.config).change(call.given("commit"), call.given("base"))
            write_change_copies(call, change, names)
    for name in names:  # one whose name is no text
        failures.setdefault(
            name, f"{printable_line(name)} cannot be taken away: remove it by hand and try again"
        )
    return [moved_line for name, moved_line in lines.items() if name not in names], list(failures.values())


@contextmanager
def _note_failure(failures: dict[str, str], name: str) -> Iterator[None]:
    """What cannot be done for one file is noted, and keeps nothing else from being done."""
    try:
        yield
    except (SteersmanError, OSError, ValueError) as error:
        failures[name] = printable_line(str(error))


def _free_aside_directory(call: EffectCall) -> str:
    """A folder of its own for what is moved aside this time."""
    numbers = {name.split("/")[0] for name in call.world.artifacts.names(call.run, ASIDE_DIRECTORY)}
    return next(f"{ASIDE_DIRECTORY}/{n}" for n in range(1, len(numbers) + 2) if str(n) not in numbers)


def _move_file_aside(call: EffectCall, name: str, aside_directory: str) -> str:
    """Keeps an unknown file under another name and says so. A link is removed without its target."""
    artifacts, run, aside_name = call.world.artifacts, call.run, f"{aside_directory}/{name}"
    artifact = artifacts.read(run, name)
    if artifact.kind == "too_long" or (artifact.kind == "file" and find_file_name_problem(aside_name)):
        raise ValueError(f"{name} cannot be moved aside: move it away by hand and try again")
    if artifact.kind == "file":
        artifacts.write(run, aside_name, artifact.data, durable=True)
    artifacts.remove(run, name)
    return f"{MOVED_ASIDE_PREFIX}{printable_line(name)}" + (
        f", now {printable_line(aside_name)}" if artifact.kind == "file" else ""
    )


@perform_in_thread
def adopt_documents(call: EffectCall) -> RecordFacts:
    """Adopts the plan on disk that the person was shown: reads it strictly, and records it as it was read."""
    writer, recorded = DocumentWriter(call), call.given("artifacts")
    plan_files = read_artifacts(
        call.world.artifacts, call.run, [name for name in (PLAN_FILE, SCOPE_FILE) if name in recorded]
    )
    digests = {name: artifact_digest(plan_file) for name, plan_file in plan_files.items()}
    damages = [
        find_file_damage(name, plan_file, recorded[name], may_adopt=True, task_id=call.run)
        for name, plan_file in plan_files.items()
    ]
    unadoptable = [d for d in damages if d is not None and not d.adoptable]
    if unadoptable:
        raise ValueError("; ".join(f"{d.name} {d.problem}" for d in unadoptable))
    if any(call.given("seen").get(name) != digest for name, digest in digests.items()):
        raise ValueError("the plan on disk was changed again since you were asked about it: look at it again")
    plan = msgspec.json.decode(plan_files[PLAN_FILE].data, type=TaskPlan)
    writer.lay_down(PLAN_FILE, plan)
    if digests.get(SCOPE_FILE) == recorded.get(SCOPE_FILE):
        write_scope_document(writer, plan)
    else:
        files = msgspec.json.decode(plan_files[SCOPE_FILE].data, type=PlanFiles)
        writer.lay_down(SCOPE_FILE, msgspec.structs.replace(files, inferred=False))
    return writer.facts()
