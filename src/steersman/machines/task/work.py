"""What each phase of a task asks for: inputs of jobs, as values. Nothing here decides when they run."""

from typing import Any

from steersman.kernel.canonical import digest_of
from steersman.machines.task.context import Context, adoptable, shown, stands_on

CHOICES = ["approve", "rework", "review", "replan", "revert"]


# ── planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def look_at_others(c: Context) -> dict[str, Any]:
    return {"after": c.after, "target": c.target, "base": c.base_commit}


def ask_others(c: Context) -> dict[str, Any]:
    return {
        "digest": digest_of(c.after),
        "choices": ["retry", "begin"],
        "shown": _shown(c, others=c.detail_ref),
    }


def draft(c: Context) -> dict[str, Any]:
    said = {f"comment_of_{role}": given["reply"] for role, given in c.comments.items() if given.get("reply")}
    plan = c.documents.get("planning/planning.ai.json", "")
    return {**_agent(c, c.planners[0], "draft", plan=plan, **said), "contract": "task_planner"}


def comments(c: Context) -> list[tuple[str, dict[str, Any]]]:
    """One for every other planner who has not commented yet."""
    wanted = [role for role in c.planners[1:] if role not in c.comments]
    given = {"draft": c.draft.get("reply", "")}
    return [(role, {**_agent(c, role, "comment", **given), "contract": "plan_comment"}) for role in wanted]


def ask_questions(c: Context) -> dict[str, Any]:
    return {"digest": shown(c), "choices": ["answer"], "shown": _shown(c, questions=c.told_ref)}


# ── reviews ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_reviews(c: Context) -> list[tuple[str, dict[str, Any]]]:
    """One for every reviewer who has not judged yet."""
    plan = {
        "plan": c.documents.get("planning/planning.ai.json", ""),
        "scope": c.documents.get("plan.files.json", ""),
    }
    return [
        (role, {**_agent(c, role, "review_plan", **plan), "contract": "plan_reviewer"})
        for role in c.plan_reviewers
        if role not in c.plan_opinions
    ]


def code_reviews(c: Context) -> list[tuple[str, dict[str, Any]]]:
    given = {
        "plan": c.documents.get("planning/planning.ai.json", ""),
        "patch": c.documents.get("code/diff.patch", ""),
    }
    return [
        (
            role,
            {
                **_agent(c, role, "review_code", mode="implementation", **given),
                "contract": "code_reviewer",
                "instructions": c.instructions_ref,
            },
        )
        for role in c.code_reviewers
        if role not in c.code_opinions
    ]


# ── code and tests ──────────────────────────────────────────────────────────────────────────────────────────────────


def prepare(c: Context) -> dict[str, Any]:
    return {"commit": c.commit or c.base_commit}


def measure(c: Context) -> dict[str, Any]:
    return {"commit": c.base_commit, "tree": c.base_tree}


def code(c: Context) -> dict[str, Any]:
    given = {
        "plan": c.documents.get("planning/planning.ai.json", ""),
        "scope": c.documents.get("plan.files.json", ""),
    }
    asked = _agent(c, c.coder, "code", mode="implementation", **given)
    return {
        **asked,
        "contract": "task_coder",
        "writes": True,
        "baseline": c.baseline_ref,
        "bounds": c.bounds_ref,
    }


def crew(c: Context) -> dict[str, Any]:
    """A roundtable that only builds: what it approves is laid down here, reviewed here and tested here."""
    return {
        "machine": "roundtable",
        "mode": "implementation",
        "deliver": "none",
        "red_base": "fix",  # it may stand on a change of this task whose tests fail
        "task_ref": c.documents.get("planning/planning.ai.json", "") or c.task_ref,
        "base_commit": stands_on(c)["commit"],
        "base_tree": stands_on(c)["tree"],
        "target": "",
    }


def run_suites(c: Context) -> dict[str, Any]:
    return {
        "commit": c.commit,
        "tree": c.tree,
        "base": c.base_commit,
        "commands": "",
        "baseline": c.baseline_ref,
    }


