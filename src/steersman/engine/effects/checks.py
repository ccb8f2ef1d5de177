"""Runs the project's checks on exactly the recorded tree and compares them with the base tree: the run's evidence.

Each execution is journaled when it ends: verdict, exit code, tests, tree, and the whole result as a payload.
**Invariant:** only checks that this run ran on this tree count; an agent's words are never evidence.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from steersman.contracts.commands import Command, CommandResult
from steersman.contracts.config import list_check_commands, list_setup_commands
from steersman.contracts.facts import BaselineFacts, CheckFacts, SetupFacts
from steersman.contracts.workspace import Checkout
from steersman.engine.effects import EffectCall
from steersman.engine.effects.change_context import (
    command_outside_bounds,
    find_code_outside_tree,
    find_plan_bounds,
    run_variants,
)
from steersman.errors import WorkspaceError
from steersman.judges.evidence.baseline import (
    count_known_failures,
    find_stale_known_failures,
    judge_base_checks,
)
from steersman.judges.evidence.check_results import (
    explain_unproven_results,
    note_acknowledged_checks,
    weigh_check_results,
)
from steersman.kernel.canonical import digest_of
from steersman.views.failed_check import TAIL_LINES, failed_check_lines

if TYPE_CHECKING:
    from steersman.judges.planning.plan_bounds import PlanBounds


# ── tree setup ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# Checks working trees out and runs the project's setup in them.


SHOWN_FAILURE_LINES = 40  # of each stream of a failing check, for the next round's prompt


async def prepare_tree(call: EffectCall) -> SetupFacts:
    """Checks the recorded commit out and runs the project's setup commands in it."""
    try:
        tree = await checkout_tree(call)
    except WorkspaceError as error:
        return SetupFacts(detail_ref=call.payloads.add_text(str(error)))
    steps, result = await set_up_tree(call, tree)
    if result is not None:
        return SetupFacts(steps=steps, detail_ref=call.payloads.add_text(command_failure_text(call, result)))
    return SetupFacts(ready=True, tree=tree.tree, commit=tree.commit, steps=steps)


async def checkout_tree(call: EffectCall, *, untouched: bool = False, commit: str = "") -> Checkout:
    """Checks out the recorded commit, or `commit`; no other effect has used an `untouched` tree."""
    tree_commit = commit or call.given("commit")
    workspace, checkout_arguments = call.world.workspace(call.config), (call.run, tree_commit, call.effect)
    tree: Checkout = await asyncio.to_thread(workspace.checkout, *checkout_arguments, untouched=untouched)
    return tree


async def checkout_ready_tree(
    call: EffectCall, ready_paths: frozenset[str] = frozenset(), *, untouched: bool = False, commit: str = ""
) -> Checkout:
    """Checks a tree out and runs setup where the tree is fresh; `ready_paths` this effect has set up already."""
    tree = await checkout_tree(call, untouched=untouched, commit=commit)
    if tree.fresh and tree.path not in ready_paths:
        _, failed_result = await set_up_tree(call, tree)
        if failed_result is not None:
            raise WorkspaceError(
                f"setup failed in a fresh working tree: {command_failure_text(call, failed_result)}"
            )
    return tree


async def set_up_tree(call: EffectCall, tree: Checkout) -> tuple[int, CommandResult | None]:
    """Runs the project's setup in a tree; returns how many steps ran, and the one that failed."""
    commands, steps = call.world.commands(call.config), list_setup_commands(call.config)
    results = await commands.set_up(steps, tree, call.effect, call.config.rules.check_seconds)
    failed_result = next((result for result in results if result.exit_code != 0), None)
    return len(results), failed_result


def command_failure_text(call: EffectCall, result: CommandResult, tail: int = TAIL_LINES) -> str:
    """Renders a failed command with the last `tail` lines of each stream; redacts before it clips."""
    redact = call.payloads.redact_secrets
    redacted_result = replace(
        result, output=redact(result.output), errors=redact(result.errors), reason=redact(result.reason)
    )
    return "\n".join(failed_check_lines(redacted_result, tail))


