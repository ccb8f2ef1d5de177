"""What several reviewers say, as one verdict.

**Invariant:** absence of evidence is failure: without an opinion nothing is accepted, and no reviewer is outvoted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from steersman.judges.replies.agent_reply import finding_id
from steersman.judges.text import clip_text
from steersman.machines.task.documents.schemas import (
    CodeOpinion,
    CodeReview,
    PlanFlaw,
    PlanOpinion,
    PlanReview,
    ReviewIssue,
)
from steersman.machines.task.replies import CodeReviewerReply, PlanReviewerReply

# The bounds of the contract.
MAX_REVIEW_FLAWS, MAX_REVIEW_ISSUES, MAX_REVIEWERS, MAX_PROVIDER_CHARACTERS = (100, 500, 20, 200)


def build_plan_review(
    task_id: str,
    round_: int,
    plan_digest: str,
    opinions: Mapping[str, PlanReviewerReply],
    providers: Mapping[str, str],
    flaws: Sequence[PlanFlaw],
) -> PlanReview:
    """Every opinion on a plan and what follows."""
    plan_opinions = [
        PlanOpinion(
            reviewer=role,
            decision=opinion.decision,
            summary=opinion.summary,
            blocking_issues=_collect_reviewer_issues(role, opinion.blocking_issues),
            suggestions=opinion.suggestions,
            provider=clip_text(providers.get(role, ""), MAX_PROVIDER_CHARACTERS),
        )
        for role, opinion in sorted(opinions.items())
    ]
    issues = _unique_review_issues(issue for opinion in plan_opinions for issue in opinion.blocking_issues)
    errors = [flaw for flaw in flaws if flaw.severity == "error"]
    blocked = any(opinion.decision == "blocked" for opinion in plan_opinions)
    ok = (
        bool(plan_opinions)
        and all(opinion.decision == "accept" for opinion in plan_opinions)
        and not issues
        and not errors
    )
    return PlanReview(
        task_id=task_id,
        round=round_,
        plan_digest=plan_digest,
        ok=ok,
        blocked=blocked,
        decision="blocked" if blocked else "accepted" if ok else "needs_changes",
        reviewers=tuple(plan_opinions[:MAX_REVIEWERS]),
        flaws=(*errors, *(flaw for flaw in flaws if flaw.severity != "error"))[:MAX_REVIEW_FLAWS],
        blocking_issues=issues[:MAX_REVIEW_ISSUES],
    )


def build_code_review(
    task_id: str,
    round_: int,
    tree: str,
    patch_digest: str,
    opinions: Mapping[str, CodeReviewerReply],
    providers: Mapping[str, str],
) -> CodeReview:
    """Every opinion on a change and what follows."""
    code_opinions = [
        CodeOpinion(
            reviewer=role,
            decision=opinion.decision,
            summary=opinion.summary,
            blocking_issues=_collect_reviewer_issues(role, opinion.blocking_issues),
            plan_issues=_collect_reviewer_issues(role, opinion.plan_issues),
            suggestions=opinion.suggestions,
            provider=clip_text(providers.get(role, ""), MAX_PROVIDER_CHARACTERS),
        )
        for role, opinion in sorted(opinions.items())
    ]
    issues = _unique_review_issues(issue for opinion in code_opinions for issue in opinion.blocking_issues)
    plan_issues = _unique_review_issues(issue for opinion in code_opinions for issue in opinion.plan_issues)
    decision = _decide_code_review(code_opinions, (*issues, *plan_issues))
    return CodeReview(
        task_id=task_id,
        round=round_,
        tree=tree,
        patch_digest=patch_digest,
        ok=decision == "passes",
        decision=decision,
        reviewers=tuple(code_opinions[:MAX_REVIEWERS]),
        blocking_issues=issues[:MAX_REVIEW_ISSUES],
        plan_issues=plan_issues[:MAX_REVIEW_ISSUES],
    )


def _decide_code_review(
    opinions: Sequence[CodeOpinion], issues: Sequence[ReviewIssue]
) -> Literal["passes", "needs_changes", "plan_flawed"]:
    if any(opinion.decision == "plan_flawed" for opinion in opinions):
        return "plan_flawed"
    passes = bool(opinions) and not issues and all(opinion.decision == "approve" for opinion in opinions)
    return "passes" if passes else "needs_changes"


def _collect_reviewer_issues(role: str, texts: Sequence[str]) -> tuple[ReviewIssue, ...]:
    return _unique_review_issues(ReviewIssue(id=finding_id(text), text=text, found_by=role) for text in texts)


def _unique_review_issues(issues: Iterable[ReviewIssue]) -> tuple[ReviewIssue, ...]:
    issues_by_id: dict[str, ReviewIssue] = {}
    for issue in issues:
        issues_by_id.setdefault(issue.id, issue)
    return tuple(issues_by_id.values())
