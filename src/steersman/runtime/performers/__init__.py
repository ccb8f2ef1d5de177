"""The effects every machine may use, each an async function from a call to facts.

**Invariant:** a performer never chooses an event; what its facts mean is in the machine's namings.
"""

from collections.abc import Awaitable, Callable

from steersman.runtime.call import Call, Performed
from steersman.runtime.performers.agent import ask
from steersman.runtime.performers.checks import baseline, check, recall
from steersman.runtime.performers.delivery import deliver, revert
from steersman.runtime.performers.tree import setup

Performer = Callable[[Call], Awaitable[Performed]]


def planned(does: str) -> Performer:
    """One of the planner's effects, brought in when it is first asked for."""

    async def perform(call: Call) -> Performed:
        from steersman.runtime.performers.planning import PLANNED

        return await PLANNED[does](call)

    return perform


PLANS = (
    "precheck", "plan_context", "adjudicate", "draft_graph", "emit_questions", "weigh_answers", "finalize_graph",
    "review_pack", "freeze",
)  # fmt: skip
PERFORMERS: dict[str, Performer] = {
    **{does: planned(does) for does in PLANS},
    "agent": ask,
    "setup": setup,
    "baseline": baseline,
    "checks": check,
    "recall": recall,
    "deliver": deliver,
    "revert": revert,
}

__all__ = ["PERFORMERS"]
