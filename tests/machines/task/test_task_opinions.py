"""Several opinions are one verdict, and nobody is outvoted."""

import msgspec
from tests.support.cases import for_each_case

from steersman.judges.replies.agent_reply import finding_id
from steersman.machines.task import replies as r
from steersman.machines.task.documents import schemas as d
from steersman.machines.task.documents.opinions import build_code_review, build_plan_review

TASK, SHA, TREE = "261116-abc123", "a" * 64, "b" * 40
ERROR = d.PlanFlaw(id="ACCEPTANCE_EMPTY", severity="error", message="no criterion")
WARNING = d.PlanFlaw(id="REQ_EMPTY", severity="warning", message="no requirement")


def says(decision, *issues):
    return r.PlanReviewerReply(
        nonce="n", decision=decision, summary="read", blocking_issues=issues, suggestions=("rename it",)
    )


def of_code(decision, *issues, plan=()):
    return r.CodeReviewerReply(
        nonce="n", decision=decision, summary="read", blocking_issues=issues, plan_issues=plan, suggestions=()
    )


def on_plan(opinions, flaws=(), **more):
    review = build_plan_review(TASK, 2, SHA, opinions, {"a": "claude"}, flaws, **more)
    assert msgspec.json.decode(msgspec.json.encode(review), type=d.PlanReview) == review
    return review


def on_code(opinions, **more):
    review = build_code_review(TASK, 2, TREE, SHA, opinions, {"a": "claude"}, **more)
    assert msgspec.json.decode(msgspec.json.encode(review), type=d.CodeReview) == review
    return review


ACCEPT, CHANGE, BLOCK = says("accept"), says("needs_changes", "too much"), says("blocked", "no way")


@for_each_case(
    ("opinions", "flaws", "decision"),
    [
        ([ACCEPT], (), "accepted"),
        ([ACCEPT, ACCEPT], (WARNING,), "accepted"),
        ([], (), "needs_changes"),
        ([ACCEPT], (ERROR,), "needs_changes"),
        ([ACCEPT, CHANGE], (), "needs_changes"),
        ([says("needs_changes")], (), "needs_changes"),
        ([says("accept", "but")], (), "needs_changes"),
        ([ACCEPT, CHANGE, BLOCK], (), "blocked"),
        ([says("blocked")], (ERROR,), "blocked"),
    ],
)
def test_plan(opinions, flaws, decision):
    """Accepted when everybody accepts and nothing stands against it; blocked when anybody says so."""
    review = on_plan(dict(zip("abc", opinions, strict=False)), flaws)
    assert review.decision == decision
    assert review.ok == (decision == "accepted")
    assert review.blocked == (decision == "blocked")


def test_what_a_plan_review_holds():
    """Reviewers by their names, issues once with the first who found them, errors before warnings."""
    many = (*[WARNING] * 90, *[ERROR] * 20)
    review = on_plan({"b": says("needs_changes", "Too much!", "late"), "a": CHANGE}, many)
    assert [(o.reviewer, o.provider) for o in review.reviewers] == [("a", "claude"), ("b", "")]
    assert review.reviewers[0].suggestions == ("rename it",)
    assert [(i.text, i.found_by) for i in review.blocking_issues] == [("too much", "a"), ("late", "b")]
    assert [f.severity for f in review.flaws] == ["error"] * 20 + ["warning"] * 80
    assert (review.task_id, review.round, review.plan_digest) == (TASK, 2, SHA)


OK, FIX, FLAWED = (
    of_code("approve"),
    of_code("needs_changes", "it leaks"),
    of_code("plan_flawed", plan=("no",)),
)


@for_each_case(
    ("opinions", "decision"),
    [
        ([OK], "passes"),
        ([OK, OK], "passes"),
        ([], "needs_changes"),
        ([OK, FIX], "needs_changes"),
        ([of_code("needs_changes")], "needs_changes"),
        ([of_code("approve", "but")], "needs_changes"),
        ([of_code("approve", plan=("but",))], "needs_changes"),
        ([OK, FIX, FLAWED], "plan_flawed"),
        ([of_code("plan_flawed")], "plan_flawed"),
    ],
)
def test_code(opinions, decision):
    """A change passes when everybody approves and nobody has an issue; a flawed plan goes before everything."""
    review = on_code(dict(zip("abc", opinions, strict=False)))
    assert review.decision == decision
    assert review.ok == (decision == "passes")


def test_what_a_code_review_holds():
    """Issues of the code and of the plan apart, each once, on exactly one tree."""
    review = on_code({"b": FLAWED, "a": of_code("plan_flawed", "it leaks", "It leaks.", plan=("No!",))})
    assert [(i.id, i.text, i.found_by) for i in review.blocking_issues] == [
        (finding_id("it leaks"), "it leaks", "a")
    ]
    assert [(i.id, i.found_by) for i in review.plan_issues] == [(finding_id("no"), "a")]
    assert [o.reviewer for o in review.reviewers] == ["a", "b"]
    assert (review.tree, review.patch_digest) == (TREE, SHA)


def test_more_than_a_review_holds():
    """However many speak, the document fits, and those who are not listed are heard."""
    crowd = {f"r{n:02}": says("accept") for n in range(21)}
    assert len(on_plan({**crowd, "z": BLOCK}).reviewers) == 20
    assert on_plan({**crowd, "z": BLOCK}).decision == "blocked"
    loud = {f"r{n:02}": of_code("needs_changes", *(f"{n} {i}" for i in range(50))) for n in range(11)}
    assert len(on_code(loud).blocking_issues) == 500