def ask_evidence(c: Context) -> dict[str, Any]:
    told = _shown(
        c,
        changed=c.infrastructure_ref,
        questions=c.evidence_ref,
        patch=c.documents.get("code/diff.patch", ""),
    )
    return {"digest": c.tree, "choices": ["approve", "rework"], "shown": told}


# ── accept and revert ───────────────────────────────────────────────────────────────────────────────────────────────


def look_at_base(c: Context) -> dict[str, Any]:
    """A change that is there already is not looked for; another one of a task that was delivered before is."""
    return {
        **_of(c),
        "form": c.deliver,
        "target": c.target,
        "base": c.base_commit,
        "delivered": _handed_over(c),
        "deliveries": [*reversed(c.deliveries)],
        "follows": c.delivered != "no" and bool(c.target),
        "bounds": c.bounds_ref,
        **({"seen_tip": c.rewritten_tip} if c.rewritten_tip else {}),
        **_documents(c),
    }


def ask_rewrite(c: Context) -> dict[str, Any]:
    """Bound to where the branch was when the person was shown what it has lost."""
    shown = _shown(c, branch=c.detail_ref, patch=c.patch_ref)
    return {"digest": c.rewritten_tip, "choices": ["approve", "reject"], "shown": shown}


def ask_decision(c: Context) -> dict[str, Any]:
    """Bound to the tree and to every document: what is accepted is exactly what was shown."""
    files = ("code/diff.patch", "review/plan-review.json", "review/code-review.json", "test/report.json")
    told = {name.rpartition("/")[2]: c.documents.get(name, "") for name in files}
    return {"digest": accepted(c), "choices": CHOICES, "shown": _shown(c, **told, detail=c.detail_ref)}


def accepted(c: Context) -> str:
    """What a decision is about."""
    return digest_of({"tree": c.tree, "base": c.base_commit, "artifacts": c.artifacts})


def deliver(c: Context) -> dict[str, Any]:
    return {
        **_of(c),
        "form": c.deliver,
        "target": c.target,
        "base": c.base_commit,
        "task": c.task_ref,
        "confirmed_by": c.decided_by,
        "accepted_by": c.accepted_by if c.accepted_tree == c.tree else "",
        "contract": c.artifacts.get("planning/planning.ai.json", ""),
        "results": c.results_ref,
        "bounds": c.bounds_ref,
        "delivered": _handed_over(c),
        "deliveries": [*reversed(c.deliveries)],
        "ref": c.delivered_ref,
        "url": c.url_ref,
    }


def _handed_over(c: Context) -> str:
    """The commit of this very change, where it was handed over before."""
    return c.delivered_commit if c.delivered == "yes" and c.delivered_tree == c.tree else ""


def take_back(c: Context) -> dict[str, Any]:
    earlier = [commit for commit in reversed(c.deliveries) if commit != c.delivered_commit]
    said = {"target": c.target, "task": c.task_ref, "person": c.decided_by}
    return {"commit": c.delivered_commit, "also": earlier, **said}


# ── every phase ─────────────────────────────────────────────────────────────────────────────────────────────────────


def record_plan(c: Context) -> dict[str, Any]:
    told = {"draft": c.draft.get("reply", ""), "comments": _replies(c.comments), "answers": c.answers}
    return {"phase": "planning", "round": c.round, **told, "bounds": c.bounds_ref, **_documents(c)}


def record_plan_review(c: Context) -> dict[str, Any]:
    said = {"opinions": _replies(c.plan_opinions), "providers": c.providers, "bounds": c.bounds_ref}
    return {"phase": "plan_review", "round": c.round, **said, **_documents(c)}


def record_code(c: Context) -> dict[str, Any]:
    stands = {
        "base": c.base_commit,
        "base_tree": c.base_tree,
        "bounds": c.bounds_ref,
        "deliveries": c.deliveries,
    }
    made = {"commands": c.commands_ref, "crew": c.codegen == "roundtable", "baseline": c.baseline_ref}
    return {"phase": "codegen", "turn": c.turn, **stands, **made, **_of(c), **_documents(c)}


