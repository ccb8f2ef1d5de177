"""The contract of a frozen plan with whoever carries it out: which files and commands are inside it.

**Invariant:** what a plan does not name is outside, and so is what is git's or steersman's; bounds are read from files that a known key has signed, or not at all.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from steersman.contracts.planning.decisions import Problem
from steersman.contracts.planning.review import Budget, Manifest, PlannedAction, ReviewPack
from steersman.contracts.planning.words import Document
from steersman.judges.planning.paths import ANYWHERE, covers, in_module, why_outside
from steersman.judges.text import clip
from steersman.kernel.canonical import digest
from steersman.machines.coordinator.freeze import MANIFEST
from steersman.machines.coordinator.trust import Key, trusted

FILE = "FILE"  # the blank that stands for a file


class Bounds(Document, frozen=True, kw_only=True):
    """How far an execution may go."""

    plan_id: str
    manifest_digest: str
    files: tuple[str, ...]  # files, or directories with everything in them
    modules: tuple[str, ...]
    within: tuple[str, ...] = ANYWHERE  # what is outside all of these is outside the plan
    actions: tuple[PlannedAction, ...]
    phases: tuple[str, ...]
    budgets: tuple[Budget, ...]

    @property
    def anywhere(self) -> bool:
        """Whether the plan names no files: then what it lies within and their number are the bounds."""
        return not self.files and not self.modules

    def limit(self, name: str) -> int:
        """The limit of a budget."""
        return next(budget.limit for budget in self.budgets if budget.name == name)


def bounds(files: Mapping[str, bytes], key: Key) -> Bounds | tuple[Problem, ...]:
    """The bounds of a frozen plan that this key has signed, or everything by which it is none."""
    if wrong := trusted(files, key).problems:
        return wrong
    pack = msgspec.json.decode(files["review_pack.json"], type=ReviewPack)
    impact = pack.change_impact
    return Bounds(
        plan_id=msgspec.json.decode(files[MANIFEST], type=Manifest).plan_id,
        manifest_digest=digest(files[MANIFEST]),
        files=impact.files,
        modules=impact.modules,
        within=impact.within,
        actions=pack.actions,
        phases=tuple(dict.fromkeys(action.phase for action in pack.actions if action.phase)),
        budgets=impact.budgets,
    )


def outside(
    of: Bounds, *, files: Iterable[str] = (), argvs: Iterable[tuple[str, ...]] = (), commits: int = 0
) -> tuple[Problem, ...]:
    """Everything of this that the plan does not cover; empty when all of it is inside."""
    named = sorted(set(files))
    return (
        *(_file(of, name) for name in named if not _inside(of, name)),
        *_number(of, "max_files", len(named)),
        *_number(of, "max_commits", commits),
        *(_argv(of, argv) for argv in argvs if not any(_fits(of, action, argv) for action in of.actions)),
    )


def _inside(of: Bounds, name: str) -> bool:
    if why_outside(name, of.within):
        return False
    return (
        of.anywhere
        or any(covers(target, name) for target in of.files)
        or any(in_module(module, name) for module in of.modules)
    )


def _fits(of: Bounds, action: PlannedAction, argv: tuple[str, ...]) -> bool:
    """Word for word; a blank takes one word that is no option, and the blank FILE only a file of the plan."""
    if not argv or len(argv) != len(action.argv):
        return False
    return all(
        (_fills(of, wanted, word) if n in action.blanks else word == wanted)
        for n, (wanted, word) in enumerate(zip(action.argv, argv, strict=True))
    )


def _fills(of: Bounds, blank: str, word: str) -> bool:
    if not word.strip() or word.startswith("-"):
        return False
    return blank != FILE or _inside(of, word)


def _number(of: Bounds, budget: str, found: int) -> Iterator[Problem]:
    if found > of.limit(budget):
        yield Problem(
            field=f"budgets.{budget}",
            message=f"{of.plan_id} allows {of.limit(budget)}; this would be {found}.",
            fix="Do less, or plan again with a larger budget.",
        )


def _file(of: Bounds, name: str) -> Problem:
    return Problem(
        field="scope.targets.files",
        message=f"{clip(name, 400)} is outside {of.plan_id}{_because(of, name)}.",
        fix="Leave it alone, or plan again with it among the targets.",
    )


def _because(of: Bounds, name: str) -> str:
    why = why_outside(name, of.within)
    return f": it {clip(why, 400)}" if why else ""


def _argv(of: Bounds, argv: tuple[str, ...]) -> Problem:
    return Problem(
        field="planned_commands",
        message=f"{clip(' '.join(argv), 400)} is no command of {of.plan_id}.",
        fix="Use a command of the plan as it stands there, or plan again with this one.",
    )
