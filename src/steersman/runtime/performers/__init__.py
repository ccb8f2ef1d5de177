"""The effects every machine may use, each an async function from a call to facts.

**Invariant:** a performer never chooses an event; what its facts mean is in the machine's namings.
"""

from steersman.runtime.performers.agent import ask
from steersman.runtime.performers.tree import check, deliver, setup

PERFORMERS = {"agent": ask, "checks": check, "setup": setup, "deliver": deliver}

__all__ = ["PERFORMERS"]
