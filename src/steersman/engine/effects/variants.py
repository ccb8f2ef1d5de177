"""Runs the checks again on variants of a change's tree: the base's tests with new code, new tests with the base's code.

A change that touches no test file costs nothing here.
**Invariant:** a variant's result is marked as one and never counts as evidence for the tree that would be delivered.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from steersman.contracts.commands import Command, CommandResult, VariantFinding
from steersman.contracts.workspace import Change
from steersman.engine.effect_call import EffectCall
from steersman.judges.evidence.check_results import weigh_check_results
from steersman.judges.evidence.variants import (
    ChangedTestFiles,
    find_changed_test_files,
    has_new_passing_tests,
    judge_new_tests_variant,
    judge_old_tests_variant,
)

VariantName = Literal["old tests", "new tests"]
CommandResults = list[CommandResult]


class CheckRound(Protocol):
    """Runs commands on one recorded commit, each journaled as a part of the effect."""

    def __init__(self, call: EffectCall, commit: str = "", label: str = "") -> None: ...

    async def all(
        self, commands: list[Command], base: CommandResults | None, *, again: bool = True
    ) -> CommandResults:
        """Runs each command, `again` where it fails, and returns its results."""
        ...


async def run_variants(
    call: EffectCall,
    round_of: type[CheckRound],
    commands: Sequence[Command],
    results: CommandResults,
    base: CommandResults | None,
) -> CommandResults:
    """Returns the judged results of the checks on the variants; nothing where variants could not add anything."""
    if base is None or not call.given("base") or _has_failed_already(call, results, base):
        return []
    workspace = call.world.workspace(call.config)
    change = await asyncio.to_thread(workspace.change, call.given("commit"), call.given("base"))
    tests = find_changed_test_files(change.touched, base, results)
    if not tests.paths:
        return []
    runner = _VariantRunner(call, workspace, round_of, change, tests)
    judged_results: CommandResults = []
    for command in commands:
        change_results = _results_for_command(command, results)
        base_results = _results_for_command(command, base)
        if not command.tests or not base_results or not any(r.tests for r in change_results):
            continue
        old_test_results = await runner.run("old tests", command, base_results)
        findings = tuple(
            _apply_changed_tests_rule(f, call)
            for f in judge_old_tests_variant(change_results, base_results, old_test_results, tests)
        )
        judged_results += _mark_variant_results("old tests", old_test_results, findings, command)
        if has_new_passing_tests(change_results, base_results):
            new_test_results = await runner.run("new tests", command, change_results)
            judged_results += _mark_variant_results(
                "new tests",
                new_test_results,
                judge_new_tests_variant(change_results, base_results, new_test_results),
                command,
            )
    return judged_results


def _has_failed_already(call: EffectCall, results: CommandResults, base: CommandResults) -> bool:
    """Whether the change's own tree has failed already."""
    weighed = weigh_check_results(results, base, frozenset(call.config.known_failures))
    return weighed.failed + weighed.blocked + weighed.timeout + weighed.no_tests > 0 or not weighed.tests


class _VariantRunner:
    """Makes each variant once and runs commands on it."""

    def __init__(
        self,
        call: EffectCall,
        workspace: Any,
        round_of: type[CheckRound],
        change: Change,
        tests: ChangedTestFiles,
    ) -> None:
        self._call, self._workspace, self._round_of = call, workspace, round_of
        self._change, self._tests = change, tests
        self._rounds: dict[VariantName, tuple[CheckRound, str]] = {}

    async def run(self, variant: VariantName, command: Command, same: CommandResults) -> CommandResults:
        """Runs one command; `same` are its results where the change touches nothing but tests."""
        if len(self._tests.paths) == len(self._change.touched):
            return same
        if variant not in self._rounds:
            self._rounds[variant] = await self._composed(variant)
        round_, tree = self._rounds[variant]
        variant_results = await round_.all([command], same, again=variant == "old tests")
        return [replace(r, tree=tree) for r in variant_results]

    async def _composed(self, variant: VariantName) -> tuple[CheckRound, str]:
        call = self._call
        commits = (call.given("commit"), call.given("base"))
        kept_commit, other_commit = commits if variant == "old tests" else reversed(commits)
        label = f"{variant.replace(' ', '-')}-{call.effect.split(':')[1]}"
        composed = await asyncio.to_thread(
            self._workspace.compose, call.run, kept_commit, other_commit, self._tests.paths, label
        )
        return self._round_of(call, composed.commit, variant), composed.tree


def _apply_changed_tests_rule(finding: VariantFinding, call: EffectCall) -> VariantFinding:
    """Turns a question into a note where the settings only show changed tests."""
    is_only_shown = call.config.rules.changed_tests == "show" and finding.weight == "question"
    return replace(finding, weight="note") if is_only_shown else finding


def _results_for_command(command: Command, results: CommandResults) -> CommandResults:
    return [r for r in results if (r.name, r.argv) == (command.name, command.argv)]


def _mark_variant_results(
    variant: VariantName, results: CommandResults, findings: tuple[VariantFinding, ...], command: Command
) -> CommandResults:
    """Marks the results of one command on a variant; the first one carries the findings."""
    named_results = [replace(r, name=f"{command.name} ({variant})", variant=variant) for r in results]
    return [replace(r, findings=findings if r is named_results[0] else ()) for r in named_results]
