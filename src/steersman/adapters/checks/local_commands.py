"""Runs checks in a working tree, in a sandbox where there is one, and records what happened.

A project's `summary` pattern is matched in a process with a time limit: Python's `re` has none, and a pattern can take
exponential time on output that the code under test chose.
**Invariant:** what is executed is the approved argv, without a shell, without input and with an environment that steersman makes;
a command that fails is a fact, not an exception.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from steersman.adapters.checks.file_states import list_created_entries, read_file_states
from steersman.adapters.checks.runner_reports import request_report
from steersman.adapters.checks.setup_layers import (
    AttachedSetup,
    TreePlace,
    attach_setup_layer,
    find_setup_layer,
    find_tree_place,
    lock_setup_layer,
    read_attached_setup,
    record_attached_setup,
    restore_changed_files,
    setup_layer_key,
    store_setup_layer,
    visible_tree_path,
)
from steersman.adapters.checks.tree_commands import NOT_FOUND_EXIT_CODE, CommandCall, TreeCommands
from steersman.adapters.checks.tree_paths import find_reach_problem, load_command_grammars
from steersman.adapters.process.program_runner import ProgramResult
from steersman.adapters.sandbox.bubblewrap import OpenSandbox
from steersman.adapters.storage.durable_files import delete_path
from steersman.contracts.commands import Argv, Command, CommandResult, RunnerReport
from steersman.contracts.grammars import Commands
from steersman.contracts.workspace import Checkout
from steersman.judges.commands.tester_commands import DEFAULT_COMMANDS, BlockedCommand, CommandRules
from steersman.judges.evidence.runner_reports import UnreadableReport, judge_command_report
from steersman.judges.evidence.runners import count_printed_passes, count_printed_tests
from steersman.judges.evidence.summary_patterns import (
    COUNTED_BY_PATTERN,
    EXIT_CODE_ONLY,
    SummaryCount,
    count_summary_matches,
    judge_summary_count,
)
from steersman.judges.text import printable_text
from steersman.ports.sandbox import Sandbox

CommandVerdict = Literal["passed", "failed", "timeout", "no_tests"]
MAX_SUMMARY_CHARACTERS = 256 * 1024  # from the end of the output
MAX_SUMMARY_MATCHES = 10_000
SUMMARY_SECONDS = 5
_MATCH_PROGRAM = (
    "import itertools,json,re,sys;p,t,n=json.load(sys.stdin);t=re.sub('\\x1b\\\\[[0-9;]*m','',t);"
    "json.dump([m.groupdict() for m in itertools.islice(re.finditer(p,t,re.M),n)],sys.stdout)"
)


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
        grammars: Commands = DEFAULT_COMMANDS,
        env: Mapping[str, str] | None = None,
        writable: tuple[str, ...] = (),
    ) -> None:
        self._rules = CommandRules(allow, grammars, load_command_grammars())
        self._sandbox = sandbox or OpenSandbox("none was asked for")
        self._env = dict(env or {})
        self._trees = TreeCommands(self._sandbox, network=network, env=self._env, writable=writable)

    def find_command_problem(self, command: Command, workdir: str | None = None) -> str | None:
        """Why this command may not run here, or None: a project check may, a proposed one has to be on the list.

        In a working tree what a proposed command touches has to stay there, links and all, and to keep no secrets.
        """
        if command.source == "project":
            return None
        verdict = self._rules.approve(list(command.argv))
        if isinstance(verdict, BlockedCommand):
            return verdict.reason
        reach_problem = None if workdir is None else find_reach_problem(workdir, verdict.reach, running=True)
        return f"not on the allow-list: {reach_problem}" if reach_problem else None

    async def run(
        self, command: Command, workdir: str, effect: str, seconds: int, *, setup: bool = False
    ) -> CommandResult:
        """Returns what happened; never raises for a command that fails."""
        name, argv, source = command.name, command.argv, command.source
        if (reason := self.find_command_problem(command, workdir)) is not None:
            return CommandResult(
                name=name, argv=argv, source=source, verdict="blocked", reason=reason, cwd=command.cwd
            )
        counts_tests = self._counts_tests(command) and not command.exit_code_is_enough and not setup
        with request_report(argv if counts_tests else ()) as report_request:
            call = CommandCall(command, workdir, effect, seconds, report_request)
            execution = await self._trees.execute(call, setup=setup)
            mounted_at = visible_tree_path(workdir, isolated=self._sandbox.isolated)
            errors = _decode_output(execution.errors)
            test_report, output = report_request.read_report(
                _decode_output(execution.output), workdir, mounted=mounted_at, errors=errors
            )
        all_output = f"{output}\n{errors}"
        by_pattern = counts_tests and test_report is None and not (execution.changed or execution.excess)
        if by_pattern and command.summary and execution.exit_code is not None:
            judgement = await _judge_by_summary_pattern(command.summary, execution.exit_code, all_output)
        else:
            judgement = _judge_by_report(argv, execution, test_report, all_output, counts_tests=counts_tests)
        reason = judgement.reason
        if command.exit_code_is_enough and not setup:
            reason = reason or EXIT_CODE_ONLY
        if execution.exit_code == NOT_FOUND_EXIT_CODE and self._sandbox.isolated:
            reason += ", or it lies where the sandbox shows nothing: name that place under [sandbox] reads"
        return CommandResult(
            name=name,
            argv=argv,
            source=source,
            verdict=judgement.verdict,
            exit_code=execution.exit_code,
            tests=judgement.tests,
            passed=None if judgement.tests is None else judgement.passed,
            report=test_report if isinstance(test_report, RunnerReport) else None,
            asked=report_request.env,
            reason=reason,
            output=output,
            errors=errors,
            micros=execution.micros,
            cwd=command.cwd,
            exit_code_only=command.exit_code_is_enough,
        )

    def _counts_tests(self, command: Command) -> bool:
        """Whether it runs tests: the project says so of its checks, the grammar of what was proposed."""
        if command.source == "project":
            return command.tests
        verdict = self._rules.approve(list(command.argv))
        return not isinstance(verdict, BlockedCommand) and verdict.proves == "tests"

    async def set_up(
        self, steps: Sequence[Command], tree: Checkout, effect: str, seconds: int
    ) -> tuple[CommandResult, ...]:
        """Runs the setup steps, or finds what they created before for the same inputs; stops at the first that fails."""
        place = find_tree_place(tree.path)
        if place is None:
            return await self._run_steps(steps, tree.path, effect, seconds)
        if not self._sandbox.isolated:
            return await self._set_up_in_place(steps, place, tree, effect, seconds)
        # Places for a layer, if this tree was set up before.
        mounted = frozenset(read_attached_setup(place).created)
        before = read_file_states(place.path, mounted)
        key = setup_layer_key([(step.cwd, *step.argv) for step in steps], self._env, place.path, before)
        async with lock_setup_layer(place, key):
            layer = find_setup_layer(place, key, tree.tree)
            results: tuple[CommandResult, ...] = ()
            if layer is None:
                for name in mounted:
                    delete_path(place.path / name)
                record_attached_setup(place, AttachedSetup(changed=tree.changed))
                results = await self._run_steps(steps, tree.path, effect, seconds)
                if results and results[-1].exit_code != 0:
                    return results
                after = restore_changed_files(place, before)
                layer = store_setup_layer(place, key, tree.tree, before, after, shared=not tree.changed)
        attach_setup_layer(place, layer, changed=tree.changed)
        return results

    async def _set_up_in_place(
        self, steps: Sequence[Command], place: TreePlace, tree: Checkout, effect: str, seconds: int
    ) -> tuple[CommandResult, ...]:
        before = read_file_states(place.path, frozenset(read_attached_setup(place).created))
        results = await self._run_steps(steps, tree.path, effect, seconds)
        created = list_created_entries(before, restore_changed_files(place, before))
        record_attached_setup(place, AttachedSetup(created=tuple(sorted(created)), changed=tree.changed))
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


def _decode_output(printed: bytes) -> str:
    return printed.decode("utf-8", "backslashreplace")


class _ExecutionJudgement(NamedTuple):
    """What an execution proves: the verdict, the tests that were counted and why."""

    verdict: CommandVerdict
    tests: int | None
    passed: int | None
    reason: str


async def _judge_by_summary_pattern(pattern: str, exit_code: int, output: str) -> _ExecutionJudgement:
    """Counts the tests by the project's own pattern."""
    summary_count = await asyncio.to_thread(count_summary_tests, pattern, output)
    verdict, tests, reason = judge_summary_count(exit_code, summary_count)
    reason = _describe_abnormal_exit(exit_code) or reason or COUNTED_BY_PATTERN
    return _ExecutionJudgement(verdict, tests, summary_count.passed, reason)


