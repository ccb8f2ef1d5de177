"""Explains why a run stopped on its base tree before any agent was called, with the exact commands that help.

**Invariant:** `failed_check.py` renders which checks failed, not this module.
"""

import shlex

import msgspec

from steersman.contracts.machine_names import DEFAULT_MACHINE

BASE_NOT_GREEN = "base_not_green"
CHECK_CANNOT_START = "check_cannot_start"
BASE_PROBLEMS = (BASE_NOT_GREEN, CHECK_CANNOT_START)
_NOTHING_SPENT = "No agent was called, nothing was spent."
_BASE_STOP_REASONS = {
    BASE_NOT_GREEN: f"Checks fail on the base tree. {_NOTHING_SPENT}",
    CHECK_CANNOT_START: f"A check cannot start on the base tree. {_NOTHING_SPENT}",
}


class Remedy(msgspec.Struct, frozen=True):
    """One way to continue: what it does, and the command to type."""

    meaning: str
    command: str


def base_stop_reason(problem: str) -> str:
    """Returns why the run stopped, in plain words."""
    return _BASE_STOP_REASONS[problem]


def base_stop_remedies(
    problem: str, run: str, machine: str, title: str, command_prefix: str, *, untested: bool = False
) -> list[Remedy]:
    """Returns the commands that fix or acknowledge what stopped a run.

    `untested` means that a failing check ran no test: something that it needs may not be installed.
    """
    begin = start_again_command(machine, title, command_prefix)
    if problem == CHECK_CANNOT_START:
        return [
            Remedy("correct [checks] or [worktree] setup in steersman.toml, and prove it", f"{command_prefix} init --check"),
            Remedy("then start again", begin),
        ]  # fmt: skip
    install = "if something is not installed: name what installs it under [worktree] setup, and prove it"
    return [
        *([Remedy(install, f"{command_prefix} init --check")] if untested else []),
        Remedy("acknowledge these failures by name, then start again", f"{command_prefix} acknowledge {run}"),
        Remedy("or start a run that has to make them pass", f"{begin} --fix-base"),
    ]


def start_again_command(machine: str, title: str, command_prefix: str) -> str:
    """Returns the command that starts a new run with the same task."""
    return " ".join(
        (
            command_prefix,
            "run",
            _quote_title(title),
            *(() if machine == DEFAULT_MACHINE else ("--as", machine)),
        )
    )


def remedy_lines(remedies: list[Remedy]) -> list[str]:
    """Renders remedies: what each does, and below it the command."""
    return [line for r in remedies for line in (f"{r.meaning}:", f"  {r.command}")]


def _quote_title(title: str) -> str:
    return '"the same task"' if title.endswith("…") else shlex.quote(title)
