"""Parse, call, show; nothing else.

**Invariant:** no face imports an adapter or decides anything: what it needs from the world comes through a `Helm`.
"""