def _judge_by_report(
    argv: Argv,
    execution: ProgramResult,
    report: RunnerReport | UnreadableReport | None,
    output: str,
    *,
    counts_tests: bool,
) -> _ExecutionJudgement:
    """Counts the tests by the runner's report, or else by what it printed."""
    verdict, tests, reason = _judge_execution(
        argv if counts_tests else (), execution, report, count_printed_tests(output) if counts_tests else None
    )
    passed = (
        report.ran - report.failures if isinstance(report, RunnerReport) else count_printed_passes(output)
    )
    return _ExecutionJudgement(verdict, tests, passed, reason)


def _judge_execution(
    argv: Argv,
    execution: ProgramResult,
    report: RunnerReport | UnreadableReport | None,
    printed_count: int | None,
) -> tuple[CommandVerdict, int | None, str]:
    if execution.timed_out:
        return "timeout", printed_count, "stopped with all it had started: its time was over"
    if execution.exit_code is None:
        return "failed", None, execution.reason
    if execution.excess:
        return "failed", printed_count, f"stopped with all it had started: {execution.excess}"
    if execution.changed:
        return (
            "failed",
            printed_count,
            f"it changed files of the tree while it ran: {_format_changed_names(execution.changed)}",
        )
    verdict, tests, reason = judge_command_report(argv, execution.exit_code, report, printed_count)
    return verdict, tests, _describe_abnormal_exit(execution.exit_code) or reason


