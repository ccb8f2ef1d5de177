"""Runs checks in a working tree, in a box where there is one, and records what happened.

**Invariant:** what is executed is the approved argv, without a shell, without input and with an environment of ours;
a command that fails is a fact, not an exception. A runner is asked for its report through that environment.
"""

import os
from typing import Literal

from steersman.adapters.git_cli import quiet
from steersman.adapters.processes import Executed, execute
from steersman.adapters.reports import Asked, asked
from steersman.adapters.sandbox import OpenSandbox
from steersman.adapters.tree_paths import out_of_bounds
from steersman.contracts.commands import Argv, Command, CommandResult, Report
from steersman.contracts.grammars import Commands
from steersman.judges.commands import PLAIN, Blocked, approve
from steersman.judges.reports import Unreadable, proven
from steersman.judges.summaries import printed_tests
from steersman.ports.sandbox import Box, Sandbox

Verdict = Literal["passed", "failed", "timeout", "no_tests"]
NOT_FOUND = 127  # of a shell, and of the first program in a box
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class LocalCommands:
    """The `Commands` port on this machine; `allow` holds the argv of the project's own checks, `grammars` its [commands].

    In a box a command can write its working tree, a /tmp and a home that are gone afterwards, and has a network only
    where `network` says so. A setup step has it anyway, because it installs, and keeps its home.
    """

    def __init__(
        self,
        allow: tuple[Argv, ...],
        sandbox: Sandbox | None = None,
        *,
        network: bool = False,
        grammars: Commands = PLAIN,
    ) -> None:
        self._allow, self._network, self._grammars = allow, network, grammars
        self._sandbox = sandbox or OpenSandbox("none was asked for")

    def problem(self, command: Command) -> str | None:
        """Why this command may not run here, or None: a project check may, a proposed one has to be on the list."""
        return self._why_not(command)

    def _why_not(self, command: Command, workdir: str | None = None) -> str | None:
        """In a working tree what a proposed command touches has to stay there, links and all, and to keep no secrets."""
        if command.source == "project":
            return None
        verdict = approve(list(command.argv), self._allow, self._grammars)
        if isinstance(verdict, Blocked):
            return verdict.reason
        found = None if workdir is None else out_of_bounds(workdir, verdict.reach, running=True)
        return f"not on the allow-list: {found}" if found else None

    async def run(
        self, command: Command, workdir: str, effect: str, seconds: int, *, setup: bool = False
    ) -> CommandResult:
        """Returns what happened; never raises for a command that fails."""
        name, argv, source = command.name, command.argv, command.source
        if (reason := self._why_not(command, workdir)) is not None:
            return CommandResult(name=name, argv=argv, source=source, verdict="blocked", reason=reason)
        counts = self._counts(command)
        with asked(argv if counts else ()) as report:
            done = await self._executed(command, workdir, effect, seconds, report, setup=setup)
            found, output = report.heard(_decode(done.output), workdir)
        errors = _decode(done.errors)
        verdict, tests, reason = _verdict(
            argv if counts else (), done, found, printed_tests(f"{output}\n{errors}") if counts else None
        )
        if done.exit_code == NOT_FOUND and self._sandbox.isolated:
            reason += ", or it lies where the box shows nothing: name that place under [sandbox] reads"
        return CommandResult(
            name=name,
            argv=argv,
            source=source,
            verdict=verdict,
            exit_code=done.exit_code,
            tests=tests,
            report=found if isinstance(found, Report) else None,
            asked=report.env,
            reason=reason,
            output=output,
            errors=errors,
            micros=done.micros,
        )

    def _counts(self, command: Command) -> bool:
        """Whether it runs tests: the project says so of its checks, the grammar of what was proposed."""
        if command.source == "project":
            return command.tests
        verdict = approve(list(command.argv), self._allow, self._grammars)
        return not isinstance(verdict, Blocked) and verdict.proves == "tests"

    async def _executed(
        self, command: Command, workdir: str, effect: str, seconds: int, report: Asked, *, setup: bool
    ) -> Executed:
        argv = command.argv
        env = {**_environment(), **report.env}
        if not self._sandbox.isolated:
            if command.source == "tester" and argv[0] == "git":  # in a box git finds a configuration of ours
                env |= quiet()
            return await execute(argv, workdir, env, seconds, effect, cap=report.cap, errors_apart=True)
        try:
            box, home = self._box(workdir, report, setup=setup)
            async with self._sandbox.wrap(argv, box, env | home, workdir) as boxed:
                return await execute(
                    boxed.argv,
                    workdir,
                    boxed.env,
                    seconds,
                    effect,
                    cap=report.cap,
                    errors_apart=True,
                    doors=boxed.doors,
                )
        except (OSError, ValueError) as error:
            return Executed(None, b"", timed_out=False, micros=0, reason=f"cannot start {argv[0]}: {error}")

    def _box(self, workdir: str, report: Asked, *, setup: bool) -> tuple[Box, dict[str, str]]:
        """What a command may touch; a home that a setup step has filled is beside the tree, and removed with it."""
        home = f"{workdir}.home"
        if not os.path.isdir(workdir):
            raise ValueError(f"the working directory {workdir} is gone")
        if setup:
            os.makedirs(home, mode=0o700, exist_ok=True)
        kept = os.path.isdir(home)
        network = None if setup or self._network else ()
        box = Box(
            writes=(workdir, *((home,) if setup else ())),
            reads=(report.folder,) if report.folder else (),
            network=network,
            home=home if kept and not setup else "",
        )
        return box, {"HOME": home} if kept else {}


def _decode(printed: bytes) -> str:
    return printed.decode("utf-8", "backslashreplace")


def _environment() -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # A relative entry would let the tree stand in for a program.
    passed_on["PATH"] = ":".join(p for p in passed_on.get("PATH", os.defpath).split(":") if p.startswith("/"))
    # Bytecode written into the tree would be part of the next recorded change.
    return {**passed_on, "PYTHONDONTWRITEBYTECODE": "1"}


def _verdict(
    argv: Argv, done: Executed, report: Report | Unreadable | None, printed: int | None
) -> tuple[Verdict, int | None, str]:
    if done.timed_out:
        return "timeout", printed, "stopped with all it had started: its time was over"
    if done.exit_code is None:
        return "failed", None, done.reason
    verdict, tests, reason = proven(argv, done.exit_code, report, printed)
    return verdict, tests, _died(done.exit_code) or reason


def _died(code: int) -> str:
    """How a program died, where its exit tells; in a box a signal shows as an exit code above 128."""
    if code < 0:
        return f"killed by signal {-code}"
    if code == NOT_FOUND:
        return f"exit code {NOT_FOUND}: a program was not found"
    return f"exit code {code}, as after signal {code - 128}" if 128 < code < 160 else ""
