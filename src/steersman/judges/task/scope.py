"""A change held to the scope that its plan allows.

**Invariant:** what is not named is outside. Of two names that cover a file the longer one is meant.
"""

from collections.abc import Iterable, Mapping, Sequence

from steersman.contracts.task.documents import PlanFiles
from steersman.contracts.task.words import FileIntent
from steersman.contracts.workspace import TouchedPath
from steersman.judges.task.paths import normalize_scope_path


def find_paths_outside_scope(
    files: PlanFiles, touched: Sequence[TouchedPath], *, has_delivered: bool = False
) -> tuple[str, ...]:
    """Every changed path that the scope does not name, or not for a change of this kind; a rename is two changes.

    A task that has delivered before (`again`) finds what it was to create there already: that is its own.
    """
    intents = {normalize_scope_path(planned_file.path): planned_file.intent for planned_file in files.files}
    changes = ((file_change, _find_planned_intent(intents, file_change.path)) for file_change in touched)
    return tuple(
        sorted(
            {
                file_change.path
                for file_change, intent in changes
                if not (_allows_file_change(intent, file_change) or (has_delivered and intent == "create"))
            }
        )
    )


def find_planned_otherwise(files: PlanFiles, touched: Sequence[TouchedPath]) -> dict[str, str]:
    """Of the paths outside, those that the scope does name: how each was planned, and what was done to it."""
    intents = {normalize_scope_path(planned_file.path): planned_file.intent for planned_file in files.files}
    changes = ((file_change, _find_planned_intent(intents, file_change.path)) for file_change in touched)
    return {
        file_change.path: f"planned as {intent}, but {_describe_file_change(file_change)}"
        for file_change, intent in changes
        if intent is not None and not _allows_file_change(intent, file_change)
    }


def _describe_file_change(change: TouchedPath) -> str:
    return ("updated" if change.old else "created") if change.new else "deleted"


def _find_planned_intent(intents: Mapping[str, FileIntent], path: str) -> FileIntent | None:
    parts = path.split("/")
    directories = ["/".join(parts[:n]) + "/" for n in range(len(parts) - 1, 0, -1)]
    return next((intents[name] for name in (path, *directories) if name in intents), None)


def _allows_file_change(intent: FileIntent | None, change: TouchedPath) -> bool:
    existed, exists = bool(change.old), bool(change.new)
    match intent:
        case "create":
            return exists and not existed
        case "update":
            return exists and existed
        case "delete":
            return existed and not exists
        case "create_or_update":
            return exists
        case _:
            return False


def find_untouched_plan_files(files: PlanFiles, paths: Iterable[str]) -> list[str]:
    """What was planned and is not in the change: nothing was done there, or git ignores what was."""
    changed_paths = tuple(paths)
    return [
        planned_file.path
        for planned_file in files.files
        if not any(_covers_path(normalize_scope_path(planned_file.path), path) for path in changed_paths)
    ]


def _covers_path(name: str, path: str) -> bool:
    return path == name or (name.endswith("/") and path.startswith(name))
