"""An intent becomes a frozen plan (specification 001); nothing here executes anything."""

from steersman.machines.coordinator.table import MACHINE

__all__ = ["MACHINE"]
