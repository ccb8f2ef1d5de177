"""What each event changes in the context of a task: one pure fold for each.

**Invariant:** no state, event or row is named here.
"""

from typing import Any

from steersman.contracts.facts import AgentFacts, BaselineFacts, CheckFacts
from steersman.kernel.definition import ChildEnded, GateAnswer
from steersman.kernel.ops import Op
from steersman.machines.shared.tree_fragments import keep_session
from steersman.machines.task.context import PersonWords, TaskContext, next_work_base
from steersman.machines.task.facts import InspectFacts, PrerequisiteFacts, RecordFacts

# ── what people say ─────────────────────────────────────────────────────────────────────────────────────────────────


def fold_person_words(context: TaskContext, words: PersonWords) -> tuple[Op, ...]:
    return (
        ("set", "notes", [*context.notes[-20:], words.text]),
        ("append", "said", {"text": words.text, "person": words.person}),
    )


def fold_redo_request(context: TaskContext, words: PersonWords) -> tuple[Op, ...]:
    """A phase begins again, with what the person said about it."""
    notes = [*context.notes[-20:], words.text] if words.text else context.notes
    return (
        ("set", "notes", notes),
        *reset_phase_ops(),
        ("append", "said", {"redo": words.text, "person": words.person}),
    )


def fold_replan_request(context: TaskContext, words: PersonWords) -> tuple[Op, ...]:
    return (*fold_redo_request(context, words), ("add", "round", 1))


def fold_rework_request(context: TaskContext, answer: GateAnswer) -> tuple[Op, ...]:
    notes = [*context.notes[-20:], answer.text] if answer.text else context.notes
    return (
        ("set", "notes", notes),
        *reset_phase_ops(),
        ("append", "said", {"rework": answer.text, "person": answer.person}),
    )


def fold_next_request(_c: TaskContext, answer: GateAnswer) -> tuple[Op, ...]:
    return (("append", "said", {"next": answer.digest, "person": answer.person}),)


def fold_plan_answers(context: TaskContext, answer: GateAnswer) -> tuple[Op, ...]:
    """The answers go to the planner, who drafts again; they answer what this very plan has asked."""
    log_op = ("append", "said", {"answers": answer.text, "person": answer.person})
    plan_answer = {"text": answer.text, "plan": context.artifacts.get("planning/planning.ai.json", "")}
    return (
        ("set", "answers", [*context.answers, plan_answer]),
        ("add", "round", 1),
        ("set", "comments", {}),
        log_op,
    )


def fold_person_choice(_c: TaskContext, answer: GateAnswer) -> tuple[Op, ...]:
    return (
        ("set", "failures", {}),
        ("set", "detail_ref", ""),
        ("set", "repair_ref", ""),
        ("append", "said", {"choice": answer.choice, "person": answer.person, "reason": answer.reason}),
    )


# ── tasks that come first ────────────────────────────────────────────────────────────────────────────────────────────


def fold_prerequisites_present(_c: TaskContext, facts: PrerequisiteFacts) -> tuple[Op, ...]:
    """It begins on what the others have left."""
    return (
        ("set", "base_commit", facts.base),
        ("set", "base_tree", facts.base_tree),
        ("set", "detail_ref", ""),
    )


