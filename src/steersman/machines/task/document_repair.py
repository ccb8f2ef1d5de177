"""The documents of a task that nobody drives: what is wrong with them now, and as they were recorded again.

Nothing goes on tape for it, because nothing changes: what was laid down is laid down once more.
**Invariant:** whoever only looks writes nothing; what is put back are the recorded bytes.
"""

from typing import Any

from steersman.contracts.task.facts import RecordFacts
from steersman.engine.active_run import ActiveRun
from steersman.engine.effect_call import EffectCall
from steersman.engine.ports import Ports
from steersman.judges.task.inspection import DamagedFile
from steersman.kernel.snapshot import JobItem, context_fields
from steersman.machines.task import work
from steersman.machines.task.effects.document_restore import restore_recorded_files
from steersman.machines.task.effects.inspection import read_task_files


def find_document_damage(ports: Ports, active_run: ActiveRun) -> list[DamagedFile]:
    """Each document, copy or stranger that is not as it was recorded; nothing while files are laid down, or will be again."""
    is_pruned = (
        active_run.payloads.is_pruned
    )  # with its texts: nothing can be put back, and `tasks show` has the digests
    if (
        is_pruned
        or not context_fields(active_run.snapshot.context).get("artifacts")
        or ports.locks.owner(active_run.run) is not None
    ):
        return []
    jobs = (do.job for state in active_run.machine.states.values() for do in state.work)
    writing_jobs = {job.name for job in jobs if job.returns is RecordFacts}
    return (
        []
        if any(i.job in writing_jobs for i in active_run.snapshot.items.values())
        else read_task_files(_restore_call(ports, active_run)).damages
    )


def restore_task_documents(ports: Ports, active_run: ActiveRun) -> tuple[list[str], list[str]]:
    """Puts everything back as it was recorded; what was moved aside, and what is left with why, in words."""
    return restore_recorded_files(_restore_call(ports, active_run))


def _restore_call(ports: Ports, active_run: ActiveRun) -> EffectCall:
    """As the machine would have it done, by whoever asks here."""
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
    raise AssertionError(f"putting files back has no parts: {key} {facts}")
