"""What is wrong with a policy: its form, and a prohibition that would forbid nothing.

**Invariant:** total; a policy that cannot be understood is never taken for a mild one.
"""

from collections.abc import Iterator
from typing import Any, get_args

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.words import CommandEffect
from steersman.judges.planning.payload import is_inspectable
from steersman.judges.planning.places import NO_FIELD_LINES, FieldLines, FieldPath, document_problem
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.safe_get import get_text_at, get_value_at, iter_texts_at
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
                f"{name} is neither an effect nor a command of the registry, so nothing would be forbidden",
                f"effects are {', '.join(get_args(CommandEffect))}; `steersman registry list command` has the commands",
            )
