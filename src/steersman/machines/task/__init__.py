"""A task's life over its files: planned, reviewed, built, reviewed, tested, accepted, and taken back if need be."""

from steersman.machines.task.table import MACHINE

__all__ = ["MACHINE"]
