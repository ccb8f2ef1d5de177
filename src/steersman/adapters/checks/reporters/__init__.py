"""Test reporters: files copied, read-only, into a sandbox, where the project's own test runner loads them.

**Invariant:** these files use the standard library of Python 3.7, one the plain shell, and import no module of
steersman. Where a reporter cannot send its report, the runner goes on as if it were not there.
"""
