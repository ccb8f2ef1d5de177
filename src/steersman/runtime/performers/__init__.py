"""The effects that machines may use, each an async function from a call to facts, brought in when it is first needed.

**Invariant:** a performer never chooses an event; what its facts mean is in the machine's namings.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module

from steersman.runtime.call import EffectCall, EffectResult

Performer = Callable[[EffectCall], Awaitable[EffectResult]]
PERFORMER_PATHS = {
    "agent": "agent:ask",
    "setup": "tree:setup",
    "baseline": "checks:baseline",
    "checks": "checks:check",
    "recall": "checks:recall",
    "deliver": "delivery:deliver",
    "revert": "delivery:revert",
    "precheck": "planning:precheck",
    "plan_context": "planning:context",
    "adjudicate": "planning:adjudicate",
    "draft_graph": "planning:draft",
    "emit_questions": "planning:emit",
    "weigh_answers": "planning:weigh",
    "finalize_graph": "planning:finalize",
    "review_pack": "planning:pack",
    "freeze": "plan_freezing:freeze",
    "task_record": "task:record",
    "task_inspect": "inspection:inspect",
    "task_restore": "repair:restore",
    "task_adopt": "repair:adopt",
    "task_others": "others:look_at_others",
    "base": "mooring:follow_base",
    "task_base": "mooring:look_at_base",
    "task_revert": "mooring:take_back",
    "task_deliver": "delivery:deliver",
}


def load_performer(does: str) -> Performer | None:
    """What does this, or None where nothing here can."""
    module, _, name = PERFORMER_PATHS.get(does, "").partition(":")
    loaded: Performer | None = getattr(import_module(f"{__name__}.{module}"), name) if module else None
    return loaded


__all__ = ["Performer", "load_performer"]
