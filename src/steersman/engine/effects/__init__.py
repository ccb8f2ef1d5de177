"""Finds the performer of an effect, an async function from a call to facts, and imports it when it is first needed.

A machine's package names the performers that only its own jobs use; shared ones are listed here.
**Invariant:** a performer never chooses an event; the machine's namings turn its facts into one.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module

from steersman.engine.effect_call import EffectCall, EffectResult
from steersman.engine.machine_package import MachinePackage

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
