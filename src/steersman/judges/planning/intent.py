"""How much a plan may ask, where intent and policy both have a say: the stricter of the two.

**Invariant:** no policy loosens an intent, and no intent a policy.
"""

from typing import NamedTuple

from steersman.contracts.planning.intent import ExecutionIntent
from steersman.contracts.planning.policy import ExecutionPolicy
from steersman.contracts.planning.words import ASKINGS, MODES, Asking, Mode

# The least strict way of asking that a mode still allows.
_AT_MOST: dict[Mode, Asking] = {
    "interactive": "conceptual_only",
    "semi_auto": "blockers_only",
    "full_auto": "never",
}


class Effective(NamedTuple):
    """What holds for asking: the mode, which questions, and how many in all."""

    mode: Mode
    asking: Asking
    budget: int


def effective(intent: ExecutionIntent, policy: ExecutionPolicy) -> Effective:
    """The stricter of both in each respect; a plan that may never ask has no budget to ask with."""
    wanted = intent.interaction
    mode = max(wanted.mode, policy.mode, key=MODES.index)
    asking = max(wanted.question_policy, _AT_MOST[mode], key=ASKINGS.index)
    budget = min(wanted.question_budget, policy.question_budget)
    return Effective(mode, asking, 0 if asking == "never" else budget)
