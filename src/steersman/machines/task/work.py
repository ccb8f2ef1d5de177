"""What each phase of a task asks for: inputs of jobs, as values. Nothing here decides when they run."""

from typing import Any

from steersman.kernel.canonical import digest_of
from steersman.machines.task.context import TaskContext, can_adopt_damage, inspection_digest, next_work_base

DECISION_CHOICES = ["approve", "rework", "review", "replan", "revert"]


# ── planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def prerequisites_input(context: TaskContext) -> dict[str, Any]:
    return {"after": context.after, "target": context.target, "base": context.base_commit}


def prerequisites_gate_input(context: TaskContext) -> dict[str, Any]:
    return {
        "digest": digest_of(context.after),
        "choices": ["retry", "begin"],
        "shown": _nonempty_texts(context, others=context.detail_ref),
    }


def plan_draft_input(context: TaskContext) -> dict[str, Any]:
    comment_refs = {
        f"comment_of_{role}": c["reply"] for role, c in context.comments.items() if c.get("reply")
    }
    plan = context.documents.get("planning/planning.ai.json", "")
    return {
        **_task_agent_input(context, context.planners[0], "draft", plan=plan, **comment_refs),
        "contract": "task_planner",
    }


def plan_comment_inputs(context: TaskContext) -> list[tuple[str, dict[str, Any]]]:
    """One for every other planner who has not commented yet."""
    wanted = [role for role in context.planners[1:] if role not in context.comments]
    draft_refs = {"draft": context.draft.get("reply", "")}
    return [
        (role, {**_task_agent_input(context, role, "comment", **draft_refs), "contract": "plan_comment"})
        for role in wanted
    ]


def plan_questions_gate_input(context: TaskContext) -> dict[str, Any]:
    return {
        "digest": inspection_digest(context),
        "choices": ["answer"],
        "shown": _nonempty_texts(context, questions=context.told_ref),
    }


# ── reviews ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_review_inputs(context: TaskContext) -> list[tuple[str, dict[str, Any]]]:
    """One for every reviewer who has not judged yet."""
    plan = {
        "plan": context.documents.get("planning/planning.ai.json", ""),
        "scope": context.documents.get("plan.files.json", ""),
    }
    return [
        (role, {**_task_agent_input(context, role, "review_plan", **plan), "contract": "plan_reviewer"})
        for role in context.plan_reviewers
        if role not in context.plan_opinions
    ]


def code_review_inputs(context: TaskContext) -> list[tuple[str, dict[str, Any]]]:
    document_refs = {
        "plan": context.documents.get("planning/planning.ai.json", ""),
        "patch": context.documents.get("code/diff.patch", ""),
    }
    return [
        (
            role,
            {
                **_task_agent_input(context, role, "review_code", mode="implementation", **document_refs),
                "contract": "code_reviewer",
                "instructions": context.instructions_ref,
            },
        )
        for role in context.code_reviewers
        if role not in context.code_opinions
    ]


# ── code and tests ──────────────────────────────────────────────────────────────────────────────────────────────────


def task_code_input(context: TaskContext) -> dict[str, Any]:
    document_refs = {
        "plan": context.documents.get("planning/planning.ai.json", ""),
        "scope": context.documents.get("plan.files.json", ""),
    }
    agent_input = _task_agent_input(context, context.coder, "code", mode="implementation", **document_refs)
    return {
        **agent_input,
        "contract": "task_coder",
        "writes": True,
        "baseline": context.baseline_ref,
        "bounds": context.bounds_ref,
    }


def crew_run_input(context: TaskContext) -> dict[str, Any]:
    """The input of a child run that only builds. The task itself records, reviews and tests what it approves."""
    return {
        "machine": "roundtable",
        "mode": "implementation",
        "deliver": "none",
        "red_base": "fix",  # it may stand on a change of this task whose tests fail
        "task_ref": context.documents.get("planning/planning.ai.json", "") or context.task_ref,
        "base_commit": next_work_base(context)["commit"],
        "base_tree": next_work_base(context)["tree"],
        "target": "",
    }


def suite_run_input(context: TaskContext) -> dict[str, Any]:
    return {
        "commit": context.commit,
        "tree": context.tree,
        "base": context.base_commit,
        "commands": "",
        "baseline": context.baseline_ref,
    }


def task_evidence_gate_input(context: TaskContext) -> dict[str, Any]:
    shown_refs = _nonempty_texts(
        context,
        changed=context.infrastructure_ref,
        questions=context.evidence_ref,
        patch=context.documents.get("code/diff.patch", ""),
    )
    return {"digest": context.tree, "choices": ["approve", "rework"], "shown": shown_refs}


