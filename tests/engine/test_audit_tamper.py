"""A seeded sample of the tamper proof, by the proof's own code; `make prove` runs all of it."""

import sys
from pathlib import Path

import pytest

PROOFS = Path(__file__).resolve().parents[2] / "proofs"


@pytest.fixture(scope="module")
def proof():
    sys.path.insert(0, str(PROOFS))
    try:
        import tamper
    finally:
        sys.path.remove(str(PROOFS))
    return tamper


def test_sample(proof):
    """Of every kind of tampering with a run of 200 entries, each one tried is found and its first bad entry named."""
    result = proof.prove(quick=True)
    assert result["misses"] == []
    assert result["ok"]
    assert result["entries"] >= 200
    assert result["tried"] == result["found"] == result["named"] >= 200
    assert result["unsound"] == 0, "the run itself must be sound, before and after"
    assert len(result["kinds"]) >= 40


def test_told(proof):
    """The proof tells what it tried, and what cannot be seen without an anchor, in as many words as verify does."""
    count = {"tried": 2, "found": 2, "named": 2, "impossible": 0}
    blind = {"tried": 9, "not_found_as_said": 9}
    result = {
        "entries": 1, "run_bytes": 1, "seed": 1, **count, "kinds": {"flip": count}, "without_anchor": blind,
    }  # fmt: skip
    told = "\n".join(proof.describe_result({**result, "misses": []}))
    assert "9 of 9 not found" in told
    assert all(words in told for words in proof.UNANCHORED_GAPS)
