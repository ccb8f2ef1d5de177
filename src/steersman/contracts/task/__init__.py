"""What a task leaves on disk, and what its agents answer with.

**Invariant:** shapes only; what a document is worth is judged in `judges.task`.
"""
