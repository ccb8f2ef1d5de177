"""What a report says of reviews."""

from steersman.kernel.snapshot import JobItem
from steersman.kernel.tape import GENESIS_HASH, Entry
from steersman.views.report import RecordedReview, find_recorded_reviews, recorded_reviews_section


def entry(seq, **more):
    return Entry(**{"run": "r", "seq": seq, "at": 1, "kind": "transition", "prev": GENESIS_HASH, **more})


def review(seq, **more):
    facts = {"reply": {"decision": "approve", "summary": "p-1", "must_fix": []}}
    return entry(seq, data=facts, actor="agent:reviewer/codex", cause="r:1:1", **more)


def test_only_reviews_that_counted():
    """The round is that of the job; a late result, a tester's reply and one that did not fit are no reviews."""
    planned = entry(1, planned=(JobItem("r:1:1", "review", "effect", "review", {"round": 3}, 1),))
    others = (entry(2, data={"reply": {"commands": 1}}), entry(3, data={"reply": None}), entry(4))
    found = find_recorded_reviews([planned, *others, review(5, late=True), review(6)], {"p-1": "good"}.get)
    assert found == (RecordedReview(3, 6, "reviewer/codex", "approve", "good"),)


def test_without_reviews_there_is_no_section():
    """Nothing was reviewed, nothing is said."""
    assert recorded_reviews_section(()) == []
