"""Works on the tree: makes it ready, runs checks on exactly the recorded tree, hands it over."""

import asyncio
import json
from typing import Any

import msgspec

from steersman.contracts.commands import Command, CommandResult
from steersman.contracts.facts import CheckFacts, DeliveryFacts, SetupFacts
from steersman.contracts.workspace import Checkout
from steersman.errors import WorkspaceError
from steersman.judges.evidence import summarise
from steersman.kernel.canonical import digest_of
from steersman.runtime.call import Call

SHOWN = 4_000  # characters of a failing check's output that the next round is given


async def setup(call: Call) -> SetupFacts:
    """A working tree at the recorded commit with the project's setup commands run in it."""
    try:
        tree = await tree_at(call)
    except WorkspaceError as error:
        return SetupFacts(detail_ref=call.payloads.put(str(error)))
    steps, failed = await _set_up(call, tree)
    if failed is not None:
        return SetupFacts(steps=steps, detail_ref=call.payloads.put(_told(failed)))
    return SetupFacts(ready=True, tree=tree.tree, commit=tree.commit, steps=steps)


async def tree_at(call: Call) -> Checkout:
    """A working tree at the recorded commit."""
    workspace = call.world.workspace(call.config)
    tree: Checkout = await asyncio.to_thread(
        workspace.checkout, call.run, call.given("commit"), call.effect, call.item.starts
    )
    return tree


async def ready_tree(call: Call) -> Checkout:
    """The same, set up: one that had to be made anew, after an attempt that edited the last one, gets its setup too."""
    tree = await tree_at(call)
    if tree.fresh:
        _, failed = await _set_up(call, tree)
        if failed is not None:
            raise WorkspaceError(f"a working tree could not be set up anew: {_told(failed)}")
    return tree


async def _set_up(call: Call, tree: Checkout) -> tuple[int, CommandResult | None]:
    """The project's setup commands, in order: how many were run, and the one that failed."""
    commands, wanted_ = call.world.commands(call.config), call.config.worktree.setup
    for n, argv in enumerate(wanted_, 1):
        command = Command(f"setup {n}", tuple(argv))
        result = await commands.run(command, tree.path, call.effect, call.config.rules.check_seconds)
        if result.exit_code != 0:
            return n, result
    return len(wanted_), None


async def check(call: Call) -> CheckFacts:
    """Every project check and every allowed tester command, each run once on the recorded tree; finished ones are kept."""
    commands = call.world.commands(call.config)
    try:
        tree = await ready_tree(call)
    except WorkspaceError as error:
        return CheckFacts(error="workspace", first_ref=call.payloads.put(str(error)))
    results = []
    for n, command in enumerate(wanted(call)):
        key = f"{n}:{command.name}"
        done = call.item.parts.get(key)
        if done is None:
            result = await _run(call, commands, command, tree.path)
            done = _plain(call, result)
            await call.part(key, done)
        results.append(_result(call, done))
    return _facts(call, results, tree.tree)


def wanted(call: Call) -> list[Command]:
    """The project's own checks first; the tester only adds, and adds nothing twice."""
    own = [Command(name, tuple(argv)) for name, argv in call.config.checks.items()]
    ref = call.given("commands")
    added = [tuple(argv) for argv in json.loads(call.payloads.get(ref))] if ref else []
    known = {c.argv for c in own}
    return own + [
        Command(f"tester {n}", argv, "tester")
        for n, argv in enumerate(dict.fromkeys(added), 1)
        if argv not in known
    ]


async def _run(call: Call, commands: Any, command: Command, path: str) -> CommandResult:
    problem = commands.problem(command)
    if problem is not None:
        return CommandResult(
            name=command.name, argv=command.argv, source=command.source, verdict="blocked", reason=problem
        )
    result: CommandResult = await commands.run(command, path, call.effect, call.config.rules.check_seconds)
    return result


def _plain(call: Call, r: CommandResult) -> dict[str, Any]:
    """A result with its outside text (argv of the tester, output) behind payload names."""
    return {"verdict": r.verdict, "ref": call.payloads.put(msgspec.json.encode(r).decode())}


def _result(call: Call, done: dict[str, Any]) -> CommandResult:
    return msgspec.json.decode(call.payloads.get(done["ref"]), type=CommandResult)


def _facts(call: Call, results: list[CommandResult], tree: str) -> CheckFacts:
    s = summarise(results, (), "same_command")
    bad = next((r for r in results if r.verdict != "passed"), None)
    put = call.payloads.put
    return CheckFacts(
        tree=tree,
        passed=s.passed,
        failed=s.failed,
        blocked=s.blocked,
        timeout=s.timeout,
        no_tests=s.no_tests,
        tests=s.tests,
        failed_commands=tuple(digest_of(c)[:16] for c in s.failed_commands),
        failure_keys=tuple(digest_of(c)[:16] for c in s.failure_keys),
        results_ref=put(msgspec.json.encode(results).decode()),
        first_ref=put(_told(bad)) if bad else "",
    )


def _told(r: CommandResult) -> str:
    head = f"{r.name}: {' '.join(r.argv)}\nverdict: {r.verdict}, exit code {r.exit_code}"
    return f"{head}\n{r.reason}\n{r.output[-SHOWN:]}".rstrip()


async def deliver(call: Call) -> DeliveryFacts:
    """Hands the approved tree over, with trailers that say which run, on whose word, by which evidence."""
    workspace = call.world.workspace(call.config)
    try:
        done = await asyncio.to_thread(
            workspace.deliver,
            call.run,
            call.given("commit"),
            call.given("base"),
            call.given("form"),
            call.given("target") or None,
            message(call),
        )
    except WorkspaceError as error:
        return DeliveryFacts(detail_ref=call.payloads.put(str(error)))
    return DeliveryFacts(done=True, form=done.form, ref=done.ref, commit=done.commit, tree=done.tree)


def message(call: Call) -> str:
    """The commit message: the task's first line, then trailers."""
    lines = call.payloads.get(call.given("task")).strip().splitlines() or ["change"]
    trailers = [f"Steersman-Run: {call.run}", f"Steersman-Tree: {call.given('tree')}"]
    if call.given("contract"):
        trailers.append(f"Steersman-Contract: {call.given('contract')}")
    if call.given("confirmed_by"):
        trailers.append(f"Approved-by: {call.given('confirmed_by')}")
    return f"{lines[0][:72]}\n\n" + "\n".join(trailers) + "\n"