def record_review(c: Context) -> dict[str, Any]:
    said = {"opinions": _replies(c.code_opinions), "providers": c.providers}
    return {"phase": "review", "turn": c.turn, **said, **_of(c), **_documents(c)}


def record_tests(c: Context) -> dict[str, Any]:
    told = {"results": c.results_ref, "checks": c.checks}
    return {"phase": "test", "turn": c.turn, **told, **_of(c), **_documents(c)}


def record_decision(c: Context) -> dict[str, Any]:
    said = {"decision": c.decision, "person": c.decided_by, "reason": c.reason}
    return {"phase": "accept", **said, **_of(c), **_documents(c)}


def record_revert(c: Context) -> dict[str, Any]:
    said = {"person": c.decided_by, "reason": c.reason, "revert": c.revert, "target": c.target}
    went = {"delivered": c.delivered_commit, "reverted": c.reverted_commit}
    return {"phase": "revert", **said, **went, **_documents(c)}


def inspect_plan(c: Context) -> dict[str, Any]:
    return _inspect(c, "planning")


def inspect_plan_review(c: Context) -> dict[str, Any]:
    return _inspect(c, "plan_review")


def inspect_code(c: Context) -> dict[str, Any]:
    return _inspect(c, "codegen")


def inspect_review(c: Context) -> dict[str, Any]:
    return _inspect(c, "review")


def inspect_tests(c: Context) -> dict[str, Any]:
    return _inspect(c, "test")


def inspect_decision(c: Context) -> dict[str, Any]:
    return _inspect(c, "accept")


def inspect_revert(c: Context) -> dict[str, Any]:
    return _inspect(c, "revert")


def _inspect(c: Context, phase: str) -> dict[str, Any]:
    return {"phase": phase, "told": c.told_ref, **_documents(c)}


def _documents(c: Context) -> dict[str, Any]:
    return {"artifacts": c.artifacts, "documents": c.documents}


def _replies(given: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {role: said.get("reply", "") for role, said in given.items()}


def restore(c: Context) -> dict[str, Any]:
    of = {"commit": c.commit or c.base_commit, "base": c.base_commit, **c.laid}
    return {**_documents(c), **of, "tree": c.tree, "told": c.told_ref}


def adopt(c: Context) -> dict[str, Any]:
    """Exactly what the person was told about, and nothing that came after."""
    return {**_documents(c), "seen": c.seen}


def ask_next(c: Context) -> dict[str, Any]:
    return {"digest": shown(c), "choices": ["approve", "rework"], "shown": _shown(c, told=c.told_ref)}


def ask_damage(c: Context) -> dict[str, Any]:
    choices = ["restore", "adopt"] if adoptable(c) else ["restore"]
    told = _shown(c, damage=c.detail_ref, failed=c.repair_ref)
    return {"digest": shown(c), "choices": choices, "shown": told}


def ask_again(c: Context) -> dict[str, Any]:
    return {
        "digest": shown(c),
        "choices": ["retry"],
        "shown": _shown(c, detail=c.detail_ref, told=c.told_ref),
    }


def _shown(_c: Context, **texts: str) -> dict[str, str]:
    return {name: ref for name, ref in texts.items() if ref}


def _of(c: Context) -> dict[str, Any]:
    return {"commit": c.commit or c.base_commit, "tree": c.tree}


def _agent(c: Context, role: str, prompt: str, mode: str = "proposal", **texts: str) -> dict[str, Any]:
    session = c.sessions.get(role)
    answers = [given["text"] for given in c.answers]
    words = {f"note_{n}": ref for n, ref in enumerate((*answers, *c.notes), 1)}
    given = {"task": c.task_ref, **words, **texts, "bounds": c.bounds_ref}
    return {
        "role": role,
        "mode": mode,
        "prompt": prompt,
        "round": c.turn if mode == "implementation" else c.round,
        "commit": stands_on(c)["commit"],
        "base": c.base_commit,
        "texts": {name: ref for name, ref in given.items() if ref},
        "said": [name for name in ("task", *words) if given.get(name)],
        "must_fix": c.must_fix,
        **({"session": session} if session else {}),
    }
