"""The machines, one package each; they do not know each other.

**Invariant:** everything that decides a transition is in a machine's `table.py`.
"""
