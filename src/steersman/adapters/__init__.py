"""Implements the ports. Each package connects to one outside system: a store, git, a sandbox, an agent's program.

**Invariant:** an adapter returns facts; it never chooses an event and never imports a machine.
"""