# ── accept and revert ───────────────────────────────────────────────────────────────────────────────────────────────


def task_base_input(context: TaskContext) -> dict[str, Any]:
    """A change that is there already is not looked for; another one of a task that was delivered before is."""
    return {
        **_current_change_refs(context),
        "form": context.deliver,
        "target": context.target,
        "base": context.base_commit,
        "delivered": _delivered_commit_of_tree(context),
        "deliveries": [*reversed(context.deliveries)],
        "follows": context.delivered != "no" and bool(context.target),
        "bounds": context.bounds_ref,
        **({"seen_tip": context.rewritten_tip} if context.rewritten_tip else {}),
        **_recorded_document_refs(context),
    }


def task_rewrite_gate_input(context: TaskContext) -> dict[str, Any]:
    """Bound to where the branch was when the person was shown what it has lost."""
    shown_refs = _nonempty_texts(context, branch=context.detail_ref, patch=context.patch_ref)
    return {"digest": context.rewritten_tip, "choices": ["approve", "reject"], "shown": shown_refs}


def decision_gate_input(context: TaskContext) -> dict[str, Any]:
    """Bound to the tree and to every document: what is accepted is exactly what was shown."""
    files = ("code/diff.patch", "review/plan-review.json", "review/code-review.json", "test/report.json")
    document_refs = {name.rpartition("/")[2]: context.documents.get(name, "") for name in files}
    return {
        "digest": decision_digest(context),
        "choices": DECISION_CHOICES,
        "shown": _nonempty_texts(context, **document_refs, detail=context.detail_ref),
    }


def decision_digest(context: TaskContext) -> str:
    """What a decision is about."""
    return digest_of({"tree": context.tree, "base": context.base_commit, "artifacts": context.artifacts})


def task_delivery_input(context: TaskContext) -> dict[str, Any]:
    return {
        **_current_change_refs(context),
        "form": context.deliver,
        "target": context.target,
        "base": context.base_commit,
        "task": context.task_ref,
        "confirmed_by": context.decided_by,
        "accepted_by": context.accepted_by if context.accepted_tree == context.tree else "",
        "contract": context.artifacts.get("planning/planning.ai.json", ""),
        "results": context.results_ref,
        "bounds": context.bounds_ref,
        "delivered": _delivered_commit_of_tree(context),
        "deliveries": [*reversed(context.deliveries)],
        "ref": context.delivered_ref,
        "url": context.url_ref,
    }


def _delivered_commit_of_tree(context: TaskContext) -> str:
    """The commit of this very change, where it was delivered before."""
    return (
        context.delivered_commit
        if context.delivered == "yes" and context.delivered_tree == context.tree
        else ""
    )


def task_revert_input(context: TaskContext) -> dict[str, Any]:
    earlier = [commit for commit in reversed(context.deliveries) if commit != context.delivered_commit]
    request_refs = {"target": context.target, "task": context.task_ref, "person": context.decided_by}
    return {"commit": context.delivered_commit, "also": earlier, **request_refs}


# ── every phase ─────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_record_input(context: TaskContext) -> dict[str, Any]:
    plan_refs = {
        "draft": context.draft.get("reply", ""),
        "comments": _reply_refs(context.comments),
        "answers": context.answers,
    }
    return {
        "phase": "planning",
        "round": context.round,
        **plan_refs,
        "bounds": context.bounds_ref,
        **_recorded_document_refs(context),
    }


def plan_review_record_input(context: TaskContext) -> dict[str, Any]:
    review_refs = {
        "opinions": _reply_refs(context.plan_opinions),
        "providers": context.providers,
        "bounds": context.bounds_ref,
    }
    return {"phase": "plan_review", "round": context.round, **review_refs, **_recorded_document_refs(context)}


def code_record_input(context: TaskContext) -> dict[str, Any]:
    stands = {
        "base": context.base_commit,
        "base_tree": context.base_tree,
        "bounds": context.bounds_ref,
        "deliveries": context.deliveries,
    }
    change_refs = {
        "commands": context.commands_ref,
        "crew": context.codegen == "roundtable",
        "baseline": context.baseline_ref,
    }
    return {
        "phase": "codegen",
        "turn": context.turn,
        **stands,
        **change_refs,
        **_current_change_refs(context),
        **_recorded_document_refs(context),
    }


def code_review_record_input(context: TaskContext) -> dict[str, Any]:
    review_refs = {"opinions": _reply_refs(context.code_opinions), "providers": context.providers}
    return {
        "phase": "review",
        "turn": context.turn,
        **review_refs,
        **_current_change_refs(context),
        **_recorded_document_refs(context),
    }


