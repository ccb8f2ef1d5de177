"""Which planned commands a policy forbids: by id, by effect, by risk, because they destroy.

**Invariant:** a command is what the registry says of it, whatever the intent says.
"""

from collections.abc import Iterator
from typing import cast

from steersman.contracts.planning.content import CommandSpec
from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import RISKS
from steersman.judges.planning.environment import Target, selected_phases, target_of
from steersman.judges.planning.registry import Registry


def forbidden(intent: ExecutionIntent, registry: Registry, policy: ExecutionPolicy) -> tuple[Problem, ...]:
    """Every planned command that the policy does not let be planned, and why."""
    phases = selected_phases(intent)
    found = []
    for n, planned in enumerate(intent.planned_commands):
        spec = cast("CommandSpec | None", registry.usable("command", planned.command_id))
        target = target_of(planned, spec, phases)
        destroys = spec is not None and spec.destructive
        field = f"planned_commands[{n}]"
        found += [Problem(field=field, message=m, fix=f) for m, f in _told(target, policy, destroys=destroys)]
    return tuple(found)


def _told(target: Target, policy: ExecutionPolicy, *, destroys: bool) -> Iterator[tuple[str, str]]:
    out = f"take {target.id} out of planned_commands"
    never = set(policy.constraints.forbidden_operations)
    for name in sorted(never & {target.id, *target.effects}):
        yield (
            f"the policy forbids {name}, and {target.id} is that",
            f"{out}, or change policy.constraints.forbidden_operations",
        )
    if destroys and not policy.constraints.allow_destructive:
        yield (
            f"{target.id} destroys, and the policy does not allow that",
            f"{out}, or set policy.constraints.allow_destructive",
        )
    if RISKS.index(target.risk) > RISKS.index(policy.highest_risk):
        told = f"{target.id} is {target.risk}, and the policy lets nothing above {policy.highest_risk} be planned"
        yield told, f"{out}, or raise policy.highest_risk"
