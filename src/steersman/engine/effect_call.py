"""Defines what a performer receives (`EffectCall`) and returns: facts, or a `RetryRequest`."""

from collections.abc import Awaitable, Callable
from typing import Any

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
