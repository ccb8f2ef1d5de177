"""Stores, agents, git, commands, engine, clock: one kind of outside thing each.

**Invariant:** an adapter returns facts; it never chooses an event and never imports a machine.
"""
