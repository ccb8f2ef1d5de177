"""The effects every machine may use, each an async function from a call to facts.

**Invariant:** a performer never chooses an event; what its facts mean is in the machine's namings.
"""

from steersman.runtime.performers.agent import ask
from steersman.runtime.performers.checks import baseline, check, recall
from steersman.runtime.performers.delivery import deliver, revert
from steersman.runtime.performers.tree import setup

PERFORMERS = {
    "agent": ask,
    "setup": setup,
    "baseline": baseline,
    "checks": check,
    "recall": recall,
    "deliver": deliver,
    "revert": revert,
}

__all__ = ["PERFORMERS"]
