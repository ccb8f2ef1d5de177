"""What several reviewers say, as one verdict.

**Invariant:** absence of evidence is failure: without an opinion nothing is accepted, and nobody is outvoted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from steersman.contracts.task.documents import CodeOpinion, CodeReview, Flaw, Issue, PlanOpinion, PlanReview
from steersman.contracts.task.replies import CodeReviewerReply, PlanReviewerReply
from steersman.judges.findings import finding_id, named_finding
from steersman.judges.task.plan import NOTHING
from steersman.judges.text import clip

FLAWS, ISSUES, REVIEWERS, PROVIDER = 100, 500, 20, 200  # the bounds of the contract


def issue_id(text: str) -> str:
    """The id of an issue, the same in every round: `f-` and ten hex digits."""
    return finding_id(text)


def plan_review(
    task_id: str,
    round_: int,
    plan_digest: str,
    opinions: Mapping[str, PlanReviewerReply],
    providers: Mapping[str, str],
    flaws: Sequence[Flaw],
    open_before: Mapping[str, str] = NOTHING,
) -> PlanReview:
    """Every opinion on a plan and what follows; `open_before` are earlier issues by id, which a reviewer may name."""
    said = [
        PlanOpinion(
            reviewer=role,
            decision=one.decision,
            summary=one.summary,
            blocking_issues=_issues(role, one.blocking_issues, open_before),
            suggestions=one.suggestions,
            provider=clip(providers.get(role, ""), PROVIDER),
        )
        for role, one in sorted(opinions.items())
    ]
    issues = _once(issue for one in said for issue in one.blocking_issues)
    wrong = [flaw for flaw in flaws if flaw.severity == "error"]
    blocked = any(one.decision == "blocked" for one in said)
    ok = bool(said) and all(one.decision == "accept" for one in said) and not issues and not wrong
    return PlanReview(
        task_id=task_id,
        round=round_,
        plan_digest=plan_digest,
        ok=ok,
        blocked=blocked,
        decision="blocked" if blocked else "accepted" if ok else "needs_changes",
        reviewers=tuple(said[:REVIEWERS]),
        flaws=(*wrong, *(flaw for flaw in flaws if flaw.severity != "error"))[:FLAWS],
        blocking_issues=issues[:ISSUES],
    )


def code_review(
    task_id: str,
    round_: int,
    tree: str,
    patch_digest: str,
    opinions: Mapping[str, CodeReviewerReply],
    providers: Mapping[str, str],
    open_before: Mapping[str, str] = NOTHING,
) -> CodeReview:
    """Every opinion on a change and what follows; `open_before` are earlier issues by id, which a reviewer may name."""
    said = [
        CodeOpinion(
            reviewer=role,
            decision=one.decision,
            summary=one.summary,
            blocking_issues=_issues(role, one.blocking_issues, open_before),
            plan_issues=_issues(role, one.plan_issues, open_before),
            suggestions=one.suggestions,
            provider=clip(providers.get(role, ""), PROVIDER),
        )
        for role, one in sorted(opinions.items())
    ]
    issues = _once(issue for one in said for issue in one.blocking_issues)
    plan_issues = _once(issue for one in said for issue in one.plan_issues)
    decision = _of_code(said, (*issues, *plan_issues))
    return CodeReview(
        task_id=task_id,
        round=round_,
        tree=tree,
        patch_digest=patch_digest,
        ok=decision == "passes",
        decision=decision,
        reviewers=tuple(said[:REVIEWERS]),
        blocking_issues=issues[:ISSUES],
        plan_issues=plan_issues[:ISSUES],
    )


def _of_code(
    said: Sequence[CodeOpinion], issues: Sequence[Issue]
) -> Literal["passes", "needs_changes", "plan_flawed"]:
    if any(one.decision == "plan_flawed" for one in said):
        return "plan_flawed"
    passes = bool(said) and not issues and all(one.decision == "approve" for one in said)
    return "passes" if passes else "needs_changes"


def _issues(role: str, texts: Sequence[str], open_before: Mapping[str, str]) -> tuple[Issue, ...]:
    """The issues of one reviewer; one that is named by its id alone keeps the words it had."""
    named = (named_finding(text, open_before) for text in texts)
    return _once(Issue(id=key, text=words or open_before[key], found_by=role) for key, words in named)


def _once(issues: Iterable[Issue]) -> tuple[Issue, ...]:
    found: dict[str, Issue] = {}
    for issue in issues:
        found.setdefault(issue.id, issue)
    return tuple(found.values())
