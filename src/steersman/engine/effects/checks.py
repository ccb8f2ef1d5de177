"""Runs checks on exactly the recorded tree: the evidence, and what it is held against.

Each execution is journaled when it is over: verdict, exit code, tests, tree, and the whole record behind a payload.
**Invariant:** what is counted was run by this run on this tree; nothing an agent says is evidence.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.commands import Command, CommandResult
from steersman.contracts.config import list_check_commands
from steersman.contracts.facts import BaselineFacts, CheckFacts
from steersman.engine.effect_call import EffectCall
from steersman.engine.effects.change_context import find_code_outside_tree
from steersman.engine.effects.plan_bounds import command_outside_bounds, find_plan_bounds
from steersman.engine.effects.tree_setup import (
    SHOWN_FAILURE_LINES,
    checkout_ready_tree,
    checkout_tree,
    command_failure_text,
)
from steersman.engine.effects.variants import run_variants
from steersman.errors import WorkspaceError
from steersman.judges.evidence.base_checks import count_known_failures, judge_base_checks
from steersman.judges.evidence.baseline import find_stale_known_failures
from steersman.judges.evidence.check_results import (
    explain_unproven_results,
    note_acknowledged_checks,
    weigh_check_results,
)
from steersman.kernel.canonical import digest_of

if TYPE_CHECKING:
    from steersman.judges.planning.plan_bounds import PlanBounds


async def run_checks(call: EffectCall) -> CheckFacts:
    """Every project check and every allowed tester command on the recorded tree; finished ones are kept."""
    base, round_ = _load_recorded_results(call, "baseline"), _RecordedTreeRound(call)
    try:
        commands = list_wanted_checks(call)
        results = explain_unproven_results(await round_.all(commands, base or []), call.config.no_tests)
        results = note_acknowledged_checks(results, base, frozenset(call.config.known_failures))
        results += await run_variants(call, _RecordedTreeRound, commands, results, base)
    except WorkspaceError as error:
        return CheckFacts(error="workspace", first_ref=call.payloads.add_text(str(error)))
    return _build_check_facts(call, results, base, round_.tree)


async def run_baseline_checks(call: EffectCall) -> BaselineFacts:
    """The project's checks on the tree before any change: what fails there, and which tests there are."""
    round_ = _RecordedTreeRound(call)
    try:
        results = explain_unproven_results(
            await round_.all(_project_checks(call), None), call.config.no_tests
        )
    except WorkspaceError as error:
        return BaselineFacts(error="workspace", first_ref=call.payloads.add_text(str(error)))
    failed_results = [r for r in results if r.verdict != "passed"]
    known_failures = frozenset(call.config.known_failures)
    base_verdict = judge_base_checks(results, known_failures)
    return BaselineFacts(
        tree=round_.tree,
        checks=len({r.name for r in results}),
        failed=len({r.name for r in failed_results}),
        unstarted=len(base_verdict.unstarted),
        red=len(base_verdict.red),
        tests=sum({r.name: r.tests or 0 for r in results}.values()),
        stale=len(find_stale_known_failures(known_failures, results)),
        known=sum({r.name: count_known_failures(r, results, known_failures) for r in results}.values()),
        results_ref=call.payloads.add_text(msgspec.json.encode(results).decode()),
        first_ref=call.payloads.add_text(
            "\n\n".join(command_failure_text(call, r) for r in base_verdict.shown)
        ),
    )


async def recall_check_results(call: EffectCall) -> CheckFacts:
    """What was recorded of the current tree, once more: nothing is run, and nothing of another tree counts."""
    try:
        tree = await checkout_tree(call)
    except WorkspaceError as error:
        return CheckFacts(error="workspace", first_ref=call.payloads.add_text(str(error)))
    return _build_check_facts(
        call,
        _load_recorded_results(call, "results") or [],
        _load_recorded_results(call, "baseline"),
        tree.tree,
    )


def _project_checks(call: EffectCall) -> list[Command]:
    return list_check_commands(call.config)


def list_wanted_checks(call: EffectCall) -> list[Command]:
    """The project's own checks first; the tester only adds, and adds nothing twice."""
    project_checks = _project_checks(call)
    ref = call.given("commands")
    tester_commands = [tuple(argv) for argv in json.loads(call.payloads.get(ref))] if ref else []
    known_commands = {c.argv for c in project_checks if not c.cwd}
    return project_checks + [
        Command(f"tester {n}", argv, "tester")
        for n, argv in enumerate(dict.fromkeys(tester_commands), 1)
        if argv not in known_commands
    ]


def _load_recorded_results(call: EffectCall, name: str) -> list[CommandResult] | None:
    """Results that an earlier effect of this run has recorded; None where there are none."""
    ref = call.given(name)
    return msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else None


