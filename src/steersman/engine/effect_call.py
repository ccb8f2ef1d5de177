"""Defines what a performer receives (`EffectCall`) and returns: facts, or a `RetryRequest`."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

import msgspec

from steersman.contracts.config import FrozenConfig
from steersman.engine.active_run import PayloadStore
from steersman.engine.ports import Ports
from steersman.kernel.snapshot import JobItem


class RetryRequest(msgspec.Struct, frozen=True):
    """Asks for a further attempt: why, after how long, and with which hint."""

    reason: str
    after_ms: int = 0
    hint_ref: str = ""
    spent: dict[str, int] | None = None


class EffectCall(msgspec.Struct, frozen=True, eq=False):
    """One attempt at one effect."""

    world: Ports
    run: str
    machine: str
    item: JobItem
    config: FrozenConfig
    payloads: PayloadStore
    # (key, facts): journals a finished part, which is never done again.
    part: Callable[[str, Any], Awaitable[None]]

    @property
    def effect(self) -> str:
        """The effect id, which is in the environment of every process that the effect starts."""
        return self.item.id

    def given(self, name: str, default: Any = None) -> Any:
        """Returns a field of the effect's input."""
        return self.item.input.get(name, default)


EffectResult = msgspec.Struct | RetryRequest
ResultFacts = TypeVar("ResultFacts", bound=msgspec.Struct)


def perform_beside_loop(
    work: Callable[[EffectCall], ResultFacts],
) -> Callable[[EffectCall], Awaitable[ResultFacts]]:
    """Makes a performer of work that waits for files or git: it runs in a thread, beside the event loop."""

    @wraps(work)
    async def perform(call: EffectCall) -> ResultFacts:
        return await asyncio.to_thread(work, call)

    return perform
