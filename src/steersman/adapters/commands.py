"""Runs checks in a working tree, in a box where there is one, and records what happened.

**Invariant:** what is executed is the approved argv, without a shell, without input and with an environment of ours;
a command that fails is a fact, not an exception. A runner is asked for its report through that environment.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal

from steersman.adapters.command_grammars import load_grammars
from steersman.adapters.file_states import list_created, read_states
from steersman.adapters.processes import Executed
from steersman.adapters.removal import delete
from steersman.adapters.reports import asked
from steersman.adapters.sandbox import OpenSandbox
from steersman.adapters.setup_layers import (
    Attached,
    attach_layer,
    find_layer,
    keep_layer,
    layer_key,
    locked_layer,
    note_setup,
    read_attached,
    restore_files,
)
from steersman.adapters.summary_patterns import count_summary
from steersman.adapters.tree_commands import NOT_FOUND, TreeCommands
from steersman.adapters.tree_paths import out_of_bounds
from steersman.adapters.tree_places import TreePlace, find_tree_place, shown_path
from steersman.contracts.commands import Argv, Command, CommandResult, Report
from steersman.contracts.grammars import Commands
from steersman.contracts.workspace import Checkout
from steersman.judges.commands import PLAIN, Blocked, CommandRules
from steersman.judges.reports import Unreadable, proven
from steersman.judges.summaries import printed_passes, printed_tests
from steersman.judges.summary_patterns import BY_PATTERN, EXIT_CODE_ONLY, judge_summary
from steersman.judges.text import printable
from steersman.ports.sandbox import Sandbox

Verdict = Literal["passed", "failed", "timeout", "no_tests"]


class LocalCommands:
    """The `Commands` port on this machine; `allow` holds the argv of the project's own checks, `grammars` its [commands].

    In a sandbox a check of a change cannot write the files that are judged (`tree_views`), and has a network only where
    `network` says so. A setup step has it anyway, because it installs. `env` are variables of `[env]`, `writable` more
    directories of the tree that checks may write.
    """

    def __init__(
        self,
        allow: tuple[Argv, ...],
        sandbox: Sandbox | None = None,
        *,
        network: bool = False,
        grammars: Commands = PLAIN,
        env: Mapping[str, str] | None = None,
        writable: tuple[str, ...] = (),
    ) -> None:
        self._rules = CommandRules(allow, grammars, load_grammars())
        self._sandbox = sandbox or OpenSandbox("none was asked for")
        self._env = dict(env or {})
        self._trees = TreeCommands(self._sandbox, network=network, env=self._env, writable=writable)

    def problem(self, command: Command) -> str | None:
        """Why this command may not run here, or None: a project check may, a proposed one has to be on the list."""
        return self._why_not(command)

    def _why_not(self, command: Command, workdir: str | None = None) -> str | None:
        """In a working tree what a proposed command touches has to stay there, links and all, and to keep no secrets."""
        if command.source == "project":
            return None
        verdict = self._rules.approve(list(command.argv))
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
            return CommandResult(
                name=name, argv=argv, source=source, verdict="blocked", reason=reason, cwd=command.cwd
            )
        counts = self._counts(command) and not command.exit_code_is_enough and not setup
        with asked(argv if counts else ()) as report:
            done = await self._trees.execute(command, workdir, effect, seconds, report, setup=setup)
            shown = shown_path(workdir, isolated=self._sandbox.isolated)
            errors = _decode(done.errors)
            found, output = report.heard(_decode(done.output), workdir, mounted=shown, errors=errors)
        printed = f"{output}\n{errors}"
        if (
            counts
            and command.summary
            and found is None
            and done.exit_code is not None
            and not (done.changed or done.excess)
        ):
            counted = await asyncio.to_thread(count_summary, command.summary, printed)
            verdict, tests, reason = judge_summary(done.exit_code, counted)
            passed = counted.passed
            reason = _died(done.exit_code) or reason or BY_PATTERN
        else:
            verdict, tests, reason = _verdict(
                argv if counts else (), done, found, printed_tests(printed) if counts else None
            )
            passed = found.ran - found.failures if isinstance(found, Report) else printed_passes(printed)
        if command.exit_code_is_enough and not setup:
            reason = reason or EXIT_CODE_ONLY
        if done.exit_code == NOT_FOUND and self._sandbox.isolated:
            reason += ", or it lies where the box shows nothing: name that place under [sandbox] reads"
        return CommandResult(
            name=name,
            argv=argv,
            source=source,
            verdict=verdict,
            exit_code=done.exit_code,
            tests=tests,
            passed=None if tests is None else passed,
            report=found if isinstance(found, Report) else None,
            asked=report.env,
            reason=reason,
            output=output,
            errors=errors,
            micros=done.micros,
            cwd=command.cwd,
            exit_code_only=command.exit_code_is_enough,
        )

    def _counts(self, command: Command) -> bool:
        """Whether it runs tests: the project says so of its checks, the grammar of what was proposed."""
        if command.source == "project":
            return command.tests
        verdict = self._rules.approve(list(command.argv))
        return not isinstance(verdict, Blocked) and verdict.proves == "tests"

    async def set_up(
        self, steps: Sequence[Command], tree: Checkout, effect: str, seconds: int
    ) -> tuple[CommandResult, ...]:
        """Runs the setup steps, or finds what they created before for the same inputs; stops at the first that fails."""
        place = find_tree_place(tree.path)
        if place is None:
            return await self._run_steps(steps, tree.path, effect, seconds)
        if not self._sandbox.isolated:
            return await self._set_up_in_place(steps, place, tree, effect, seconds)
        mounted = frozenset(
            read_attached(place).created
        )  # places for a layer, if this tree was set up before
        before = read_states(place.path, mounted)
        key = layer_key([(step.cwd, *step.argv) for step in steps], self._env, place.path, before)
        async with locked_layer(place, key):
            layer = find_layer(place, key, tree.tree)
            results: tuple[CommandResult, ...] = ()
            if layer is None:
                for name in mounted:
                    delete(place.path / name)
                note_setup(place, Attached(changed=tree.changed))
                results = await self._run_steps(steps, tree.path, effect, seconds)
                if results and results[-1].exit_code != 0:
                    return results
                after = restore_files(place, before)
                layer = keep_layer(place, key, tree.tree, before, after, shared=not tree.changed)
        attach_layer(place, layer, changed=tree.changed)
        return results

    async def _set_up_in_place(
        self, steps: Sequence[Command], place: TreePlace, tree: Checkout, effect: str, seconds: int
    ) -> tuple[CommandResult, ...]:
        before = read_states(place.path, frozenset(read_attached(place).created))
        results = await self._run_steps(steps, tree.path, effect, seconds)
        created = list_created(before, restore_files(place, before))
        note_setup(place, Attached(created=tuple(sorted(created)), changed=tree.changed))
        return results

    async def _run_steps(
        self, steps: Sequence[Command], workdir: str, effect: str, seconds: int
    ) -> tuple[CommandResult, ...]:
        results: list[CommandResult] = []
        for step in steps:
            results.append(await self.run(step, workdir, effect, seconds, setup=True))
            if results[-1].exit_code != 0:
                break
        return tuple(results)


def _decode(printed: bytes) -> str:
    return printed.decode("utf-8", "backslashreplace")


def _verdict(
    argv: Argv, done: Executed, report: Report | Unreadable | None, printed: int | None
) -> tuple[Verdict, int | None, str]:
    if done.timed_out:
        return "timeout", printed, "stopped with all it had started: its time was over"
    if done.exit_code is None:
        return "failed", None, done.reason
    if done.excess:
        return "failed", printed, f"stopped with all it had started: {done.excess}"
    if done.changed:
        return "failed", printed, f"it changed files of the tree while it ran: {_listed(done.changed)}"
    verdict, tests, reason = proven(argv, done.exit_code, report, printed)
    return verdict, tests, _died(done.exit_code) or reason


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return printable(", ".join(names[:5])) + more


def _died(code: int) -> str:
    """How a program died, where its exit tells; in a box a signal shows as an exit code above 128."""
    if code < 0:
        return f"killed by signal {-code}"
    if code == NOT_FOUND:
        return f"exit code {NOT_FOUND}: a program was not found"
    return f"exit code {code}, as after signal {code - 128}" if 128 < code < 160 else ""
