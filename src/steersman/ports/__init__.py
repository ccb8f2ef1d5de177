"""Protocols only, one file each: what the runtime needs from the world.

**Invariant:** no implementation, no default, no IO.
"""
