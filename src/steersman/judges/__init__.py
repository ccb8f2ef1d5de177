"""Pure verdicts on evidence.

**Invariant:** no IO, no clock; the same input gives the same verdict for ever.
"""
