"""Runs checks on exactly the recorded tree: the evidence, and what it is held against.

Each execution is journaled when it is over: verdict, exit code, tests, tree, and the whole record behind a payload.
**Invariant:** what is counted was run by this run on this tree; nothing an agent says is evidence.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.contracts.commands import Command, CommandResult
from steersman.contracts.config import check_commands
from steersman.contracts.facts import BaselineFacts, CheckFacts
from steersman.errors import WorkspaceError
from steersman.judges.base_checks import count_known, judge_base
from steersman.judges.baseline import stale
from steersman.judges.evidence import note_acknowledged, told, weigh
from steersman.kernel.canonical import digest_of
from steersman.runtime.call import Call
from steersman.runtime.performers.bounds import argv_beyond, bounds_of
from steersman.runtime.performers.scene import code_outside
from steersman.runtime.performers.tree import SHOWN, failure_text, ready_tree, tree_at
from steersman.runtime.performers.variants import run_variants

if TYPE_CHECKING:
    from steersman.machines.coordinator.bounds import Bounds


async def check(call: Call) -> CheckFacts:
    """Every project check and every allowed tester command on the recorded tree; finished ones are kept."""
    base, round_ = _recorded(call, "baseline"), _Round(call)
    try:
        commands = wanted(call)
        results = told(await round_.all(commands, base or []), call.config.no_tests)
        results = note_acknowledged(results, base, frozenset(call.config.known_failures))
        results += await run_variants(call, _Round, commands, results, base)
    except WorkspaceError as error:
        return CheckFacts(error="workspace", first_ref=call.payloads.put(str(error)))
    return _facts(call, results, base, round_.tree)


async def baseline(call: Call) -> BaselineFacts:
    """The project's checks on the tree before any change: what fails there, and which tests there are."""
    round_ = _Round(call)
    try:
        results = told(await round_.all(_own(call), None), call.config.no_tests)
    except WorkspaceError as error:
        return BaselineFacts(error="workspace", first_ref=call.payloads.put(str(error)))
    bad = [r for r in results if r.verdict != "passed"]
    known = frozenset(call.config.known_failures)
    base = judge_base(results, known)
    return BaselineFacts(
        tree=round_.tree,
        checks=len({r.name for r in results}),
        failed=len({r.name for r in bad}),
        unstarted=len(base.unstarted),
        red=len(base.red),
        tests=sum({r.name: r.tests or 0 for r in results}.values()),
        stale=len(stale(known, results)),
        known=sum({r.name: count_known(r, results, known) for r in results}.values()),
        results_ref=call.payloads.put(msgspec.json.encode(results).decode()),
        first_ref=call.payloads.put("\n\n".join(failure_text(call, r) for r in base.shown)),
    )


async def recall(call: Call) -> CheckFacts:
    """What was recorded of the current tree, once more: nothing is run, and nothing of another tree counts."""
    try:
        tree = await tree_at(call)
    except WorkspaceError as error:
        return CheckFacts(error="workspace", first_ref=call.payloads.put(str(error)))
    return _facts(call, _recorded(call, "results") or [], _recorded(call, "baseline"), tree.tree)


def _own(call: Call) -> list[Command]:
    return check_commands(call.config)


def wanted(call: Call) -> list[Command]:
    """The project's own checks first; the tester only adds, and adds nothing twice."""
    own = _own(call)
    ref = call.given("commands")
    added = [tuple(argv) for argv in json.loads(call.payloads.get(ref))] if ref else []
    known = {c.argv for c in own if not c.cwd}
    return own + [
        Command(f"tester {n}", argv, "tester")
        for n, argv in enumerate(dict.fromkeys(added), 1)
        if argv not in known
    ]


def _recorded(call: Call, name: str) -> list[CommandResult] | None:
    """Results that an earlier effect of this run has recorded; None where there are none."""
    ref = call.given(name)
    return msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else None


