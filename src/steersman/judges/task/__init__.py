"""Pure verdicts on a task: what its agents and its files say, and what follows from it.

**Invariant:** total; no file, clock or chance. What is not there, cannot be read or says nothing is never a yes.
"""
