"""What a machine is: its definition, one step, the tape, replay, laws and the model check.

**Invariant:** pure. No clock, no randomness, no IO; the caller passes their results in.
"""