class _RecordedTreeRound:
    """The commands of one effect, each on exactly the recorded tree, whatever the one before has left in its own.

    With a `commit` they run on that instead; `label` keeps the parts of a variant apart.
    """

    def __init__(self, call: EffectCall, commit: str = "", label: str = "") -> None:
        self._call, self._commit, self._label = call, commit, label
        self._ready: frozenset[str] = frozenset()
        self._trees: set[str] = set()
        self._of: list[PlanBounds | None] = []  # looked for once

    async def _bounds(self) -> "PlanBounds | None":
        if not self._of:
            self._of.append(await asyncio.to_thread(find_plan_bounds, self._call))
        return self._of[0]

    @property
    def tree(self) -> str:
        """The tree that every command ran on; nothing where there is no such tree."""
        return next(iter(self._trees)) if len(self._trees) == 1 else ""

    async def all(
        self, commands: list[Command], base: list[CommandResult] | None, *, again: bool = True
    ) -> list[CommandResult]:
        """Runs each, and `again` where it failed and did not before: a second answer that differs is kept too."""
        results: list[CommandResult] = []
        failed_before = {(r.cwd, r.argv) for r in base or () if r.verdict == "failed"}
        for index, command in enumerate(commands):
            first_result = await self._part(f"{index}:{command.name}", command, base)
            results.append(first_result)
            if (
                again
                and first_result.verdict == "failed"
                and first_result.exit_code is not None
                and (command.cwd, command.argv) not in failed_before
            ):
                second_result = await self._part(f"{index}:{command.name} (again)", command, base)
                results += [second_result] if _has_different_results(first_result, second_result) else []
        return results

    async def _part(self, key: str, command: Command, base: list[CommandResult] | None) -> CommandResult:
        """One execution, journaled when it is over and never redone; without a `base` it is one of the base itself."""
        call, key = self._call, f"{key} ({self._label})" if self._label else key
        part_facts = call.item.parts.get(key)
        if part_facts is None:
            # What a repository ignores is in no record: no agent may have left something there for the checks.
            tree = await checkout_ready_tree(call, self._ready, untouched=True, commit=self._commit)
            self._ready |= {tree.path}
            result = await _run_check_command(call, command, tree.path, await self._bounds())
            result = await self._inside(result, tree.commit)
            part_facts = _result_part_facts(call, result, tree.tree)
            part_facts |= {"variant": self._label} if self._label else {}
            base_results = [result] if base is None else base
            known_count = count_known_failures(result, base_results, frozenset(call.config.known_failures))
            part_facts |= {"known": known_count, "passed": _count_passed_tests(result)} if known_count else {}
            await call.part(key, part_facts)
        self._trees.add(part_facts["tree"])
        return msgspec.json.decode(call.payloads.get(part_facts["ref"]), type=CommandResult)

    async def _inside(self, result: CommandResult, commit: str) -> CommandResult:
        """Code from outside the tree is no evidence: go and cargo take it where a manifest says so."""
        program = result.argv[0].rpartition("/")[2]
        if program not in ("go", "cargo") or result.verdict != "passed":
            return result
        workspace = self._call.world.workspace(self._call.config)
        outside_path = await asyncio.to_thread(find_code_outside_tree, workspace, commit)
        reason = f"its tests did not test this tree: {outside_path} is outside it"
        return msgspec.structs.replace(result, verdict="failed", reason=reason) if outside_path else result


def _count_passed_tests(result: CommandResult) -> int:
    return result.report.ran - result.report.failures if result.report is not None else 0


def _has_different_results(first_result: CommandResult, second_result: CommandResult) -> bool:
    names = [r.report.failed if r.report is not None else () for r in (first_result, second_result)]
    return first_result.verdict != second_result.verdict or names[0] != names[1]


async def _run_check_command(
    call: EffectCall, command: Command, path: str, bounds: "PlanBounds | None"
) -> CommandResult:
    commands = call.world.commands(call.config)
    problem = command_outside_bounds(bounds, command.argv) or commands.find_command_problem(command)
    if problem is not None:
        return CommandResult(
            name=command.name,
            argv=command.argv,
            source=command.source,
            verdict="blocked",
            reason=problem,
            cwd=command.cwd,
        )
    result: CommandResult = await commands.run(command, path, call.effect, call.config.rules.check_seconds)
    return result


def _result_part_facts(call: EffectCall, result: CommandResult, tree: str) -> dict[str, Any]:
    """A result with its outside text (argv of the tester, names of tests, output) behind the name of a payload."""
    facts: dict[str, Any] = {"verdict": result.verdict, "argv": digest_of(result.argv)[:16], "tree": tree}
    facts |= {"exit_code": result.exit_code} if result.exit_code is not None else {}
    facts |= {"tests": result.tests} if result.tests is not None else {}
    return {**facts, "ref": call.payloads.add_text(msgspec.json.encode(result).decode())}


def _build_check_facts(
    call: EffectCall, results: list[CommandResult], base: list[CommandResult] | None, tree: str
) -> CheckFacts:
    weighed = weigh_check_results(results, base, frozenset(call.config.known_failures))
    put = call.payloads.add_text
    return CheckFacts(
        tree=tree,
        passed=weighed.passed,
        failed=weighed.failed,
        blocked=weighed.blocked,
        timeout=weighed.timeout,
        no_tests=weighed.no_tests,
        known=weighed.known,
        flaky=weighed.flaky,
        tests=weighed.tests,
        missing=weighed.missing,
        doubts=weighed.doubts,
        failed_commands=tuple(digest_of(c)[:16] for c in weighed.failed_commands),
        failure_keys=tuple(digest_of(c)[:16] for c in weighed.failure_keys),
        results_ref=put(msgspec.json.encode(results).decode()),
        first_ref=put(command_failure_text(call, weighed.first, SHOWN_FAILURE_LINES))
        if weighed.first
        else "",
        questions_ref=put("\n".join(weighed.questions)),
    )
