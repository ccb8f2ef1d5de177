"""What no schema says about the commands, folders and variables of `steersman.toml`.

**Invariant:** looks at the text alone; whether a folder is in the tree, and no link out of it, is asked when a
command starts.
"""

from collections.abc import Iterator
from typing import Any

from steersman.adapters.checks.command_grammars import load_command_grammars
from steersman.judges.evidence.summary_patterns import find_summary_pattern_problem
from steersman.judges.replies.schema_problems import SchemaProblem
from steersman.judges.text import clip_text

_RESERVED_VARIABLES = ("PATH", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE")  # steersman sets them


def find_command_problems(value: dict[str, Any]) -> Iterator[SchemaProblem]:
    """Empty programs, folders outside the tree, patterns that count nothing, choices that contradict each other."""
    worktree = value.get("worktree", {})
    for name, check in value.get("checks", {}).items():
        yield from _find_run_problems(("checks", name), check)
        if isinstance(check, dict):
            yield from _find_check_problems(name, check, value.get("no_tests", ()))
    for index, step in enumerate(worktree.get("setup", ())):
        yield from _find_run_problems(("worktree", "setup", index), step)
    for index, path in enumerate(worktree.get("writable", ())):
        if problem := repository_path_problem(path) or ("" if path else "is empty: name a folder or a file"):
            yield SchemaProblem(("worktree", "writable", index), problem)
    yield from _find_grammar_problems(value.get("commands", {}).get("grammars", {}))


def _find_grammar_problems(grammars: dict[str, Any]) -> Iterator[SchemaProblem]:
    """A grammar refers to one of the project's own, or to one that ships."""
    shipped = (
        {name for grammar_set in load_command_grammars().values() for name in grammar_set.grammars}
        if grammars
        else set()
    )
    for name, grammar in grammars.items():
        references: list[tuple[tuple[str | int, ...], Any]] = []
        if "like" in grammar:
            references.append((("like",), grammar["like"]))
        references += [(("runs", index), inner) for index, inner in enumerate(grammar.get("runs", ()))]
        for path, reference in references:
            if reference not in grammars and reference not in shipped:
                known = "name one of [commands.grammars] or of the reference of commands"
                yield SchemaProblem(
                    ("commands", "grammars", name, *path), f"{reference!r} is no grammar: {known}"
                )


def _find_run_problems(path: tuple[str | int, ...], command: Any) -> Iterator[SchemaProblem]:
    argv = command["run"] if isinstance(command, dict) else command
    if not argv[0].strip():
        place = (*path, "run", 0) if isinstance(command, dict) else (*path, 0)
        yield SchemaProblem(place, "is empty: a program is missing")
    if isinstance(command, dict) and (problem := repository_path_problem(command.get("cwd", ""))):
        yield SchemaProblem((*path, "cwd"), problem)


def _find_check_problems(name: str, check: dict[str, Any], no_tests: list[str]) -> Iterator[SchemaProblem]:
    pattern, by_exit_code = check.get("summary", ""), check.get("exit_code_is_enough", False)
    if pattern and (problem := find_summary_pattern_problem(pattern)):
        yield SchemaProblem(("checks", name, "summary"), problem)
    if pattern and by_exit_code:
        yield SchemaProblem(
            ("checks", name, "exit_code_is_enough"),
            "contradicts `summary`, which counts tests: keep one of them",
        )
    if name in no_tests and (pattern or by_exit_code):
        field = "summary" if pattern else "exit_code_is_enough"
        yield SchemaProblem(
            ("checks", name, field), "contradicts `no_tests`, which says that it runs none: keep one of them"
        )


def repository_path_problem(path: str) -> str:
    """Why a path is not inside the tree by its words; "" where it is."""
    parts = path.split("/")
    if path.startswith(("/", "~")):
        return "is not relative: write it from the top of the repository"
    if ".." in parts:
        return "leaves the repository: write it without `..`"
    if ".git" in (part.lower() for part in parts):
        return "is inside git's own folder"
    return ""


def find_env_problems(env: dict[str, str]) -> Iterator[SchemaProblem]:
    """Variables that steersman sets itself, and a pass-through without a name."""
    for name, value in env.items():
        if name in _RESERVED_VARIABLES or name.startswith("STEERSMAN_"):
            yield SchemaProblem(("env", name), "is set by steersman itself: leave it out")
        variable = value.removeprefix("env:")
        if variable != value and not variable.isidentifier():
            yield SchemaProblem(("env", name), f"{clip_text(value, 40)!r} names no variable: write env:NAME")
