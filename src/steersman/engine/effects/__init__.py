"""Finds the performer of an effect, an async function from a call to facts, and imports it when it is first needed.

A machine's package names the performers that only its own jobs use; shared ones are listed here.
**Invariant:** a performer never chooses an event; the machine's namings turn its facts into one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from steersman.contracts.config import FrozenConfig
from steersman.contracts.replies import ReplyContract
from steersman.engine.active_run import PayloadStore
from steersman.engine.machine_package import MachinePackage
from steersman.engine.ports import Ports
from steersman.errors import DefinitionError
from steersman.judges.replies.agent_reply import SHARED_REPLY_CONTRACTS
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

    def reply_contract(self) -> ReplyContract | None:
        """What the agent has to answer with, by the machine's package or the shared contracts; None for free text."""
        name = self.given("contract")
        if not name:
            return None
        package = self.world.packages.get(self.machine)
        contracts = {**SHARED_REPLY_CONTRACTS, **(package.replies if package is not None else {})}
        if name not in contracts:
            raise DefinitionError(
                f"machine {self.machine}: no reply contract {name!r}: {', '.join(sorted(contracts))}"
            )
        return contracts[name]


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


Performer = Callable[[EffectCall], Awaitable[EffectResult]]
SHARED_PERFORMERS = {
    "agent": "steersman.engine.effects.agent_work:ask_agent",
    "setup": "steersman.engine.effects.checks:prepare_tree",
    "baseline": "steersman.engine.effects.checks:run_baseline_checks",
    "checks": "steersman.engine.effects.checks:run_checks",
    "recall": "steersman.engine.effects.checks:recall_check_results",
    "deliver": "steersman.engine.effects.delivery:deliver_change",
    "revert": "steersman.engine.effects.delivery:revert_delivery",
    "base": "steersman.engine.effects.branch:follow_base",
}


def load_performer(package: MachinePackage, does: str) -> Performer | None:
    """Returns the performer of an effect for a package's machine; None where there is none."""
    path = package.effects.get(does) or SHARED_PERFORMERS.get(does, "")
    module, _, name = path.partition(":")
    loaded: Performer | None = getattr(import_module(module), name) if module else None
    return loaded


__all__ = ["Performer", "load_performer"]
