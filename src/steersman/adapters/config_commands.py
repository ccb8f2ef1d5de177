"""What no schema says about the commands, folders and variables of `steersman.toml`.

**Invariant:** looks at the text alone; whether a folder is in the tree, and no link out of it, is asked when a
command starts.
"""

from collections.abc import Iterator
from typing import Any

from steersman.adapters.command_grammars import load_grammars
from steersman.judges.problems import Problem
from steersman.judges.summary_patterns import pattern_problem
from steersman.judges.text import clip

_OWN_VARIABLES = ("PATH", "HOME", "TMPDIR", "PYTHONDONTWRITEBYTECODE")  # steersman sets them


def command_problems(value: dict[str, Any]) -> Iterator[Problem]:
    """Empty programs, folders outside the tree, patterns that count nothing, choices that contradict each other."""
    worktree = value.get("worktree", {})
    for name, check in value.get("checks", {}).items():
        yield from _run_problems(("checks", name), check)
        if isinstance(check, dict):
            yield from _check_problems(name, check, value.get("no_tests", ()))
    for n, step in enumerate(worktree.get("setup", ())):
        yield from _run_problems(("worktree", "setup", n), step)
    for n, path in enumerate(worktree.get("writable", ())):
        if problem := folder_problem(path) or ("" if path else "is empty: name a folder or a file"):
            yield Problem(("worktree", "writable", n), problem)
    yield from _grammar_problems(value.get("commands", {}).get("grammars", {}))


def _grammar_problems(grammars: dict[str, Any]) -> Iterator[Problem]:
    """A grammar refers to one of the project's own, or to one that ships."""
    shipped = {name for given in load_grammars().values() for name in given.grammars} if grammars else set()
    for name, grammar in grammars.items():
        references = [(("like",), grammar["like"])] if "like" in grammar else []
        references += [(("runs", n), inner) for n, inner in enumerate(grammar.get("runs", ()))]
        for path, wanted in references:
            if wanted not in grammars and wanted not in shipped:
                known = "name one of [commands.grammars] or of the reference of commands"
                yield Problem(("commands", "grammars", name, *path), f"{wanted!r} is no grammar: {known}")


def _run_problems(path: tuple[str | int, ...], command: Any) -> Iterator[Problem]:
    argv = command["run"] if isinstance(command, dict) else command
    if not argv[0].strip():
        place = (*path, "run", 0) if isinstance(command, dict) else (*path, 0)
        yield Problem(place, "is empty: a program is missing")
    if isinstance(command, dict) and (problem := folder_problem(command.get("cwd", ""))):
        yield Problem((*path, "cwd"), problem)


def _check_problems(name: str, check: dict[str, Any], no_tests: list[str]) -> Iterator[Problem]:
    pattern, enough = check.get("summary", ""), check.get("exit_code_is_enough", False)
    if pattern and (problem := pattern_problem(pattern)):
        yield Problem(("checks", name, "summary"), problem)
    if pattern and enough:
        yield Problem(
            ("checks", name, "exit_code_is_enough"),
            "contradicts `summary`, which counts tests: keep one of them",
        )
    if name in no_tests and (pattern or enough):
        field = "summary" if pattern else "exit_code_is_enough"
        yield Problem(
            ("checks", name, field), "contradicts `no_tests`, which says that it runs none: keep one of them"
        )


def folder_problem(path: str) -> str:
    """Why a path is not inside the tree by its words; "" where it is."""
    parts = path.split("/")
    if path.startswith(("/", "~")):
        return "is not relative: write it from the top of the repository"
    if ".." in parts:
        return "leaves the repository: write it without `..`"
    if ".git" in (part.lower() for part in parts):
        return "is inside git's own folder"
    return ""


def env_problems(env: dict[str, str]) -> Iterator[Problem]:
    """Variables that steersman sets itself, and a pass-through without a name."""
    for name, value in env.items():
        if name in _OWN_VARIABLES or name.startswith("STEERSMAN_"):
            yield Problem(("env", name), "is set by steersman itself: leave it out")
        wanted = value.removeprefix("env:")
        if wanted != value and not wanted.isidentifier():
            yield Problem(("env", name), f"{clip(value, 40)!r} names no variable: write env:NAME")
