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
from steersman.contracts.config import Config, freeze_config
from steersman.engine.active_run import PayloadStore
from steersman.engine.effects import EffectCall
from steersman.engine.effects.checks import checkout_tree, run_baseline_checks, set_up_tree
from steersman.engine.ports import Ports
from steersman.errors import SteersmanError, WorkspaceError
from steersman.judges.redaction.redact import redact_text
from steersman.kernel.snapshot import JobItem
from steersman.ports.journal import Journal
from steersman.views.run_summary import verdict_words

FIRST_TICK_SECONDS = 15  # seconds until the first sign of life; each one after it takes twice as long
ProofListener = Callable[[str, int], None]  # what is running, and since how many seconds; 0: it begins


class CheckProof(msgspec.Struct, frozen=True):
    """What happened: the setup step that failed, or one result for each execution of a check."""

    results: tuple[CommandResult, ...] = ()
    failed_step: int = 0  # 1 is the first; 0: setup has worked
    failed_setup: CommandResult | None = None
    problem: str = ""  # why there is no tree to prove anything on


class _NullPayloadJournal:
    """A store for texts that are never kept."""

    def payload(self, _root: str, _ref: str) -> None:
        return None


async def prove_checks(ports: Ports, config: Config, commit: str, listener: ProofListener) -> CheckProof:
    """Sets a fresh tree of `commit` up and runs every check on it, the way a run does."""
    run = f"init-{ports.chance.nonce()[:12]}"
    call = _proof_call(ports, config, run, commit, listener)
    try:
        return await _prove_on_tree(call, listener)
    except WorkspaceError as error:
        return CheckProof(problem=str(error))
    finally:
        with suppress(SteersmanError):
            await asyncio.to_thread(ports.workspace(config).remove, run)


async def _prove_on_tree(call: EffectCall, listener: ProofListener) -> CheckProof:
    async with _ProgressTicker(listener) as ticker:
        ticker.begin("setup" if call.config.worktree.setup else "a fresh tree")
        tree = await checkout_tree(call, untouched=True)
        step, failed_result = await set_up_tree(call, tree)
        if failed_result is not None:
            return CheckProof(failed_step=step, failed_setup=_redact_result(call, failed_result))
        ticker.begin("checks")
        facts = await run_baseline_checks(call)
    if facts.error:
        return CheckProof(problem=call.payloads.get(facts.first_ref))
    results_json = call.payloads.get(facts.results_ref) or "[]"
    return CheckProof(tuple(msgspec.json.decode(results_json, type=list[CommandResult])))


def _proof_call(ports: Ports, config: Config, run: str, commit: str, listener: ProofListener) -> EffectCall:
    item = JobItem(
        id=f"{run}:1:1", job="prove", kind="effect", key="prove", input={"commit": commit}, visit=1
    )
    known_secrets = ports.secrets(config.redact.env)
    store = cast("Journal", _NullPayloadJournal())
    payloads = PayloadStore(store, run, ports.chance.key(), lambda: known_secrets)

    async def part(key: str, facts: Any) -> None:
        listener(f"{key.partition(':')[2]}: {verdict_words(facts['verdict'], facts.get('known', 0))}", 0)

    return EffectCall(ports, run, "init", item, freeze_config(config), payloads, part)


def _redact_result(call: EffectCall, result: CommandResult) -> CommandResult:
    known_secrets = call.world.secrets(call.config.redact.env)
    return msgspec.structs.replace(
        result,
        output=redact_text(result.output, known_secrets),
        errors=redact_text(result.errors, known_secrets),
    )


class _ProgressTicker:
    """Says what is running when it begins, and again while it takes long."""

    def __init__(self, listener: ProofListener) -> None:
        self._heard, self._what = listener, ""
        self._seconds, self._next = 0, FIRST_TICK_SECONDS
        self._task: asyncio.Task[None] | None = None

    def begin(self, phase: str) -> None:
        self._what, self._seconds, self._next = phase, 0, FIRST_TICK_SECONDS
        self._heard(phase, 0)

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
            await asyncio.sleep(FIRST_TICK_SECONDS)
            self._seconds += FIRST_TICK_SECONDS
            if self._seconds >= self._next:
                self._next *= 2
                self._heard(self._what, self._seconds)
