"""A change held to the scope that its plan allows.

**Invariant:** what is not named is outside. Of two names that cover a file the longer one is meant.
"""

from collections.abc import Iterable, Mapping, Sequence

from steersman.contracts.workspace import TouchedPath
from steersman.judges.planning.paths import is_outside_project, reserved_path_reason
from steersman.judges.text import printable_text
from steersman.machines.task.documents.schemas import PlanFiles
from steersman.machines.task.documents.words import FileIntent

# ── paths ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Names of files in the plan of a task: one spelling for each, and why one is not fit to be in a scope.
#
# **Invariant:** names only; no file is ever looked at.


def normalize_scope_path(name: str) -> str:
    """A name without what changes nothing (`./`, `//`, `**` at the end); a folder keeps its slash."""
    bare = name.removesuffix("**")
    parts = [part for part in bare.split("/") if part not in ("", ".")]
    is_directory = parts and (bare.endswith(("/", "/.")))
    return "/".join(parts) + ("/" if is_directory else "")


def find_scope_path_problem(name: str) -> str | None:
    """Why a scope may not have this name, or None."""
    if is_outside_project(name):
        return "leads out of the repository"
    plain = normalize_scope_path(name)
    if not plain:
        return "is the whole repository: name files or folders"
    if printable_text(plain) != plain or "\n" in plain or "\t" in plain:
        return "has a control or invisible character"
    if "*" in plain or "?" in plain:
        return "is a pattern: name the file, or its folder with a slash at the end"
    return reserved_path_reason(plain) or None


# ── scope ────────────────────────────────────────────────────────────────────────────────


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
