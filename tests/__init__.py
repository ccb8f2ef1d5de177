"""The tests; `tests.support` is what they, the proofs and the benchmarks share."""
