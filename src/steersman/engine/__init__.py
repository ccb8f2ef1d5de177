"""load → step → append → perform effects → repeat: the only mutator of runs.

**Invariant:** nothing here decides a transition; it asks the kernel, writes the answer down, then acts on it.
"""
