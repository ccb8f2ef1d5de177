"""What each state of a roundtable asks for: inputs of jobs, as values. Nothing here decides when they run."""

from typing import Any

from steersman.machines.roundtable.context import RoundtableContext


def proposal_input(context: RoundtableContext) -> dict[str, Any]:
    return _roundtable_agent_input(
        context,
        "coder",
        "proposal",
        "propose",
        task=context.task_ref,
        followup=context.followup_ref,
        previous=context.proposal_ref,
    )


def review_discussion_input(context: RoundtableContext) -> dict[str, Any]:
    return _roundtable_agent_input(
        context,
        "reviewer",
        "proposal",
        "discuss_review",
        task=context.task_ref,
        proposal=context.proposal_ref,
    )


def test_discussion_input(context: RoundtableContext) -> dict[str, Any]:
    return _roundtable_agent_input(
        context,
        "tester",
        "proposal",
        "discuss_test",
        task=context.task_ref,
        proposal=context.proposal_ref,
        review=context.reviewer_notes_ref,
    )


def implementation_input(context: RoundtableContext) -> dict[str, Any]:
    agent_input = _roundtable_agent_input(
        context,
        "coder",
        "implementation",
        "implement",
        task=context.task_ref,
        followup=context.followup_ref,
        plan=context.proposal_ref,
        reviewer_notes=context.reviewer_notes_ref,
        tester_notes=context.tester_notes_ref,
    )
    round_input = {
        "must_fix": context.must_fix,
        "contract_digest": context.confirmed_digest,
        "baseline": context.baseline_ref,
    }
    return {**agent_input, **round_input, "writes": True}


def change_review_input(context: RoundtableContext) -> dict[str, Any]:
    agent_input = _roundtable_agent_input(
        context,
        "reviewer",
        "implementation",
        "review",
        task=context.task_ref,
        plan=context.proposal_ref,
        patch=context.patch_ref,
    )
    known = [{"id": k, "text": f["text"]} for k, f in context.findings.items() if f["state"] == "open"]
    round_input = {"must_fix": known, "points": "open findings"}
    return {**agent_input, **round_input, "contract": "reviewer", "instructions": context.instructions_ref}


def tester_input(context: RoundtableContext) -> dict[str, Any]:
    agent_input = _roundtable_agent_input(
        context,
        "tester",
        "implementation",
        "ask_tester",
        task=context.task_ref,
        notes=context.tester_notes_ref,
        patch=context.patch_ref,
    )
    return {**agent_input, "contract": "tester", "instructions": context.instructions_ref}


def check_run_input(context: RoundtableContext) -> dict[str, Any]:
    return {
        "commit": context.commit,
        "tree": context.tree,
        "base": context.base_commit,
        "commands": context.commands_ref,
        "baseline": context.baseline_ref,
    }


def roundtable_evidence_gate_input(context: RoundtableContext) -> dict[str, Any]:
    shown_refs = {
        "changed": context.infrastructure_ref,
        "questions": context.questions_ref,
        "patch": context.patch_ref,
    }
    return {
        "digest": context.tree,
        "choices": ["approve", "rework", "reject"],
        "shown": {name: ref for name, ref in shown_refs.items() if ref},
    }


def evidence_recall_input(context: RoundtableContext) -> dict[str, Any]:
    return {
        "commit": context.commit,
        "tree": context.tree,
        "results": context.results_ref,
        "baseline": context.baseline_ref,
    }


def proposal_gate_input(context: RoundtableContext) -> dict[str, Any]:
    return {
        "digest": context.contract_digest,
        "choices": ["approve", "rework", "reject"],
        "shown": {
            "proposal": context.proposal_ref,
            "reviewer": context.reviewer_notes_ref,
            "tester": context.tester_notes_ref,
        },
    }


def roundtable_base_input(context: RoundtableContext) -> dict[str, Any]:
    return {
        "commit": context.commit,
        "base": context.base_commit,
        "target": context.target,
        "seen_tip": context.rewritten_tip,
    }


def moved_base_gate_input(context: RoundtableContext) -> dict[str, Any]:
    shown_refs = {"branch": context.base_told_ref, "patch": context.patch_ref}
    return {
        "digest": context.rewritten_tip if context.base == "rewritten" else context.tree,
        "choices": ["approve", "reject"],
        "shown": {name: ref for name, ref in shown_refs.items() if ref},
    }


def recheck_gate_input(context: RoundtableContext) -> dict[str, Any]:
    return {"digest": context.tree, "choices": ["approve", "reject"], "shown": {"detail": context.detail_ref}}


def merge_gate_input(context: RoundtableContext) -> dict[str, Any]:
    return {
        "digest": context.tree,
        "choices": ["approve", "reject"],
        "shown": {
            "patch": context.patch_ref,
            "results": context.results_ref,
            **({"branch": context.base_told_ref} if context.base_told_ref else {}),
        },
    }


def roundtable_delivery_input(context: RoundtableContext) -> dict[str, Any]:
    return {
        "form": context.deliver,
        "target": context.target,
        "commit": context.commit,
        "tree": context.tree,
        "base": context.base_commit,
        "task": context.task_ref,
        "confirmed_by": context.merged_by or context.confirmed_by,
        "accepted_by": context.accepted_by if context.accepted_tree == context.tree else "",
        "contract": context.confirmed_digest,
        "results": context.results_ref,
    }


def roundtable_revert_input(context: RoundtableContext) -> dict[str, Any]:
    return {
        "commit": context.delivered_commit,
        "target": context.revert_branch,
        "task": context.task_ref,
        "person": context.reverted_by,
    }


def _roundtable_agent_input(
    context: RoundtableContext, role: str, mode: str, prompt: str, **texts: str
) -> dict[str, Any]:
    session = context.sessions.get(role)
    return {
        "role": role,
        "mode": mode,
        "prompt": prompt,
        "round": max(context.round, 1) if mode == "implementation" else context.followups.count + 1,
        "commit": context.commit or context.base_commit,
        "base": context.base_commit,
        "texts": {name: ref for name, ref in texts.items() if ref},
        "said": [name for name in ("task", "followup") if texts.get(name)],
        **({"session": session} if session else {}),
    }