def _format_changed_names(names: tuple[str, ...]) -> str:
    suffix = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return printable_text(", ".join(names[:5])) + suffix


def _describe_abnormal_exit(code: int) -> str:
    """How a program died, where its exit tells; in a sandbox a signal shows as an exit code above 128."""
    if code < 0:
        return f"killed by signal {-code}"
    if code == NOT_FOUND_EXIT_CODE:
        return f"exit code {NOT_FOUND_EXIT_CODE}: a program was not found"
    return f"exit code {code}, as after signal {code - 128}" if 128 < code < 160 else ""


def count_summary_tests(pattern: str, output: str) -> SummaryCount:
    """How many tests the pattern counts in the output, or why it counts none."""
    text = json.dumps([pattern, output[-MAX_SUMMARY_CHARACTERS:], MAX_SUMMARY_MATCHES]).encode()
    try:
        process = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MATCH_PROGRAM],
            input=text,
            capture_output=True,
            timeout=SUMMARY_SECONDS,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired:
        return SummaryCount(
            problem=f"its `summary` pattern takes longer than {SUMMARY_SECONDS} seconds: simplify it"
        )
    except OSError as error:
        return SummaryCount(problem=f"its `summary` pattern could not be matched: {error.strerror}")
    if process.returncode != 0:
        return SummaryCount(problem="its `summary` pattern could not be matched")
    return count_summary_matches(json.loads(process.stdout))
