"""A change held to the scope that its plan allows.

**Invariant:** what is not named is outside. Of two names that cover a file the longer one is meant.
"""

from collections.abc import Iterable, Mapping, Sequence

from steersman.contracts.task.documents import PlanFiles
from steersman.contracts.task.words import Touch
from steersman.contracts.workspace import Touched
from steersman.judges.task.paths import normal


def outside(files: PlanFiles, touched: Sequence[Touched], *, again: bool = False) -> tuple[str, ...]:
    """Every changed path that the scope does not name, or not for a change of this kind; a rename is two changes.

    A task that has delivered before (`again`) finds what it was to create there already: that is its own.
    """
    named = {normal(one.path): one.intent for one in files.files}
    meant = ((t, _intent(named, t.path)) for t in touched)
    return tuple(
        sorted({t.path for t, intent in meant if not (_allowed(intent, t) or (again and intent == "create"))})
    )


def otherwise_planned(files: PlanFiles, touched: Sequence[Touched]) -> dict[str, str]:
    """Of the paths outside, those that the scope does name: how each was planned, and what was done to it."""
    named = {normal(one.path): one.intent for one in files.files}
    meant = ((t, _intent(named, t.path)) for t in touched)
    return {
        t.path: f"planned as {intent}, but {_done(t)}"
        for t, intent in meant
        if intent is not None and not _allowed(intent, t)
    }


def _done(change: Touched) -> str:
    return ("updated" if change.old else "created") if change.new else "deleted"


def _intent(named: Mapping[str, Touch], path: str) -> Touch | None:
    parts = path.split("/")
    folders = ["/".join(parts[:n]) + "/" for n in range(len(parts) - 1, 0, -1)]
    return next((named[name] for name in (path, *folders) if name in named), None)


def _allowed(intent: Touch | None, change: Touched) -> bool:
    was, is_ = bool(change.old), bool(change.new)
    match intent:
        case "create":
            return is_ and not was
        case "update":
            return is_ and was
        case "delete":
            return was and not is_
        case "create_or_update":
            return is_
        case _:
            return False


def untouched(files: PlanFiles, paths: Iterable[str]) -> list[str]:
    """What was planned and is not in the change: nothing was done there, or git ignores what was."""
    there = tuple(paths)
    return [one.path for one in files.files if not any(_covers(normal(one.path), path) for path in there)]


def _covers(name: str, path: str) -> bool:
    return path == name or (name.endswith("/") and path.startswith(name))
