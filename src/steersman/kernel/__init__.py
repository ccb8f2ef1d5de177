"""What a machine IS: its definition, one step, the tape, replay, laws, the model check.

**Invariant:** pure. No clock, no randomness, no IO; whoever needs one of them passes its result in.
"""
