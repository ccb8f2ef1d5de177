"""Our own transcription of each specification: states, events, edges, caps and sections, as plain tables.

A short identifier of ours stands for each wording of a document. `WORDINGS` holds the fingerprint of that wording, so
that a document and a machine are both compared with it letter for letter where no document is at hand.

**Invariant:** nothing here is imported from steersman, and no sentence of a document is repeated.
"""
