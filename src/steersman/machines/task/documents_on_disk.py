"""The documents of a task that no driver works on: how the disk compares, and as they were recorded again.

Nothing is appended to the tape for it, because nothing changes: what was recorded is written once more.
**Invariant:** comparing writes nothing; what is restored are the recorded bytes.
"""

from collections.abc import Mapping
from typing import Any

from steersman.contracts.artifacts import DamagedFile
from steersman.engine.active_run import ActiveRun
from steersman.engine.effects import EffectCall
from steersman.engine.machine_package import DocumentOnDisk, RunDocuments, RunView
from steersman.engine.ports import Ports
from steersman.kernel.snapshot import JobItem
from steersman.machines.task import work
from steersman.machines.task.context import TaskContext
from steersman.machines.task.documents.inspection import find_unreadable_file_problem
from steersman.machines.task.documents.words import COPIES_DIRECTORY, PATCH_FILE
from steersman.machines.task.effects.document_digests import artifact_digests, find_unrecorded_artifacts
from steersman.machines.task.effects.document_restore import restore_recorded_files
from steersman.machines.task.effects.inspection import read_task_files
from steersman.machines.task.facts import RecordFacts

AS_RECORDED, NOT_ON_RECORD = "as recorded", "NOT on record: no run wrote it"


def compare_documents(ports: Ports, active_run: ActiveRun) -> list[DocumentOnDisk]:
    """Every recorded document by its name, then the files among them that are not on record."""
    context: TaskContext = active_run.snapshot.context
    unrecorded = find_unrecorded_artifacts(ports.artifacts, active_run.run, context.artifacts)
    return [
        *(
            DocumentOnDisk(name, digest, _compare_with_disk(ports, active_run.run, name, digest))
            for name, digest in sorted(context.artifacts.items())
        ),
        *(DocumentOnDisk(name, "", NOT_ON_RECORD) for name in unrecorded),
    ]


def _compare_with_disk(ports: Ports, run: str, name: str, recorded: str) -> str:
    if artifact_digests(ports.artifacts, run, (name,))[name] == recorded:
        return AS_RECORDED
    disk_file = ports.artifacts.read(run, name)
    if name == COPIES_DIRECTORY or disk_file.kind == "file":
        return "NOT as recorded"
    if disk_file.kind == "missing":
        return "missing"
    return f"NOT as recorded: it {find_unreadable_file_problem(disk_file)}"


def find_document_damage(ports: Ports, active_run: ActiveRun) -> list[DamagedFile]:
    """Each document, copy or unknown file that is not as recorded; nothing while an effect writes files, or will."""
    context: TaskContext = active_run.snapshot.context
    # The texts of a pruned run are gone: nothing can be restored, and `tasks show` has the digests.
    if (
        active_run.payloads.is_pruned
        or not context.artifacts
        or ports.locks.owner(active_run.run) is not None
    ):
        return []
    jobs = (do.job for state in active_run.machine.states.values() for do in state.work)
    writing_jobs = {job.name for job in jobs if job.returns is RecordFacts}
    if any(item.job in writing_jobs for item in active_run.snapshot.items.values()):
        return []
    return read_task_files(_restore_call(ports, active_run)).damages


def restore_task_documents(ports: Ports, active_run: ActiveRun) -> tuple[list[str], list[str]]:
    """Writes everything as it was recorded; returns what was moved aside, and what is left with why, in words."""
    return restore_recorded_files(_restore_call(ports, active_run))


def _restore_call(ports: Ports, active_run: ActiveRun) -> EffectCall:
    """The call by which the machine itself would have it done."""
    effect_input = {
        **work.document_restore_input(active_run.snapshot.context),
        "phase": active_run.snapshot.state,
    }
    item = JobItem(f"{active_run.run}:0:0", "restore", "effect", "restore", effect_input, 0)
    return EffectCall(
        ports,
        active_run.run,
        active_run.machine.name,
        item,
        active_run.config,
        active_run.payloads,
        _reject_part,
    )


async def _reject_part(key: str, facts: Any) -> None:
    raise AssertionError(f"restoring files has no parts: {key} {facts}")


def read_document_refs(context: TaskContext) -> Mapping[str, str]:
    """The payload names of the recorded documents."""
    return context.documents


def read_task_patch(run_view: RunView) -> str:
    """The recorded change."""
    context: TaskContext = run_view.snapshot.context
    return run_view.text(context.documents.get(PATCH_FILE, "") or context.patch_ref)


TASK_RUN_DOCUMENTS = RunDocuments(
    compare=compare_documents,
    find_damage=find_document_damage,
    restore=restore_task_documents,
    read_texts=read_document_refs,
    is_copy=lambda name: name.startswith(f"{COPIES_DIRECTORY}/"),
)
