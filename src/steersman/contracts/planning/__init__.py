"""What the planner reads, asks and hands over: versioned documents, each with a JSON Schema.

**Invariant:** shapes only. What a document means together with others is judged in `judges.planning`.
"""
