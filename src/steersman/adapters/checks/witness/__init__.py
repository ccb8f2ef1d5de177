"""What goes into a project's own test runner to tell what it runs, as it runs: copied, read-only, into its sandbox.

**Invariant:** these files know the standard library of Python 3.7, one the plain shell, and nothing of ours; a runner
that cannot tell goes on as if they were not there.
"""
