"""The frozen plan that bounds an effect: its own task's, or that of the task which started the run.

**Invariant:** bounds are what was kept when the task began; no folder is ever read again, and a child has no wider ones.
"""

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from steersman.contracts.commands import Argv
from steersman.runtime.call import Call

if TYPE_CHECKING:
    from steersman.machines.coordinator.bounds import Bounds


def bounds_of(call: Call) -> "Bounds | None":
    """The bounds of an effect; None where no plan was handed in."""
    ref = call.given("bounds", "") or _inherited(call)
    if not ref:
        return None
    from steersman.machines.coordinator.bounds import Bounds

    return msgspec.json.decode(call.payloads.get(ref), type=Bounds)


def _inherited(call: Call) -> str:
    """The payload of the nearest bounds above; texts of a run and of its children are under one key."""
    from steersman.runtime.live import load

    journal = call.world.journal
    head = journal.head(call.run) if journal is not None else None
    while head is not None and head.parent:
        ref: str = getattr(load(call.world, head.parent).snapshot.context, "bounds_ref", "")
        if ref:
            return ref
        head = journal.head(head.parent)
    return ""


def allows(of: "Bounds | None") -> tuple[Argv, ...] | None:
    """The commands that an agent may run by itself: those of the plan that leave no blank to fill in."""
    if of is None:
        return None
    return tuple(dict.fromkeys(a.argv for a in of.actions if a.argv and not a.blanks))


def files_beyond(of: "Bounds | None", names: Sequence[str]) -> dict[str, str]:
    """Those of some names that the plan does not cover, each with why; all of them where they are more than it allows."""
    if of is None:
        return {}
    from steersman.machines.coordinator.bounds import outside

    found = {name: problems[0].message for name in names if (problems := outside(of, files=(name,)))}
    if found:
        return found
    return {name: problem.message for problem in outside(of, files=names) for name in names}


def commands_beyond(of: "Bounds | None", scripts: Iterable[str]) -> list[str]:
    """What is said of commands that an agent wanted and that the plan does not have."""
    return [f"{script} is no command of {of.plan_id}." for script in scripts] if of is not None else []


def argv_beyond(of: "Bounds | None", argv: Argv) -> str:
    """Why a command that steersman would run is not run under this plan; empty where it is."""
    if of is None:
        return ""
    from steersman.machines.coordinator.bounds import outside

    return f"{shlex.join(argv)} is no command of {of.plan_id}" if outside(of, argvs=(argv,)) else ""