class _Round:
    """The commands of one effect, each on exactly the recorded tree, whatever the one before has left in its own.

    With a `commit` they run on that instead; `label` keeps the parts of a variant apart.
    """

    def __init__(self, call: Call, commit: str = "", label: str = "") -> None:
        self._call, self._commit, self._label = call, commit, label
        self._ready: frozenset[str] = frozenset()
        self._trees: set[str] = set()
        self._of: list[Bounds | None] = []  # looked for once

    async def _bounds(self) -> "Bounds | None":
        if not self._of:
            self._of.append(await asyncio.to_thread(bounds_of, self._call))
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
        for n, command in enumerate(commands):
            first = await self._part(f"{n}:{command.name}", command, base)
            results.append(first)
            if (
                again
                and first.verdict == "failed"
                and first.exit_code is not None
                and (command.cwd, command.argv) not in failed_before
            ):
                second = await self._part(f"{n}:{command.name} (again)", command, base)
                results += [second] if _differ(first, second) else []
        return results

    async def _part(self, key: str, command: Command, base: list[CommandResult] | None) -> CommandResult:
        """One execution, journaled when it is over and never redone; without a `base` it is one of the base itself."""
        call, key = self._call, f"{key} ({self._label})" if self._label else key
        done = call.item.parts.get(key)
        if done is None:
            # What a repository ignores is in no record: no agent may have left something there for the checks.
            tree = await ready_tree(call, self._ready, untouched=True, commit=self._commit)
            self._ready |= {tree.path}
            result = await _run(call, command, tree.path, await self._bounds())
            result = await self._inside(result, tree.commit)
            done = _plain(call, result, tree.tree)
            done |= {"variant": self._label} if self._label else {}
            before = [result] if base is None else base
            known = count_known(result, before, frozenset(call.config.known_failures))
            done |= {"known": known, "passed": _passed_beside(result)} if known else {}
            await call.part(key, done)
        self._trees.add(done["tree"])
        return msgspec.json.decode(call.payloads.get(done["ref"]), type=CommandResult)

    async def _inside(self, result: CommandResult, commit: str) -> CommandResult:
        """Code from outside the tree is no evidence: go and cargo take it where a manifest says so."""
        program = result.argv[0].rpartition("/")[2]
        if program not in ("go", "cargo") or result.verdict != "passed":
            return result
        workspace = self._call.world.workspace(self._call.config)
        found = await asyncio.to_thread(code_outside, workspace, commit)
        reason = f"its tests did not test this tree: {found} is outside it"
        return msgspec.structs.replace(result, verdict="failed", reason=reason) if found else result


def _passed_beside(result: CommandResult) -> int:
    return result.report.ran - result.report.failures if result.report is not None else 0


def _differ(one: CommandResult, other: CommandResult) -> bool:
    names = [r.report.failed if r.report is not None else () for r in (one, other)]
    return one.verdict != other.verdict or names[0] != names[1]


async def _run(call: Call, command: Command, path: str, of: "Bounds | None") -> CommandResult:
    commands = call.world.commands(call.config)
    problem = argv_beyond(of, command.argv) or commands.problem(command)
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


def _plain(call: Call, r: CommandResult, tree: str) -> dict[str, Any]:
    """A result with its outside text (argv of the tester, names of tests, output) behind the name of a payload."""
    facts = {"verdict": r.verdict, "argv": digest_of(r.argv)[:16], "tree": tree}
    facts |= {"exit_code": r.exit_code} if r.exit_code is not None else {}
    facts |= {"tests": r.tests} if r.tests is not None else {}
    return {**facts, "ref": call.payloads.put(msgspec.json.encode(r).decode())}


def _facts(
    call: Call, results: list[CommandResult], base: list[CommandResult] | None, tree: str
) -> CheckFacts:
    w = weigh(results, base, frozenset(call.config.known_failures))
    put = call.payloads.put
    return CheckFacts(
        tree=tree,
        passed=w.passed,
        failed=w.failed,
        blocked=w.blocked,
        timeout=w.timeout,
        no_tests=w.no_tests,
        known=w.known,
        flaky=w.flaky,
        tests=w.tests,
        missing=w.missing,
        doubts=w.doubts,
        failed_commands=tuple(digest_of(c)[:16] for c in w.failed_commands),
        failure_keys=tuple(digest_of(c)[:16] for c in w.failure_keys),
        results_ref=put(msgspec.json.encode(results).decode()),
        first_ref=put(failure_text(call, w.first, SHOWN)) if w.first else "",
        questions_ref=put("\n".join(w.questions)),
    )
