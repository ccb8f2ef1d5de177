"""Frozen, versioned things that cross a boundary.

**Invariant:** values only; nothing here decides, and nothing here reaches the world.
"""
