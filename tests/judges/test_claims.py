"""Claims are linked to evidence that this run has recorded, never counted."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import for_each_case

from steersman.judges.replies.claims import find_claim_problems

RECORDED = {7: "hash7", 9: "hash9"}
ARTIFACTS = {"code/diff.patch": "d1"}
ENTRY = {"id": "e1", "type": "journal", "seq": 7, "hash": "hash7"}
FILE = {"id": "e2", "type": "file", "path": "code/diff.patch", "digest": "d1"}
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "injection.json"


def problems(claims, evidence):
    return find_claim_problems(claims, evidence, RECORDED, ARTIFACTS)


def claim(*refs, name="c1"):
    return {"id": name, "text": "tests pass", "evidence_refs": list(refs)}


def test_a_claim_with_recorded_evidence_holds():
    """An entry of this run with its hash, and a file of this run with its digest, prove what names them."""
    assert problems([claim("e1"), claim("e1", "e2", name="c2")], [ENTRY, FILE]) == ()
    assert problems([claim("e1")], [{**ENTRY, "type": "command"}]) == ()


# Each with what is said about it.
BAD = {
    "no claims": ([], [ENTRY], "there are none"),
    "no reference": ([{"id": "c1", "text": "tests pass"}], [], "names no evidence"),
    "an empty reference": ([claim()], [ENTRY], "names no evidence"),
    "a text as references": ([{"id": "c1", "evidence_refs": "e1"}], [ENTRY], "names no evidence"),
    "a dangling reference": ([claim("e9")], [ENTRY], "'e9' does not count"),
    "a reference of no form": ([claim(7)], [ENTRY], "7 does not count"),
    "an agent's own result": ([claim("e1")], [{"id": "e1", "type": "command", "cmd": "pytest -q", "exit": 0, "stdout": "100 passed"}], "no result of it"),
    "an entry that is a flag": ([claim("e1")], [{**ENTRY, "seq": True}], "names no entry"),
    "an entry of another run": ([claim("e1")], [{**ENTRY, "seq": 8}], "none of this run"),
    "an entry with another hash": ([claim("e1")], [{**ENTRY, "hash": "x"}], "another hash"),
    "a file outside": ([claim("e1")], [{"id": "e1", "type": "file", "path": "../other_run/report.txt"}], "no file that this run has recorded"),
    "a file that is none": ([claim("e1")], [{"id": "e1", "type": "file"}], "no file that this run has recorded"),
    "a file that changed": ([claim("e2")], [{**FILE, "digest": "d2"}], "not as this run has recorded it"),
    "a page": ([claim("e1")], [{"id": "e1", "type": "url", "url": "http://127.0.0.1:9/ci"}], "cannot be verified"),
    "an unknown type": ([claim("e1")], [{"id": "e1", "type": "oath"}], "its type 'oath'"),
    "no type": ([claim("e1")], [{"id": "e1"}], "its type None"),
    "evidence without an id": ([claim("e1")], [ENTRY, {"type": "journal"}], "it has no id"),
    "evidence of no form": ([claim("e1")], [ENTRY, "e2"], "it has no id"),
    "a claim without an id": ([{"evidence_refs": ["e1"]}], [ENTRY], "one has no id"),
    "a claim of no form": (["c1"], [ENTRY], "one has no id"),
    "a claim twice": ([claim("e1"), claim("e1")], [ENTRY], "'c1' is there 2 times"),
    "evidence twice": ([claim("e1")], [ENTRY, ENTRY], "'e1' is there 2 times"),
}  # fmt: skip


@for_each_case(("claims", "evidence", "why"), BAD.values())
def test_what_does_not_hold_says_why(claims, evidence, why):
    """Each way in which a claim can lack evidence has its sentence."""
    told = problems(claims, evidence)
    assert any(why in p for p in told), told


OBJECTS = (
    [v for v in json.loads(CORPUS.read_text())["vectors"] if isinstance(v["input"], dict)]
    if CORPUS.exists()
    else []
)


@pytest.mark.parametrize("vector", OBJECTS, ids=lambda v: v["id"])
def test_the_corpus_is_refused(vector):
    """Every object of the corpus lacks recorded evidence: none of it holds."""
    given_ = vector["input"]
    claims = given_.get(
        "claims", [{"id": "c1", "evidence_refs": [e["id"] for e in given_.get("evidence", ())]}]
    )
    assert problems(claims, given_.get("evidence", []))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("id", "type", "seq", "path", "evidence_refs")), inner),
    max_leaves=8,
)  # fmt: skip


@given(st.lists(values, max_size=4), st.lists(values, max_size=4))
def test_any_objects_are_answered(claims, evidence):
    """No form of claims or evidence makes it raise, and none holds that names nothing recorded."""
    assert problems(claims, evidence)
