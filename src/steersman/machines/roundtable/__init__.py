"""Proposal discussion → operator confirms → coder / reviewer / tester loop (specification 000)."""

from steersman.machines.roundtable.table import MACHINE

__all__ = ["MACHINE"]
