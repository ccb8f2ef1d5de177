"""Frozen, versioned things that cross a boundary.

**Invariant:** values only; nothing here decides or has side effects.
"""
