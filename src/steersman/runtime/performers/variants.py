"""Runs the checks again on variants of a change's tree: the base's tests with new code, new tests with the base's code.

A fragment for every machine that runs checks. It costs nothing where a change touches no test file.
**Invariant:** a variant's result is marked as one and never counts as evidence for the tree that would be delivered.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from steersman.contracts.commands import Command, CommandResult, Finding
from steersman.contracts.workspace import Change
from steersman.judges.evidence import weigh
from steersman.judges.variants import (
    TestFiles,
    find_test_files,
    has_new_tests,
    judge_new_tests,
    judge_old_tests,
)
from steersman.runtime.call import Call

Variant = Literal["old tests", "new tests"]
Results = list[CommandResult]


class CheckRound(Protocol):
    """Runs commands on one recorded commit, each journaled as a part of the effect."""

    def __init__(self, call: Call, commit: str = "", label: str = "") -> None: ...

    async def all(self, commands: list[Command], base: Results | None, *, again: bool = True) -> Results:
        """Runs each command, `again` where it fails, and returns its results."""
        ...


async def run_variants(
    call: Call,
    round_of: type[CheckRound],
    commands: Sequence[Command],
    results: Results,
    base: Results | None,
) -> Results:
    """Returns what the checks say on the variants, judged; nothing where there is no use in running them."""
    if base is None or not call.given("base") or _fails(call, results, base):
        return []
    workspace = call.world.workspace(call.config)
    change = await asyncio.to_thread(workspace.change, call.given("commit"), call.given("base"))
    tests = find_test_files(change.touched, base, results)
    if not tests.paths:
        return []
    runner = _VariantRunner(call, workspace, round_of, change, tests)
    judged: Results = []
    for command in commands:
        now, before = _results_of(command, results), _results_of(command, base)
        if not command.tests or not before or not any(r.tests for r in now):
            continue
        old = await runner.run("old tests", command, before)
        found = tuple(_as_wanted(f, call) for f in judge_old_tests(now, before, old, tests))
        judged += _marked("old tests", old, found, command)
        if has_new_tests(now, before):
            new = await runner.run("new tests", command, now)
            judged += _marked("new tests", new, judge_new_tests(now, before, new), command)
    return judged


def _fails(call: Call, results: Results, base: Results) -> bool:
    """Whether the change's own tree has failed already: then nothing else needs to be asked."""
    weighed = weigh(results, base, frozenset(call.config.known_failures))
    return weighed.failed + weighed.blocked + weighed.timeout + weighed.no_tests > 0 or not weighed.tests


class _VariantRunner:
    """Makes each variant once and runs commands on it."""

    def __init__(
        self, call: Call, workspace: Any, round_of: type[CheckRound], change: Change, tests: TestFiles
    ) -> None:
        self._call, self._workspace, self._round_of = call, workspace, round_of
        self._change, self._tests = change, tests
        self._rounds: dict[Variant, tuple[CheckRound, str]] = {}

    async def run(self, variant: Variant, command: Command, same: Results) -> Results:
        """Runs one command; `same` are its results where the change touches nothing but tests."""
        if len(self._tests.paths) == len(self._change.touched):
            return same
        if variant not in self._rounds:
            self._rounds[variant] = await self._composed(variant)
        round_, tree = self._rounds[variant]
        done = await round_.all([command], same, again=variant == "old tests")
        return [replace(r, tree=tree) for r in done]

    async def _composed(self, variant: Variant) -> tuple[CheckRound, str]:
        call = self._call
        ends = (call.given("commit"), call.given("base"))
        kept, other = ends if variant == "old tests" else reversed(ends)
        label = f"{variant.replace(' ', '-')}-{call.effect.split(':')[1]}"
        made = await asyncio.to_thread(
            self._workspace.compose, call.run, kept, other, self._tests.paths, label
        )
        return self._round_of(call, made.commit, variant), made.tree


def _as_wanted(finding: Finding, call: Call) -> Finding:
    """A project may say that it only wants to see rewritten tests."""
    shows = call.config.rules.changed_tests == "show" and finding.weight == "question"
    return replace(finding, weight="note") if shows else finding


def _results_of(command: Command, results: Results) -> Results:
    return [r for r in results if (r.name, r.argv) == (command.name, command.argv)]


def _marked(variant: Variant, results: Results, findings: tuple[Finding, ...], command: Command) -> Results:
    """The runs of one command on a variant; what they say together stands with the first."""
    named = [replace(r, name=f"{command.name} ({variant})", variant=variant) for r in results]
    return [replace(r, findings=findings if r is named[0] else ()) for r in named]
