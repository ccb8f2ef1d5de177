"""What is wrong with a policy: its form, and a prohibition that would forbid nothing.

**Invariant:** total; a policy that cannot be understood is never taken for a mild one.
"""

from collections.abc import Iterator
from typing import Any, get_args

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.words import Effect
from steersman.judges.planning.payload import is_fathomable
from steersman.judges.planning.places import NO_LINES, Lines, Path, problem
from steersman.judges.planning.raw import at, text, texts
from steersman.judges.planning.registry import Registry
from steersman.judges.planning.shape import schema_problems

Told = tuple[Path, str, str]


def policy_problems(raw: Any, registry: Registry, lines: Lines = NO_LINES) -> tuple[Problem, ...]:
    """All problems of a policy; nothing when it can be followed."""
    shallow = raw if is_fathomable(raw) else None
    told = (*_asking(shallow), *_toothless(shallow, registry))
    return (*schema_problems(raw, lines, "execution_policy"), *(problem(*one, lines) for one in told))


def _asking(raw: Any) -> Iterator[Told]:
    budget = at(raw, ("question_budget",))
    if text(raw, "mode") == "full_auto" and isinstance(budget, int) and budget != 0:
        yield (
            ("question_budget",),
            "is not 0, and the mode is full_auto (I2)",
            "write 0, or choose another mode",
        )


def _toothless(raw: Any, registry: Registry) -> Iterator[Told]:
    """A forbidden operation that is neither an effect nor a command forbids nothing: a slip, and a dangerous one."""
    for path, name in texts(raw, "constraints", "forbidden_operations"):
        if name not in get_args(Effect) and registry.get("command", name) is None:
            yield (
                path,
                f"{name} is neither an effect nor a command of the registry, so nothing would be forbidden",
                f"effects are {', '.join(get_args(Effect))}; `steersman registry list command` has the commands",
            )
