"""Proves a configuration outside a run: its setup and checks on a fresh tree of the base commit.

**Invariant:** the performers of runs do the work, so that what is proven here is what a run will do; nothing is
journaled, and the tree is removed afterwards.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self, cast

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.contracts.config import Config
from steersman.errors import SteersmanError, WorkspaceError
from steersman.judges.redaction import redact
from steersman.kernel.snapshot import Item
from steersman.ports.journal import Journal
from steersman.runtime.call import Call
from steersman.runtime.live import Payloads
from steersman.runtime.performers.checks import baseline
from steersman.runtime.performers.tree import set_up_tree, tree_at
from steersman.runtime.world import World
from steersman.views.status import verdict_words

TICK = 15  # seconds until the first sign of life; each one after it takes twice as long
Listener = Callable[[str, int], None]  # what is running, and since how many seconds; 0: it begins


class Proof(msgspec.Struct, frozen=True):
    """What happened: the setup step that failed, or one result for each execution of a check."""

    results: tuple[CommandResult, ...] = ()
    failed_step: int = 0  # 1 is the first; 0: setup has worked
    failed_setup: CommandResult | None = None
    problem: str = ""  # why there is no tree to prove anything on


class _NoStore:
    """A store for texts that are never kept."""

    def payload(self, _root: str, _ref: str) -> None:
        return None


async def prove_checks(world: World, config: Config, commit: str, heard: Listener) -> Proof:
    """Sets a fresh tree of `commit` up and runs every check on it, the way a run does."""
    run = f"init-{world.chance.nonce()[:12]}"
    call = _call(world, config, run, commit, heard)
    try:
        return await _prove(call, heard)
    except WorkspaceError as error:
        return Proof(problem=str(error))
    finally:
        with suppress(SteersmanError):
            await asyncio.to_thread(world.workspace(config).remove, run)


async def _prove(call: Call, heard: Listener) -> Proof:
    async with _Ticking(heard) as ticking:
        ticking.begin("setup" if call.config.worktree.setup else "a fresh tree")
        tree = await tree_at(call, untouched=True)
        step, failed = await set_up_tree(call, tree)
        if failed is not None:
            return Proof(failed_step=step, failed_setup=_hidden(call, failed))
        ticking.begin("checks")
        facts = await baseline(call)
    if facts.error:
        return Proof(problem=call.payloads.get(facts.first_ref))
    written = call.payloads.get(facts.results_ref) or "[]"
    return Proof(tuple(msgspec.json.decode(written, type=list[CommandResult])))


def _call(world: World, config: Config, run: str, commit: str, heard: Listener) -> Call:
    item = Item(id=f"{run}:1:1", job="prove", kind="effect", key="prove", input={"commit": commit}, visit=1)
    known = world.secrets(config.redact.env)
    store = cast("Journal", _NoStore())
    payloads = Payloads(store, run, world.chance.key(), lambda: known)

    async def part(key: str, facts: Any) -> None:
        heard(f"{key.partition(':')[2]}: {verdict_words(facts['verdict'], facts.get('known', 0))}", 0)

    return Call(world, run, "init", item, config, payloads, part)


def _hidden(call: Call, result: CommandResult) -> CommandResult:
    known = call.world.secrets(call.config.redact.env)
    return msgspec.structs.replace(
        result, output=redact(result.output, known), errors=redact(result.errors, known)
    )


class _Ticking:
    """Says what is running when it begins, and again while it takes long."""

    def __init__(self, heard: Listener) -> None:
        self._heard, self._what = heard, ""
        self._seconds, self._next = 0, TICK
        self._task: asyncio.Task[None] | None = None

    def begin(self, what: str) -> None:
        self._what, self._seconds, self._next = what, 0, TICK
        self._heard(what, 0)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None  # noqa: S101  entered
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._seconds += TICK
            if self._seconds >= self._next:
                self._next *= 2
                self._heard(self._what, self._seconds)
