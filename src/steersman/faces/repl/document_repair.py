"""A task's files put right by a person's word: documents as they were recorded, the rest made again from the tape.

**Invariant:** nobody else drives the run meanwhile, and the run is where it was.
"""

from steersman.faces.cli.context import CommandContext
from steersman.judges.text import printable_line


def list_wrong_files(context: CommandContext, run: str) -> list[str]:
    """Names of files that are not what they should be; one that will be laid down again by itself is none."""
    from steersman.engine.projections import find_unreadable_projections
    from steersman.machines.task.document_repair import find_document_damage

    ports, active_run = context.runs.ports, context.runs.live(run)
    return [
        *(damage.name for damage in find_document_damage(ports, active_run)),
        *find_unreadable_projections(ports, active_run),
    ]


def restore_run_files(context: CommandContext, run: str) -> list[str]:
    """Puts the files of a run right and says what became of each; the names of those that still are not."""
    from steersman.engine.driver import RunBusy
    from steersman.engine.projections import write_projections
    from steersman.machines.task.document_repair import find_document_damage, restore_task_documents

    ports, active_run = context.runs.ports, context.runs.live(run)
    damages = find_document_damage(ports, active_run)
    lock = ports.locks.acquire(run)
    if lock is None:
        raise RunBusy(
            f"run {run} is driven by {ports.locks.owner(run) or 'another process'}: try again later"
        )
    try:
        messages, leftover_messages = restore_task_documents(ports, active_run) if damages else ([], [])
    finally:
        lock.release()
    messages += write_projections(ports, run)
    still_wrong = list_wrong_files(context, run)
    restored = [damage for damage in damages if damage.name not in still_wrong and damage.recorded]
    messages = [
        *(f"{printable_line(damage.name)} {damage.problem}: it was put back" for damage in restored),
        *messages,
        *leftover_messages,
    ]
    for line in messages:
        context.print(line)
    context.set_result(
        {"run": run, "put_back": [damage.name for damage in restored], "left": still_wrong, "told": messages}
    )
    return still_wrong
