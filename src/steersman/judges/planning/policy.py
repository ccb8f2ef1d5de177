"""Finds what is wrong with a policy, and which planned commands the policy forbids.

**Invariant:** total. A policy that cannot be read never counts as a mild one. A command is judged by its registry entry,
whatever the intent says.
"""

from collections.abc import Iterator
from typing import Any, cast, get_args

from steersman.contracts.planning.content import CommandSpec
from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import RISK_LEVELS, CommandEffect
from steersman.judges.planning.environment import CommandTarget, build_command_target, list_selected_phases
from steersman.judges.planning.payload import is_inspectable
from steersman.judges.planning.places import (
    NO_FIELD_LINES,
    FieldLines,
    FieldPath,
    document_problem,
    get_text_at,
    get_value_at,
    iter_texts_at,
)
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.schema_errors import find_schema_problems

PolicyProblemParts = tuple[FieldPath, str, str]


def find_policy_problems(
    raw: Any, registry: Registry, lines: FieldLines = NO_FIELD_LINES
) -> tuple[DocumentProblem, ...]:
    """All problems of a policy; nothing when it can be followed."""
    shallow = raw if is_inspectable(raw) else None
    problem_parts = (*_find_policy_budget_problems(shallow), *_find_void_prohibitions(shallow, registry))
    return (
        *find_schema_problems(raw, lines, "execution_policy"),
        *(document_problem(*parts, lines) for parts in problem_parts),
    )


def _find_policy_budget_problems(raw: Any) -> Iterator[PolicyProblemParts]:
    budget = get_value_at(raw, ("question_budget",))
    if get_text_at(raw, "mode") == "full_auto" and isinstance(budget, int) and budget != 0:
        yield (
            ("question_budget",),
            "is not 0, and the mode is full_auto (I2)",
            "write 0, or choose another mode",
        )


def _find_void_prohibitions(raw: Any, registry: Registry) -> Iterator[PolicyProblemParts]:
    """A forbidden operation that is neither an effect nor a command forbids nothing: a slip, and a dangerous one."""
    for path, name in iter_texts_at(raw, "constraints", "forbidden_operations"):
        if name not in get_args(CommandEffect) and registry.get("command", name) is None:
            yield (
                path,
                f"{name} is neither an effect nor a command of the registry, so it forbids nothing",
                f"effects are {', '.join(get_args(CommandEffect))}; `steersman registry list command` has the commands",
            )


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
    removal_advice = f"remove {target.id} from planned_commands"
    forbidden_operations = set(policy.constraints.forbidden_operations)
    for name in sorted(forbidden_operations & {target.id, *target.effects}):
        yield (
            f"the policy forbids {name}, and that applies to {target.id}",
            f"{removal_advice}, or change policy.constraints.forbidden_operations",
        )
    if destroys and not policy.constraints.allow_destructive:
        yield (
            f"{target.id} is destructive, and the policy does not allow that",
            f"{removal_advice}, or set policy.constraints.allow_destructive",
        )
    if RISK_LEVELS.index(target.risk) > RISK_LEVELS.index(policy.highest_risk):
        message = f"{target.id} is {target.risk}, and the policy allows nothing above {policy.highest_risk}"
        yield message, f"{removal_advice}, or raise policy.highest_risk"