# ── checks ────────────────────────────────────────────────────────────────────────────────


async def run_checks(call: EffectCall) -> CheckFacts:
    """Runs every project check and allowed tester command on the recorded tree; finished ones are not run again."""
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
    """Runs the project's checks on the base tree and records what fails there and which tests exist."""
    round_ = _RecordedTreeRound(call)
    try:
        results = explain_unproven_results(
            await round_.all(list_check_commands(call.config), None), call.config.no_tests
        )
    except WorkspaceError as error:
        return BaselineFacts(error="workspace", first_ref=call.payloads.add_text(str(error)))
    failed_results = [r for r in results if r.verdict != "passed"]
    known_failures = frozenset(call.config.known_failures)
    verdict = judge_base_checks(results, known_failures)
    return BaselineFacts(
        tree=round_.tree,
        checks=len({r.name for r in results}),
        failed=len({r.name for r in failed_results}),
        unstarted=len(verdict.unstarted),
        red=len(verdict.red),
        tests=sum({r.name: r.tests or 0 for r in results}.values()),
        stale=len(find_stale_known_failures(known_failures, results)),
        known=sum({r.name: count_known_failures(r, results, known_failures) for r in results}.values()),
        results_ref=call.payloads.add_text(msgspec.json.encode(results).decode()),
        first_ref=call.payloads.add_text("\n\n".join(command_failure_text(call, r) for r in verdict.shown)),
    )


async def recall_check_results(call: EffectCall) -> CheckFacts:
    """Builds the facts again from results that were recorded for the current tree; runs nothing."""
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


def list_wanted_checks(call: EffectCall) -> list[Command]:
    """Returns the project's checks, then the tester's commands that are not among them."""
    project_checks = list_check_commands(call.config)
    ref = call.given("commands")
    tester_commands = [tuple(argv) for argv in json.loads(call.payloads.get(ref))] if ref else []
    known_commands = {c.argv for c in project_checks if not c.cwd}
    return project_checks + [
        Command(f"tester {n}", argv, "tester")
        for n, argv in enumerate(dict.fromkeys(tester_commands), 1)
        if argv not in known_commands
    ]


def _load_recorded_results(call: EffectCall, name: str) -> list[CommandResult] | None:
    """Returns the results that an earlier effect of this run recorded; None where there are none."""
    ref = call.given(name)
    return msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else None


class _RecordedTreeRound:
    """Runs the commands of one effect, each on a fresh copy of exactly the recorded tree, or of `commit`.

    `label` keeps the parts of a variant apart.
    """

    def __init__(self, call: EffectCall, commit: str = "", label: str = "") -> None:
        self._call, self._commit, self._label = call, commit, label
        self._ready: frozenset[str] = frozenset()
        self._trees: set[str] = set()
        self._of: list[PlanBounds | None] = []  # read once

    async def _bounds(self) -> "PlanBounds | None":
        if not self._of:
            self._of.append(await asyncio.to_thread(find_plan_bounds, self._call))
        return self._of[0]

    @property
    def tree(self) -> str:
        """The tree that every command ran on; empty where they ran on several."""
        return next(iter(self._trees)) if len(self._trees) == 1 else ""

    async def all(
        self, commands: list[Command], base: list[CommandResult] | None, *, again: bool = True
    ) -> list[CommandResult]:
        """Runs each command; `again` runs one twice that fails here and not on the base, and keeps a second, other result."""
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
        """Runs one command and journals its result; without `base` the run is on the base tree itself."""
        call, key = self._call, f"{key} ({self._label})" if self._label else key
        part_facts = call.item.parts.get(key)
        if part_facts is None:
            # Ignored files are in no commit, so checks get a tree in which no agent has worked.
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
        """Fails a passed check of go or cargo whose manifest takes code from outside the tree."""
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
    """Returns a result's facts for the tape; outside text (argv, test names, output) goes into a payload."""
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
