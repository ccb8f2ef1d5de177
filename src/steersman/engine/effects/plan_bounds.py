"""Finds the frozen plan that bounds an effect: that of its own task, or of the task that started the run.

**Invariant:** the bounds are those that the task stored when it began; a child never has wider ones.
"""

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from steersman.contracts.commands import Argv
from steersman.engine.effect_call import EffectCall
from steersman.kernel.snapshot import runtime_field

if TYPE_CHECKING:
    from steersman.judges.planning.plan_bounds import PlanBounds


def find_plan_bounds(call: EffectCall) -> "PlanBounds | None":
    """Returns the bounds of an effect; None without a plan."""
    ref = call.given("bounds", "") or _inherited_bounds_ref(call)
    if not ref:
        return None
    from steersman.judges.planning.plan_bounds import PlanBounds

    return msgspec.json.decode(call.payloads.get(ref), type=PlanBounds)


def _inherited_bounds_ref(call: EffectCall) -> str:
    """Returns the payload name of the nearest ancestor's bounds."""
    from steersman.engine.active_run import load_active_run

    journal = call.world.journal
    head = journal.head(call.run) if journal is not None else None
    while head is not None and head.parent:
        ref: str = runtime_field(load_active_run(call.world, head.parent).snapshot.context, "bounds_ref")
        if ref:
            return ref
        head = journal.head(head.parent)
    return ""


def allowed_commands(bounds: "PlanBounds | None") -> tuple[Argv, ...] | None:
    """Returns the plan's commands without a blank to fill in, which an agent may run by itself."""
    if bounds is None:
        return None
    return tuple(dict.fromkeys(a.argv for a in bounds.actions if a.argv and not a.blanks))


def files_outside_bounds(bounds: "PlanBounds | None", names: Sequence[str]) -> dict[str, str]:
    """Returns the files that the plan does not cover, each with why; all of them where they are too many."""
    if bounds is None:
        return {}
    from steersman.judges.planning.plan_bounds import find_outside_bounds

    reasons_by_name = {
        name: problems[0].message
        for name in names
        if (problems := find_outside_bounds(bounds, files=(name,)))
    }
    if reasons_by_name:
        return reasons_by_name
    return {name: problem.message for problem in find_outside_bounds(bounds, files=names) for name in names}


def describe_commands_outside_bounds(bounds: "PlanBounds | None", scripts: Iterable[str]) -> list[str]:
    """Returns one sentence for each command that the plan does not have."""
    return (
        [f"{script} is not a command of {bounds.plan_id}." for script in scripts]
        if bounds is not None
        else []
    )


def command_outside_bounds(bounds: "PlanBounds | None", argv: Argv) -> str:
    """Returns why the plan does not allow a command; empty where it does."""
    if bounds is None:
        return ""
    from steersman.judges.planning.plan_bounds import find_outside_bounds

    return (
        f"{shlex.join(argv)} is not a command of {bounds.plan_id}"
        if find_outside_bounds(bounds, argvs=(argv,))
        else ""
    )
