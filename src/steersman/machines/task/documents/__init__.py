"""Pure verdicts on a task: what its agents and files say, and what follows from it.

**Invariant:** total, without files, clock or chance. A missing, unreadable or empty answer never counts as a yes.
"""
