"""Which planned commands a policy forbids: by id, by effect, by risk, because they destroy.

**Invariant:** a command is what the registry says of it, whatever the intent says.
"""

from collections.abc import Iterator
from typing import cast

from steersman.contracts.planning.content import CommandSpec
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import RISK_LEVELS
from steersman.judges.planning.environment import CommandTarget, build_command_target, list_selected_phases
from steersman.judges.planning.registry import Registry


def find_forbidden_commands(
    intent: ExecutionIntent, registry: Registry, policy: ExecutionPolicy
) -> tuple[DocumentProblem, ...]:
    """Every planned command that the policy does not let be planned, and why."""
    phases = list_selected_phases(intent)
    problems = []
    for index, planned in enumerate(intent.planned_commands):
        spec = cast("CommandSpec | None", registry.usable("command", planned.command_id))
        target = build_command_target(planned, spec, phases)
        is_destructive = spec is not None and spec.destructive
        field = f"planned_commands[{index}]"
        problems += [
            DocumentProblem(field=field, message=m, fix=f)
            for m, f in _explain_prohibitions(target, policy, destroys=is_destructive)
        ]
    return tuple(problems)


def _explain_prohibitions(
    target: CommandTarget, policy: ExecutionPolicy, *, destroys: bool
) -> Iterator[tuple[str, str]]:
    removal_advice = f"take {target.id} out of planned_commands"
    forbidden_operations = set(policy.constraints.forbidden_operations)
    for name in sorted(forbidden_operations & {target.id, *target.effects}):
        yield (
            f"the policy forbids {name}, and {target.id} is that",
            f"{removal_advice}, or change policy.constraints.forbidden_operations",
        )
    if destroys and not policy.constraints.allow_destructive:
        yield (
            f"{target.id} destroys, and the policy does not allow that",
            f"{removal_advice}, or set policy.constraints.allow_destructive",
        )
    if RISK_LEVELS.index(target.risk) > RISK_LEVELS.index(policy.highest_risk):
        message = f"{target.id} is {target.risk}, and the policy lets nothing above {policy.highest_risk} be planned"
        yield message, f"{removal_advice}, or raise policy.highest_risk"
