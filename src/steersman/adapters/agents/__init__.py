"""The agents that are programs of others: each adapter knows one CLI, how it is called and how it tells what happened.

**Invariant:** an adapter returns what happened; it never says what it means, and it never raises for an agent that
fails.
"""
