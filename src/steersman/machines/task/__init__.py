"""The machine `task`: a change is planned, reviewed, built, reviewed, tested, accepted, and reverted if a person asks."""

from steersman.machines.task.table import MACHINE

__all__ = ["MACHINE"]