def test_record_input(context: TaskContext) -> dict[str, Any]:
    result_refs = {"results": context.results_ref, "checks": context.checks}
    return {
        "phase": "test",
        "turn": context.turn,
        **result_refs,
        **_current_change_refs(context),
        **_recorded_document_refs(context),
    }


def decision_record_input(context: TaskContext) -> dict[str, Any]:
    decision_data = {"decision": context.decision, "person": context.decided_by, "reason": context.reason}
    return {
        "phase": "accept",
        **decision_data,
        **_current_change_refs(context),
        **_recorded_document_refs(context),
    }


def revert_record_input(context: TaskContext) -> dict[str, Any]:
    revert_data = {
        "person": context.decided_by,
        "reason": context.reason,
        "revert": context.revert,
        "target": context.target,
    }
    went = {"delivered": context.delivered_commit, "reverted": context.reverted_commit}
    return {"phase": "revert", **revert_data, **went, **_recorded_document_refs(context)}


def plan_inspection_input(context: TaskContext) -> dict[str, Any]:
    return _phase_inspection_input(context, "planning")


def plan_review_inspection_input(context: TaskContext) -> dict[str, Any]:
    return _phase_inspection_input(context, "plan_review")


def code_inspection_input(context: TaskContext) -> dict[str, Any]:
    return _phase_inspection_input(context, "codegen")


def code_review_inspection_input(context: TaskContext) -> dict[str, Any]:
    return _phase_inspection_input(context, "review")


def test_inspection_input(context: TaskContext) -> dict[str, Any]:
    return _phase_inspection_input(context, "test")


def decision_inspection_input(context: TaskContext) -> dict[str, Any]:
    return _phase_inspection_input(context, "accept")


def revert_inspection_input(context: TaskContext) -> dict[str, Any]:
    return _phase_inspection_input(context, "revert")


def _phase_inspection_input(context: TaskContext, phase: str) -> dict[str, Any]:
    return {"phase": phase, "told": context.told_ref, **_recorded_document_refs(context)}


def _recorded_document_refs(context: TaskContext) -> dict[str, Any]:
    return {"artifacts": context.artifacts, "documents": context.documents}


def _reply_refs(replies: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {role: reply.get("reply", "") for role, reply in replies.items()}


def document_restore_input(context: TaskContext) -> dict[str, Any]:
    change_refs = {
        "commit": context.commit or context.base_commit,
        "base": context.base_commit,
        **context.laid,
    }
    return {**_recorded_document_refs(context), **change_refs, "tree": context.tree, "told": context.told_ref}


def plan_adoption_input(context: TaskContext) -> dict[str, Any]:
    """Exactly what the person was shown, and nothing that came later."""
    return {**_recorded_document_refs(context), "seen": context.seen}


def next_phase_gate_input(context: TaskContext) -> dict[str, Any]:
    return {
        "digest": inspection_digest(context),
        "choices": ["approve", "rework"],
        "shown": _nonempty_texts(context, told=context.told_ref),
    }


def damage_gate_input(context: TaskContext) -> dict[str, Any]:
    choices = ["restore", "adopt"] if can_adopt_damage(context) else ["restore"]
    shown_refs = _nonempty_texts(context, damage=context.detail_ref, failed=context.repair_ref)
    return {"digest": inspection_digest(context), "choices": choices, "shown": shown_refs}


def retry_gate_input(context: TaskContext) -> dict[str, Any]:
    return {
        "digest": inspection_digest(context),
        "choices": ["retry"],
        "shown": _nonempty_texts(context, detail=context.detail_ref, told=context.told_ref),
    }


def _nonempty_texts(_c: TaskContext, **texts: str) -> dict[str, str]:
    return {name: ref for name, ref in texts.items() if ref}


def _current_change_refs(context: TaskContext) -> dict[str, Any]:
    return {"commit": context.commit or context.base_commit, "tree": context.tree}


def _task_agent_input(
    context: TaskContext, role: str, prompt: str, mode: str = "proposal", **texts: str
) -> dict[str, Any]:
    session = context.sessions.get(role)
    answers = [given["text"] for given in context.answers]
    words = {f"note_{n}": ref for n, ref in enumerate((*answers, *context.notes), 1)}
    given = {"task": context.task_ref, **words, **texts, "bounds": context.bounds_ref}
    return {
        "role": role,
        "mode": mode,
        "prompt": prompt,
        "round": context.turn if mode == "implementation" else context.round,
        "commit": next_work_base(context)["commit"],
        "base": context.base_commit,
        "texts": {name: ref for name, ref in given.items() if ref},
        "said": [name for name in ("task", *words) if given.get(name)],
        "must_fix": context.must_fix,
        **({"session": session} if session else {}),
    }
