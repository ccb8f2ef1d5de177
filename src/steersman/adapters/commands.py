"""Runs checks in a working tree and records what happened.

**Invariant:** what is executed is the approved argv, without a shell, without input and with an environment of ours;
a command that fails is a fact, not an exception.
"""

import os
from typing import Literal

from steersman.adapters.processes import Executed, execute
from steersman.contracts.commands import Argv, Command, CommandResult
from steersman.judges.commands import command_problem, outcome, tests_counted

Verdict = Literal["passed", "failed", "timeout", "no_tests"]
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class LocalCommands:
    """The `Commands` port on this machine; `allow` holds the argv of the project's own checks."""

    def __init__(self, allow: tuple[Argv, ...]) -> None:
        self._allow = allow

    def problem(self, command: Command) -> str | None:
        """Why this command may not run here, or None: a project check may, a proposed one has to be on the list."""
        if command.source == "project":
            return None
        return command_problem(command.argv, self._allow)

    async def run(self, command: Command, workdir: str, effect: str, seconds: int) -> CommandResult:
        """Returns what happened; never raises for a command that fails."""
        name, argv, source = command.name, command.argv, command.source
        if (reason := self.problem(command)) is not None:
            return CommandResult(name=name, argv=argv, source=source, verdict="blocked", reason=reason)
        done = await execute(argv, workdir, _environment(), seconds, effect)
        output = done.output.decode("utf-8", "backslashreplace")
        tests = tests_counted(output)
        verdict, reason = _verdict(argv, done, tests)
        return CommandResult(
            name=name,
            argv=argv,
            source=source,
            verdict=verdict,
            exit_code=done.exit_code,
            tests=tests,
            reason=reason,
            output=output,
            micros=done.micros,
        )


def _environment() -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # Bytecode written into the tree would be part of the next recorded change.
    return {**passed_on, "PYTHONDONTWRITEBYTECODE": "1"}


def _verdict(argv: Argv, done: Executed, tests: int | None) -> tuple[Verdict, str]:
    if done.timed_out:
        return "timeout", "stopped with all it had started: its time was over"
    if done.exit_code is None:
        return "failed", done.reason
    return outcome(
        argv, done.exit_code, tests
    ), f"killed by signal {-done.exit_code}" if done.exit_code < 0 else ""
