"""Protocols only, one file each: what the engine needs from outside.

**Invariant:** no implementation, no default, no IO.
"""