def fold_prerequisites_missing(_c: TaskContext, facts: PrerequisiteFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", facts.told_ref),)


# ── planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def fold_plan_draft(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    """A new draft: what was said about the one before is settled in it, or will be said again."""
    lead = context.planners[0]
    return (
        ("set", "draft", facts.reply or {}),
        ("set", "comments", {}),
        ("set", "failures", {}),
        ("set", "notes", []),
        ("set", "must_fix", []),
        ("put", "providers", lead, facts.provider),
        *keep_session(lead, facts),
    )


def fold_plan_comment(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    return _fold_role_reply(context, "comments", facts)


def _fold_role_reply(context: TaskContext, field: str, facts: AgentFacts) -> tuple[Op, ...]:
    """An answer is kept under its role; one that never came, or never fit, is counted."""
    if facts.error or facts.reply is None:
        return (
            ("put", "failures", field, context.failures.get(field, 0) + 1),
            _failure_detail_op(context, facts),
        )
    role = str(facts.reply["role"])
    reply_ops = (("put", field, role, facts.reply), ("put", "providers", role, facts.provider))
    return (*reply_ops, *keep_session(role, facts))


def fold_planning_round(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    """The draft is made again with all that was said about it."""
    return (*fold_plan_comment(context, facts), ("add", "round", 1))


def fold_planning_converged(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    """The last reply before the plan is recorded: of the lead planner, or of the last one that commented."""
    return fold_plan_draft(context, facts) if context.panel == "alone" else fold_plan_comment(context, facts)


def fold_scope_missing(_c: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    item = {
        "id": "scope",
        "text": "",
        "why": "the plan names no file that may be touched: name them in files",
    }
    return (("set", "must_fix", [item]), ("add", "round", 1))


# ── documents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def fold_recorded_documents(context: TaskContext, facts: RecordFacts) -> tuple[Op, ...]:
    """Every later inspection compares the disk with what was recorded here; what was taken off the record is not looked for."""
    digests = {name: digest for name, digest in {**context.artifacts, **facts.written}.items() if digest}
    return (
        ("set", "artifacts", digests),
        (
            "set",
            "documents",
            {name: ref for name, ref in {**context.documents, **facts.refs}.items() if name in digests},
        ),
        ("set", "told_ref", facts.told_ref),
        ("set", "detail_ref", ""),
        *_bounds_check_ops(context, facts),
        *_infrastructure_ops(facts),
    )


def _bounds_check_ops(context: TaskContext, facts: RecordFacts) -> tuple[Op, ...]:
    """Only a change is compared with the frozen plan."""
    if facts.beyond is None:
        return ()
    change_source = {"commit": context.commit or context.base_commit, "base": context.base_commit}
    return (
        ("set", "beyond", facts.beyond),
        ("set", "beyond_ref", facts.beyond_ref),
        ("set", "laid", change_source),
    )


def _infrastructure_ops(facts: RecordFacts) -> tuple[Op, ...]:
    if facts.infrastructure is None:
        return ()
    return (
        ("set", "infrastructure_ref", facts.infrastructure_ref),
        ("set", "instructions_ref", facts.instructions_ref),
    )


def fold_repair_failure(_c: TaskContext, facts: RecordFacts) -> tuple[Op, ...]:
    return (("set", "repair_ref", facts.error_ref),)


def fold_recording_failure(_c: TaskContext, facts: RecordFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", facts.error_ref),)


def fold_inspection(_c: TaskContext, facts: InspectFacts) -> tuple[Op, ...]:
    """What a person is shown, and what it was on disk when it was."""
    return (
        ("set", "seen", facts.seen),
        ("set", "says", _inspection_summary(facts)),
        ("set", "told_ref", facts.told_ref),
    )


def fold_document_damage(_c: TaskContext, facts: InspectFacts) -> tuple[Op, ...]:
    damage_summary = {**_inspection_summary(facts), "damaged": facts.damaged, "adoptable": facts.adoptable}
    return (
        ("set", "seen", facts.seen),
        ("set", "says", damage_summary),
        ("set", "detail_ref", facts.told_ref),
    )


def _inspection_summary(facts: InspectFacts) -> dict[str, Any]:
    field_names = (
        "blocking",
        "files",
        "flaws",
        "ok",
        "blocked",
        "decision",
        "copies",
        "outside",
        "overall_pass",
        "status",
    )
    return {name: value for name in field_names if (value := getattr(facts, name))}


# ── reviews ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def fold_plan_opinion(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    return _fold_role_reply(context, "plan_opinions", facts)


def fold_code_opinion(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    return _fold_role_reply(context, "code_opinions", facts)


def fold_plan_rejection(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    """The planner is given what the documents say against the plan."""
    return (
        *reset_phase_ops(),
        ("add", "round", 1),
        ("set", "must_fix", _document_must_fix(context, "review/plan-review.json")),
    )


def fold_code_rejection(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    return (
        *reset_phase_ops(),
        ("add", "turn", 1),
        ("set", "must_fix", _document_must_fix(context, "review/code-review.json")),
    )


def fold_flawed_plan(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    """Another plan, and another turn of code after it."""
    return (
        *reset_phase_ops(),
        ("add", "round", 1),
        ("add", "turn", 1),
        ("set", "must_fix", _document_must_fix(context, "review/code-review.json")),
    )


def fold_scope_mismatch(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    """What is outside is in the list of files; which files the plan lacks, only the coder can say."""
    item = {"id": "scope", "text": context.coder_ref, "why": "the coder says which files the plan lacks"}
    coder_items = [item] if context.coder_status == "scope_mismatch" else []
    return (
        *reset_phase_ops(),
        ("add", "round", 1),
        ("set", "must_fix", [*_document_must_fix(context, "code/files.json"), *coder_items]),
    )


def fold_bounds_violation(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    """A frozen plan cannot be widened: the coder begins again where it began, and learns what was not taken."""
    why = "the change left the frozen plan and was not taken: make it again, inside the plan"
    must_fix_op = ("set", "must_fix", [{"id": "bounds", "text": context.beyond_ref, "why": why}])
    return (*reset_phase_ops(), ("add", "turn", 1), must_fix_op, ("set", "detail_ref", context.beyond_ref))


def fold_unclear_plan(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    item = {"id": "unclear", "text": context.coder_ref, "why": "the coder finds the plan unclear"}
    return (*reset_phase_ops(), ("set", "must_fix", [item]))


def fold_phase_entry(_c: TaskContext, _e: Any) -> tuple[Op, ...]:
    """A phase begins without opinions."""
    return reset_phase_ops()


def _document_must_fix(context: TaskContext, name: str) -> list[dict[str, str]]:
    """The document that says what is wrong, word for word."""
    return [{"id": name, "text": context.documents.get(name, ""), "why": f"{name} says what has to change"}]


def reset_phase_ops() -> tuple[Op, ...]:
    """What forgets the opinions, comments and failures of a phase."""
    return (
        ("set", "plan_opinions", {}),
        ("set", "code_opinions", {}),
        ("set", "comments", {}),
        ("set", "failures", {}),
        ("set", "seen", {}),
        ("set", "says", {}),
        ("set", "detail_ref", ""),
    )


# ── code and tests ──────────────────────────────────────────────────────────────────────────────────────────────────


def fold_task_baseline(_c: TaskContext, facts: BaselineFacts) -> tuple[Op, ...]:
    return (("set", "baseline_ref", facts.results_ref), ("set", "detail_ref", ""))


def fold_code_change(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    """The tree is another one, so everything that was accepted before is void."""
    reply = facts.reply or {}
    return (
        ("set", "before", next_work_base(context)),
        ("set", "commands_ref", reply.get("outside", "")),
        ("set", "commit", facts.commit),
        ("set", "tree", facts.tree),
        ("set", "patch_ref", facts.patch_ref),
        ("set", "infrastructure_ref", facts.infrastructure_ref),
        ("set", "instructions_ref", facts.instructions_ref),
        ("set", "coder_status", reply.get("status", "")),
        ("set", "coder_ref", reply.get("reply", "")),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "notes", []),
        ("set", "detail_ref", facts.problems_ref),
        ("put", "providers", context.coder, facts.provider),
        *keep_session(context.coder, facts),
    )


def fold_crew_change(context: TaskContext, child: ChildEnded) -> tuple[Op, ...]:
    return (
        ("set", "before", next_work_base(context)),
        ("set", "commands_ref", ""),
        ("set", "commit", child.commit),
        ("set", "tree", child.tree),
        ("set", "patch_ref", ""),
        ("set", "coder_status", "done"),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "notes", []),
    )


def fold_empty_change(_c: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    item = {"id": "no-change", "text": "", "why": "the coder changed nothing"}
    return (*reset_phase_ops(), ("add", "turn", 1), ("set", "must_fix", [item]))


def fold_suite_results(_c: TaskContext, facts: CheckFacts) -> tuple[Op, ...]:
    counted = {
        name: value
        for name in ("passed", "failed", "blocked", "timeout", "no_tests", "known", "flaky", "tests", "missing", "doubts", "error")
        if (value := getattr(facts, name))
    }  # fmt: skip
    return (
        ("set", "checks", {**counted, "tree": facts.tree, "failed_commands": list(facts.failed_commands)}),
        ("set", "results_ref", facts.results_ref),
        ("set", "failure_ref", facts.first_ref),
        ("set", "evidence_ref", facts.questions_ref),
    )


def fold_test_failures(context: TaskContext, _e: InspectFacts) -> tuple[Op, ...]:
    """The coder is given the report, and of the first suite that failed what it printed."""
    failure = {"id": "checks", "text": context.failure_ref, "why": "a check failed"}
    points = [*_document_must_fix(context, "test/report.json"), *([failure] if context.failure_ref else [])]
    return (*reset_phase_ops(), ("add", "turn", 1), ("set", "must_fix", points))


def fold_task_evidence_declined(_c: TaskContext, answer: GateAnswer) -> tuple[Op, ...]:
    why = "the operator does not accept what was changed about the tests"
    return (
        *reset_phase_ops(),
        ("add", "turn", 1),
        ("set", "must_fix", [{"id": "evidence", "text": answer.text, "why": why}]),
    )


def fold_agent_failure(context: TaskContext, facts: AgentFacts) -> tuple[Op, ...]:
    """Keeps why the agent failed. Agents that were asked beside it and have answered are not asked again."""
    fits = not facts.error and facts.reply is not None
    ops = (op for field in context.failures for op in _fold_role_reply(context, field, facts)) if fits else ()
    return (*ops, ("set", "failures", {}), _failure_detail_op(context, facts))


def _failure_detail_op(context: TaskContext, facts: AgentFacts) -> Op:
    return ("set", "detail_ref", facts.detail_ref or facts.problems_ref or context.detail_ref)
