"""The documents of a task that nobody drives: what is wrong with them now, and as they were recorded again.

Nothing goes on tape for it, because nothing changes: what was laid down is laid down once more.
**Invariant:** whoever only looks writes nothing; what is put back are the recorded bytes.
"""

from typing import Any

from steersman.contracts.task.facts import RecordFacts
from steersman.judges.task.inspection import Damage
from steersman.kernel.snapshot import Item, fields
from steersman.machines.task import work
from steersman.runtime.call import Call
from steersman.runtime.live import Live
from steersman.runtime.performers.inspection import looked
from steersman.runtime.performers.repair import put_back
from steersman.runtime.world import World


def damaged(world: World, live: Live) -> list[Damage]:
    """Each document, copy or stranger that is not as it was recorded; nothing while files are laid down, or will be again."""
    gone = live.payloads.gone  # with its texts: nothing can be put back, and `tasks show` has the digests
    if gone or not fields(live.snapshot.context).get("artifacts") or world.locks.owner(live.run) is not None:
        return []
    works = (do.job for state in live.machine.states.values() for do in state.work)
    writing = {job.name for job in works if job.returns is RecordFacts}
    return (
        []
        if any(i.job in writing for i in live.snapshot.items.values())
        else looked(_call(world, live)).damages
    )


def mended(world: World, live: Live) -> tuple[list[str], list[str]]:
    """Puts everything back as it was recorded; what was moved aside, and what is left with why, in words."""
    return put_back(_call(world, live))


def _call(world: World, live: Live) -> Call:
    """As the machine would have it done, by whoever asks here."""
    given = {**work.restore(live.snapshot.context), "phase": live.snapshot.state}
    item = Item(f"{live.run}:0:0", "restore", "effect", "restore", given, 0)
    return Call(world, live.run, live.machine.name, item, live.config, live.payloads, _no_part)


async def _no_part(key: str, facts: Any) -> None:
    raise AssertionError(f"putting files back has no parts: {key} {facts}")
