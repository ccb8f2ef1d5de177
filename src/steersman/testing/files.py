"""Artifacts and checks without a disk or a program.

**Invariant:** what a test did not put in does not come out: an unknown command is refused, never passed.
"""

from collections.abc import Callable, Mapping

from steersman.contracts.commands import Argv, Command, CommandResult


class MemoryArtifacts:
    """Implements ports.artifacts.Artifacts; `files` is keyed by run and name."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], bytes] = {}

    def write(self, run: str, name: str, data: bytes) -> None:
        self.files[run, name] = data

    def folder(self, run: str) -> str:
        return f"/memory/{run}"


class ScriptedCommands:
    """Implements ports.commands.Commands: `judge` looks at the working tree and says what the command gives.

    A command that is neither the project's nor in `allow` is blocked, as on a real machine.
    """

    def __init__(self, judge: Callable[[Command, str], CommandResult], allow: tuple[Argv, ...] = ()) -> None:
        self._judge, self._allow = judge, allow
        self.ran: list[tuple[str, Argv]] = []  # effect and argv, in order

    def problem(self, command: Command) -> str | None:
        if command.source == "project" or command.argv in self._allow:
            return None
        return f"{command.argv[0]} is not on the list"

    async def run(
        self,
        command: Command,
        workdir: str,
        effect: str,
        seconds: int,  # noqa: ARG002  nothing here takes time
        *,
        setup: bool = False,  # noqa: ARG002  there is no network to have
    ) -> CommandResult:
        self.ran.append((effect, command.argv))
        return self._judge(command, workdir)


def passes(tests: int = 1) -> Callable[[Command, str], CommandResult]:
    """A judge by which every command passes with so many tests."""
    return lambda c, _: result(c, tests=tests)


def verdicts(by_name: Mapping[str, int]) -> Callable[[Command, str], CommandResult]:
    """A judge by which a command ends with the exit code given for its name; one without is not found."""
    return lambda c, _: result(c, by_name.get(c.name, 127))


def result(command: Command, exit_code: int = 0, *, tests: int = 1, output: str = "") -> CommandResult:
    """What running a command gave."""
    return CommandResult(
        name=command.name,
        argv=command.argv,
        source=command.source,
        verdict="passed" if exit_code == 0 and tests else "no_tests" if exit_code == 0 else "failed",
        exit_code=exit_code,
        tests=tests,
        output=output,
    )
