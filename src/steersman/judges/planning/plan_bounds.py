"""The bounds of a frozen plan for the machine that executes it: which files and commands are inside.

**Invariant:** a file or command that the plan does not name is outside, and so are the files of git and steersman. Bounds
are read only from files that a known key has signed.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from steersman.contracts.planning.decisions import DocumentProblem
from steersman.contracts.planning.review import BudgetEstimate, PlanManifest, PlannedAction, ReviewPack
from steersman.contracts.planning.words import StrictDocument
from steersman.judges.planning.attest import TrustedKey, check_plan_trust
from steersman.judges.planning.freeze import MANIFEST_FILE
from steersman.judges.planning.paths import (
    WHOLE_PROJECT_TARGETS,
    covers_path,
    is_in_module,
    outside_plan_reason,
)
from steersman.judges.text import clip_text
from steersman.kernel.canonical import sha256_hex

FILE_BLANK = "FILE"  # the blank that stands for a file


class PlanBounds(StrictDocument, frozen=True, kw_only=True):
    """How far an execution may go."""

    plan_id: str
    manifest_digest: str
    files: tuple[str, ...]  # files, or directories with everything in them
    modules: tuple[str, ...]
    within: tuple[str, ...] = WHOLE_PROJECT_TARGETS  # what is outside all of these is outside the plan
    actions: tuple[PlannedAction, ...]
    phases: tuple[str, ...]
    budgets: tuple[BudgetEstimate, ...]

    @property
    def anywhere(self) -> bool:
        """Whether the plan names no files: then what it lies within and their number are the bounds."""
        return not self.files and not self.modules

    def limit(self, name: str) -> int:
        """The limit of a budget."""
        return next(budget.limit for budget in self.budgets if budget.name == name)


def read_plan_bounds(files: Mapping[str, bytes], key: TrustedKey) -> PlanBounds | tuple[DocumentProblem, ...]:
    """The bounds of a frozen plan that this key has signed, or everything by which it is none."""
    if wrong := check_plan_trust(files, key).problems:
        return wrong
    pack = msgspec.json.decode(files["review_pack.json"], type=ReviewPack)
    impact = pack.change_impact
    return PlanBounds(
        plan_id=msgspec.json.decode(files[MANIFEST_FILE], type=PlanManifest).plan_id,
        manifest_digest=sha256_hex(files[MANIFEST_FILE]),
        files=impact.files,
        modules=impact.modules,
        within=impact.within,
        actions=pack.actions,
        phases=tuple(dict.fromkeys(action.phase for action in pack.actions if action.phase)),
        budgets=impact.budgets,
    )


def find_outside_bounds(
    bounds: PlanBounds, *, files: Iterable[str] = (), argvs: Iterable[tuple[str, ...]] = (), commits: int = 0
) -> tuple[DocumentProblem, ...]:
    """Everything of this that the plan does not cover; empty when all of it is inside."""
    names = sorted(set(files))
    return (
        *(_outside_file_problem(bounds, name) for name in names if not _is_file_inside_bounds(bounds, name)),
        *_find_budget_excess(bounds, "max_files", len(names)),
        *_find_budget_excess(bounds, "max_commits", commits),
        *(
            _outside_argv_problem(bounds, argv)
            for argv in argvs
            if not any(_is_planned_argv(bounds, action, argv) for action in bounds.actions)
        ),
    )


def _is_file_inside_bounds(plan_bounds: PlanBounds, name: str) -> bool:
    if outside_plan_reason(name, plan_bounds.within):
        return False
    return (
        plan_bounds.anywhere
        or any(covers_path(target, name) for target in plan_bounds.files)
        or any(is_in_module(module, name) for module in plan_bounds.modules)
    )


def _is_planned_argv(plan_bounds: PlanBounds, action: PlannedAction, argv: tuple[str, ...]) -> bool:
    """Word for word; a blank takes one word that is no option, and the blank FILE only a file of the plan."""
    if not argv or len(argv) != len(action.argv):
        return False
    return all(
        (_can_fill_blank(plan_bounds, wanted, word) if n in action.blanks else word == wanted)
        for n, (wanted, word) in enumerate(zip(action.argv, argv, strict=True))
    )


def _can_fill_blank(plan_bounds: PlanBounds, blank: str, word: str) -> bool:
    if not word.strip() or word.startswith("-"):
        return False
    return blank != FILE_BLANK or _is_file_inside_bounds(plan_bounds, word)


def _find_budget_excess(plan_bounds: PlanBounds, budget: str, count: int) -> Iterator[DocumentProblem]:
    if count > plan_bounds.limit(budget):
        yield DocumentProblem(
            field=f"budgets.{budget}",
            message=f"{plan_bounds.plan_id} allows {plan_bounds.limit(budget)}; this would be {count}.",
            fix="Do less, or plan again with a larger budget.",
        )


def _outside_file_problem(plan_bounds: PlanBounds, name: str) -> DocumentProblem:
    return DocumentProblem(
        field="scope.targets.files",
        message=f"{clip_text(name, 400)} is outside {plan_bounds.plan_id}{_outside_reason(plan_bounds, name)}.",
        fix="Leave the file unchanged, or plan again with it among the targets.",
    )


def _outside_reason(plan_bounds: PlanBounds, name: str) -> str:
    why = outside_plan_reason(name, plan_bounds.within)
    return f": it {clip_text(why, 400)}" if why else ""


def _outside_argv_problem(plan_bounds: PlanBounds, argv: tuple[str, ...]) -> DocumentProblem:
    return DocumentProblem(
        field="planned_commands",
        message=f"{clip_text(' '.join(argv), 400)} is not a command of {plan_bounds.plan_id}.",
        fix="Use a command exactly as the plan has it, or plan again with this one.",
    )
