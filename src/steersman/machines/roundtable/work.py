"""What each state of a roundtable asks for: inputs of jobs, as values. Nothing here decides when they run."""

from typing import Any

from steersman.machines.roundtable.context import Context


def propose(c: Context) -> dict[str, Any]:
    return _agent(
        c, "coder", "proposal", "propose", task=c.task_ref, followup=c.followup_ref, previous=c.proposal_ref
    )


def discuss_review(c: Context) -> dict[str, Any]:
    return _agent(c, "reviewer", "proposal", "discuss_review", task=c.task_ref, proposal=c.proposal_ref)


def discuss_test(c: Context) -> dict[str, Any]:
    return _agent(
        c,
        "tester",
        "proposal",
        "discuss_test",
        task=c.task_ref,
        proposal=c.proposal_ref,
        review=c.reviewer_notes_ref,
    )


def prepare(c: Context) -> dict[str, Any]:
    return {"commit": c.commit or c.base_commit}


def measure(c: Context) -> dict[str, Any]:
    return {"commit": c.base_commit, "tree": c.base_tree}


def implement(c: Context) -> dict[str, Any]:
    asked = _agent(
        c,
        "coder",
        "implementation",
        "implement",
        task=c.task_ref,
        followup=c.followup_ref,
        plan=c.proposal_ref,
        reviewer_notes=c.reviewer_notes_ref,
        tester_notes=c.tester_notes_ref,
    )
    told = {"must_fix": c.must_fix, "contract_digest": c.confirmed_digest, "baseline": c.baseline_ref}
    return {**asked, **told, "writes": True}


def review(c: Context) -> dict[str, Any]:
    asked = _agent(
        c, "reviewer", "implementation", "review", task=c.task_ref, plan=c.proposal_ref, patch=c.patch_ref
    )
    known = [{"id": k, "text": f["text"]} for k, f in c.findings.items() if f["state"] == "open"]
    told = {"must_fix": known, "points": "open findings"}
    return {**asked, **told, "contract": "reviewer", "instructions": c.instructions_ref}


def ask_tester(c: Context) -> dict[str, Any]:
    asked = _agent(
        c,
        "tester",
        "implementation",
        "ask_tester",
        task=c.task_ref,
        notes=c.tester_notes_ref,
        patch=c.patch_ref,
    )
    return {**asked, "contract": "tester", "instructions": c.instructions_ref}


def run_checks(c: Context) -> dict[str, Any]:
    return {
        "commit": c.commit,
        "tree": c.tree,
        "base": c.base_commit,
        "commands": c.commands_ref,
        "baseline": c.baseline_ref,
    }


def ask_evidence(c: Context) -> dict[str, Any]:
    shown = {"changed": c.infrastructure_ref, "questions": c.questions_ref, "patch": c.patch_ref}
    return {
        "digest": c.tree,
        "choices": ["approve", "rework", "reject"],
        "shown": {name: ref for name, ref in shown.items() if ref},
    }


def recall(c: Context) -> dict[str, Any]:
    return {"commit": c.commit, "tree": c.tree, "results": c.results_ref, "baseline": c.baseline_ref}


def ask_person(c: Context) -> dict[str, Any]:
    return {
        "digest": c.contract_digest,
        "choices": ["approve", "rework", "reject"],
        "shown": {"proposal": c.proposal_ref, "reviewer": c.reviewer_notes_ref, "tester": c.tester_notes_ref},
    }


def look_at_base(c: Context) -> dict[str, Any]:
    return {"commit": c.commit, "base": c.base_commit, "target": c.target, "seen_tip": c.rewritten_tip}


def ask_about_base(c: Context) -> dict[str, Any]:
    shown = {"branch": c.base_told_ref, "patch": c.patch_ref}
    return {
        "digest": c.rewritten_tip if c.base == "rewritten" else c.tree,
        "choices": ["approve", "reject"],
        "shown": {name: ref for name, ref in shown.items() if ref},
    }


def ask_recheck(c: Context) -> dict[str, Any]:
    return {"digest": c.tree, "choices": ["approve", "reject"], "shown": {"detail": c.detail_ref}}


def ask_merge(c: Context) -> dict[str, Any]:
    return {
        "digest": c.tree,
        "choices": ["approve", "reject"],
        "shown": {
            "patch": c.patch_ref,
            "results": c.results_ref,
            **({"branch": c.base_told_ref} if c.base_told_ref else {}),
        },
    }


def deliver(c: Context) -> dict[str, Any]:
    return {
        "form": c.deliver,
        "target": c.target,
        "commit": c.commit,
        "tree": c.tree,
        "base": c.base_commit,
        "task": c.task_ref,
        "confirmed_by": c.merged_by or c.confirmed_by,
        "accepted_by": c.accepted_by if c.accepted_tree == c.tree else "",
        "contract": c.confirmed_digest,
        "results": c.results_ref,
    }


def revert(c: Context) -> dict[str, Any]:
    return {
        "commit": c.delivered_commit,
        "target": c.revert_branch,
        "task": c.task_ref,
        "person": c.reverted_by,
    }


def _agent(c: Context, role: str, mode: str, prompt: str, **texts: str) -> dict[str, Any]:
    session = c.sessions.get(role)
    return {
        "role": role,
        "mode": mode,
        "prompt": prompt,
        "round": max(c.round, 1) if mode == "implementation" else c.followups.count + 1,
        "commit": c.commit or c.base_commit,
        "base": c.base_commit,
        "texts": {name: ref for name, ref in texts.items() if ref},
        "said": [name for name in ("task", "followup") if texts.get(name)],
        **({"session": session} if session else {}),
    }
