"""What a performer is given, and the two things it can give back: facts, or the wish to be called again."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from steersman.contracts.config import FrozenConfig
from steersman.engine.active_run import PayloadStore
from steersman.engine.ports import Ports
from steersman.kernel.snapshot import JobItem


class RetryRequest(msgspec.Struct, frozen=True):
    """A further attempt is worth it: why, how much later, and what to tell it."""

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
    part: Callable[[str, Any], Awaitable[None]]  # (key, facts): journaled, never redone

    @property
    def effect(self) -> str:
        """The effect id: in the environment of every process it starts."""
        return self.item.id

    def given(self, name: str, default: Any = None) -> Any:
        """A field of the effect's input."""
        return self.item.input.get(name, default)


EffectResult = msgspec.Struct | RetryRequest
