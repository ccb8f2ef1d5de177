"""What a roundtable run knows, and what each event changes in it.

Texts are payload names. Lists that grow are logs. **Invariant:** no state, event or row is named here.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.facts import AgentFacts, BaseFacts, BaselineFacts, CheckFacts, DeliveryFacts
from steersman.errors import UserError
from steersman.kernel.canonical import digest_of
from steersman.kernel.definition import GateAnswer
from steersman.kernel.ops import Log, Op
from steersman.machines.shared.tree_fragments import keep_session


class RoundtableTaskReceived(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's task, and the commit it starts from."""

    task_ref: str
    person: str = ""


class RevertRequested(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person wants a delivered change reverted: on which branch (empty: the one it went to), and who asks."""

    branch: Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x20]*$")] = ""
    person: Annotated[str, Meta(max_length=200)] = ""


class RoundtableContext(msgspec.Struct, kw_only=True):
    """The run's knowledge."""

    # fixed at creation
    mode: Literal["proposal", "implementation"]
    max_iterations: Annotated[int, Meta(ge=1, le=50)] = 3
    repeated: Literal["same_command", "same_failure"] = "same_command"
    same_finding: Annotated[int, Meta(ge=2, le=50)] = 3
    max_moves: Annotated[int, Meta(ge=1, le=20)] = 3
    # None: the caller takes the tree.
    deliver: Literal["branch", "merge", "draft-pr", "none"] = "branch"
    red_base: Literal["stop", "fix"] = "stop"  # fix: this run has to make failing checks pass
    target: str = ""
    task_ref: str
    config_ref: str = ""
    base_commit: str = ""
    base_tree: str = ""
    # memory: set by rows, followed exactly by the check
    phase: str = "proposal"
    outcome: str | None = None
    last_round_outcome: str | None = None
    confirmation: str = "none"
    workspace: str = "unprepared"
    tester: str = "unasked"
    discussion: str = "open"
    baseline: str = "unmeasured"
    infrastructure: str = "untouched"
    evidence: str = "none"
    handover: str = "none"
    base: str = "unseen"
    # what the rounds have brought
    round: int = 0
    commit: str = ""
    tree: str = ""
    patch_ref: str = ""
    infrastructure_ref: str = ""
    instructions_ref: str = ""
    baseline_ref: str = ""
    questions_ref: str = ""
    accepted_tree: str = ""
    accepted_by: str = ""
    proposal_ref: str = ""
    reviewer_notes_ref: str = ""
    tester_notes_ref: str = ""
    followup_ref: str = ""
    contract: dict[str, Any] = {}
    contract_digest: str = ""
    confirmed_digest: str = ""
    confirmed_by: str = ""
    must_fix: list[dict[str, str]] = []
    findings: dict[str, dict[str, Any]] = {}
    tries: list[dict[str, Any]] = []  # what the coder left, round by round
    escalation: dict[str, Any] = {}  # what stayed open, since when, and what was tried
    commands_ref: str = ""
    failed_commands: list[str] = []
    failure_keys: list[str] = []
    results_ref: str = ""
    tests: int = 0
    checks_passed: int = 0
    rewritten_tip: str = ""  # where the rewritten branch was that a person was shown
    base_told_ref: str = ""  # what the last look at the branch said
    merged_by: str = ""  # who has approved the merge of this tree
    delivered_ref: str = ""
    delivered_commit: str = ""
    url_ref: str = ""  # where the pull request is
    revert_branch: str = ""
    reverted_by: str = ""
    reverted_commit: str = ""
    detail_ref: str = ""
    sessions: dict[str, str] = {}  # by role: the session of its last call that succeeded
    rounds: Log = Log()
    followups: Log = Log()


ROUNDTABLE_FIXED_FIELDS = (
    "mode", "max_iterations", "repeated", "same_finding", "deliver", "red_base", "target", "task_ref", "config_ref", "base_commit", "base_tree",
)  # fmt: skip


def begin_roundtable(request: dict[str, Any]) -> tuple[RoundtableTaskReceived, RoundtableContext]:
    """What the first event carries, and the context of a new run, from a request in plain words."""
    fixed_values = {name: request[name] for name in ROUNDTABLE_FIXED_FIELDS if name in request}
    try:
        context = msgspec.convert({"mode": "proposal", **fixed_values}, RoundtableContext)
    except msgspec.ValidationError as error:
        raise UserError(f"roundtable cannot begin like this: {error}") from error
    return RoundtableTaskReceived(request["task_ref"], request.get("person", "")), context


def upcast_add_sessions(before: dict[str, Any]) -> dict[str, Any]:
    """A context from before sessions were remembered."""
    return {**before, "sessions": {}}


def upcast_unchanged(before: dict[str, Any]) -> dict[str, Any]:
    """A context whose newer fields all have the value that they begin with."""
    return before


def upcast_red_base_fix(before: dict[str, Any]) -> dict[str, Any]:
    """A context of the time when failing checks on the base tree stopped nothing."""
    return {**before, "red_base": "fix"}


def fold_coder_proposal(_c: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    return (("set", "proposal_ref", facts.text_ref), *keep_session("coder", facts))


def fold_reviewer_notes(_c: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    return (("set", "reviewer_notes_ref", facts.text_ref), *keep_session("reviewer", facts))


def fold_discussion_contract(context: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    """The discussion becomes a contract, bound by its digest: refs are keyed digests of the texts themselves."""
    contract = {
        "version": 1,
        "source_round": context.followups.count + 1,
        "task": context.task_ref,
        "followup": context.followup_ref,
        "core_plan": context.proposal_ref,
        "reviewer_notes": context.reviewer_notes_ref,
        "tester_notes": facts.text_ref,
        "base_tree": context.base_tree,
    }
    return (
        ("set", "tester_notes_ref", facts.text_ref),
        ("set", "contract", contract),
        ("set", "contract_digest", digest_of(contract)),
        *keep_session("tester", facts),
    )


def fold_proposal_summary(context: RoundtableContext, _e: Any) -> tuple[Op, ...]:
    summary = {"kind": "proposal", "round": context.followups.count + 1, "contract": context.contract_digest}
    return (("append", "rounds", summary),)


def is_confirming_answer(context: RoundtableContext, answer: GateAnswer) -> bool:
    """Whether an answer approves exactly the proposal that waits."""
    waits = context.outcome == "await_operator_confirm"
    return waits and answer.choice == "approve" and answer.digest == context.contract_digest


def fold_followup_message(context: RoundtableContext, answer: GateAnswer) -> tuple[Op, ...]:
    """A follow-up starts afresh: iterations and failure memory, never budgets."""
    followup = {"choice": answer.choice, "text": answer.text, "person": answer.person}
    ops: tuple[Op, ...] = (
        ("append", "followups", followup),
        ("set", "round", 0),
        ("set", "must_fix", []),
        ("set", "failed_commands", []),
        ("set", "failure_keys", []),
        ("set", "detail_ref", ""),
        ("set", "tries", []),
        ("set", "escalation", {}),
        *(("put", "findings", k, {**f, "rounds": 0}) for k, f in _open_findings(context)),
    )
    if answer.text:
        ops += (("set", "followup_ref", answer.text),)
    if is_confirming_answer(context, answer):
        ops += (("set", "confirmed_digest", context.contract_digest), ("set", "confirmed_by", answer.person))
    return ops


def fold_roundtable_baseline(_c: RoundtableContext, facts: BaselineFacts) -> tuple[Op, ...]:
    return (("set", "baseline_ref", facts.results_ref),)


def fold_round_start(_c: RoundtableContext, _e: Any) -> tuple[Op, ...]:
    return (("add", "round", 1),)


def fold_coder_change(context: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    """The tree is another one, so everything that was accepted before is void."""
    attempt = {"round": context.round, "tree": facts.tree, "patch": facts.patch_ref}
    return (
        ("set", "commit", facts.commit),
        ("set", "tree", facts.tree),
        ("set", "patch_ref", facts.patch_ref),
        ("set", "infrastructure_ref", facts.infrastructure_ref),
        ("set", "instructions_ref", facts.instructions_ref),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "questions_ref", ""),
        ("set", "tries", [*context.tries, attempt]),
        *((("set", "detail_ref", ""),) if context.detail_ref else ()),
        *keep_session("coder", facts),
    )


def fold_coder_no_change(context: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    """The tree is the one before; a session that tells of edits which were not kept is not gone on with."""
    if facts.problems_ref:
        why = "what the coder left cannot be recorded, so nothing of it was kept: do it again without this"
        item = {"id": "not-recorded", "text": facts.problems_ref, "why": why}
        detail_op = ("set", "detail_ref", facts.problems_ref)
        return (
            ("set", "must_fix", [*context.must_fix[:20], item]),
            detail_op,
            _round_summary_op(context, "not_recorded"),
        )
    item = {"id": "no-change", "text": "", "why": "the coder changed nothing"}
    must_fix = ("set", "must_fix", [*context.must_fix[:20], item])
    return (must_fix, *keep_session("coder", facts), _round_summary_op(context, "coder_changed_nothing"))


def fold_review_changes(context: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    """What the reviewer wants now, and what it wanted before and did not call fixed."""
    items = [{"id": i["id"], "text": i["text"]} for i in _requested_items(facts)]
    fixed = set((facts.reply or {}).get("fixed", ()))
    ids = {i["id"] for i in items}
    items += [
        {"id": k, "text": f["text"]} for k, f in _open_findings(context) if k not in ids and k not in fixed
    ]
    review_ops = (("set", "must_fix", items), *_finding_ops(context, items), *keep_session("reviewer", facts))
    return (*review_ops, _round_summary_op(context, "changes_requested"))


def fold_review_approval(context: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    return (("set", "must_fix", []), *_finding_ops(context, []), *keep_session("reviewer", facts))


def fold_invalid_review(_c: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", facts.problems_ref),)


def _requested_items(facts: AgentFacts) -> list[dict[str, str]]:
    return list((facts.reply or {}).get("must_fix", ()))


def _open_findings(context: RoundtableContext) -> list[tuple[str, dict[str, Any]]]:
    return [(k, f) for k, f in context.findings.items() if f["state"] == "open"]


def _finding_ops(context: RoundtableContext, items: list[dict[str, str]]) -> tuple[Op, ...]:
    """A finding keeps its id over the rounds, and each review that leaves it open is counted."""
    now = {i["id"] for i in items}
    fixed_findings = [(k, f) for k, f in _open_findings(context) if k not in now]
    ops: list[Op] = [
        ("put", "findings", k, {**f, "state": "fixed", "fixed": context.round}) for k, f in fixed_findings
    ]
    before = dict(_open_findings(context))
    for i in items:
        known = before.get(i["id"], {"since": context.round, "rounds": 0})
        review_counts = {"since": known["since"], "seen": context.round, "rounds": known["rounds"] + 1}
        ops.append(("put", "findings", i["id"], {"text": i["text"], "state": "open", **review_counts}))
    return tuple(ops)


def is_finding_stuck(context: RoundtableContext) -> bool:
    """Whether a finding stays open although there are iterations left; without any, that is the reason to stop."""
    return context.round < context.max_iterations and any(
        f["rounds"] >= context.same_finding for _, f in _open_findings(context)
    )


def fold_escalation_pack(context: RoundtableContext, _e: Any) -> tuple[Op, ...]:
    """The pack for the person who takes over: what stayed open, since which round, and what was tried."""
    open_findings = [
        {"id": k, "text": f["text"], "since": f["since"], "rounds": f["rounds"]}
        for k, f in _open_findings(context)
    ]
    return (
        (
            "set",
            "escalation",
            {"findings": open_findings, "must_fix": context.must_fix, "tried": context.tries},
        ),
    )


def fold_tester_commands(_c: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    return (
        ("set", "commands_ref", (facts.reply or {}).get("commands_ref", "")),
        *keep_session("tester", facts),
    )


def fold_invalid_tester_reply(context: RoundtableContext, facts: AgentFacts) -> tuple[Op, ...]:
    item = {
        "id": "tester-reply",
        "text": facts.problems_ref,
        "why": "the tester's reply did not fit its contract",
    }
    detail_op = ("set", "detail_ref", facts.problems_ref)
    return (("set", "must_fix", [item]), detail_op, _round_summary_op(context, "tester_schema_invalid"))


def fold_checks_failed(context: RoundtableContext, facts: CheckFacts) -> tuple[Op, ...]:
    """Must-fix with the failed command and what it printed; this round's failures are remembered for the next."""
    item = {"id": "checks", "text": facts.first_ref, "why": "a check failed"}
    return (
        ("set", "must_fix", [item]),
        ("set", "failed_commands", list(facts.failed_commands)),
        ("set", "failure_keys", list(facts.failure_keys)),
        *_check_result_ops(facts),
        _round_summary_op(context, "test_failed"),
    )


def fold_checks_stopped(context: RoundtableContext, facts: CheckFacts) -> tuple[Op, ...]:
    return fold_checks_failed(context, facts)


def fold_checks_passed(context: RoundtableContext, facts: CheckFacts) -> tuple[Op, ...]:
    return (
        ("set", "must_fix", []),
        ("set", "failed_commands", []),
        ("set", "failure_keys", []),
        *_check_result_ops(facts),
        *(
            (("set", "questions_ref", facts.questions_ref),)
            if facts.questions_ref != context.questions_ref
            else ()
        ),
        _round_summary_op(context, "approved"),
    )


def is_roundtable_tree_proven(context: RoundtableContext, facts: CheckFacts) -> bool:
    """Whether something passed, with tests, on the current tree, and nothing failed or was kept from running."""
    against = facts.failed + facts.timeout + facts.no_tests + facts.blocked
    speaks = facts.passed + facts.known + facts.flaky > 0 and facts.tests > 0
    return speaks and not against and not facts.error and facts.tree == context.tree


def fold_questioned_evidence(_c: RoundtableContext, facts: CheckFacts) -> tuple[Op, ...]:
    return (*_check_result_ops(facts), ("set", "questions_ref", facts.questions_ref))


def fold_evidence_refusal(context: RoundtableContext, answer: GateAnswer) -> tuple[Op, ...]:
    item = {
        "id": "evidence",
        "text": answer.text,
        "why": "the operator does not accept what was changed about the tests",
    }
    return (("set", "must_fix", [item]), _round_summary_op(context, "evidence_declined"))


def _check_result_ops(facts: CheckFacts) -> tuple[Op, ...]:
    return (
        ("set", "results_ref", facts.results_ref),
        ("set", "tests", facts.tests),
        ("set", "checks_passed", facts.passed),
    )


def _round_summary_op(context: RoundtableContext, outcome: str) -> Op:
    return (
        "append",
        "rounds",
        {"kind": "round", "round": context.round, "outcome": outcome, "tree": context.tree},
    )


def fold_base_look(_c: RoundtableContext, facts: BaseFacts) -> tuple[Op, ...]:
    return (("set", "base_told_ref", facts.told_ref),)


def fold_roundtable_base_rewritten(_c: RoundtableContext, facts: BaseFacts) -> tuple[Op, ...]:
    return (("set", "base_told_ref", facts.told_ref), ("set", "rewritten_tip", facts.base))


def fold_roundtable_rebase(context: RoundtableContext, facts: BaseFacts) -> tuple[Op, ...]:
    """The change stands on another commit. It is another tree, so everything that was accepted or approved before is void."""
    return (
        ("set", "base_commit", facts.base),
        ("set", "base_tree", facts.base_tree),
        ("set", "commit", facts.commit),
        ("set", "tree", facts.tree),
        ("set", "patch_ref", facts.patch_ref),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "merged_by", ""),
        ("set", "questions_ref", ""),
        ("set", "base_told_ref", facts.told_ref),
        (
            "append",
            "rounds",
            {"kind": "base", "round": context.round, "outcome": "base_moved", "tree": facts.tree},
        ),
    )


def fold_merge_approval(_c: RoundtableContext, answer: GateAnswer) -> tuple[Op, ...]:
    return (("set", "merged_by", answer.person),)


def fold_recheck_request(_c: RoundtableContext, _e: GateAnswer) -> tuple[Op, ...]:
    """The approval was of a tree that can no longer be merged as it is."""
    return (("set", "merged_by", ""), ("set", "detail_ref", ""))


def fold_roundtable_delivery(_c: RoundtableContext, facts: DeliveryFacts) -> tuple[Op, ...]:
    return (
        ("set", "delivered_ref", facts.ref),
        ("set", "delivered_commit", facts.commit),
        ("set", "url_ref", facts.url_ref),
        ("set", "reverted_commit", ""),
    )


def fold_delivery_request(_c: RoundtableContext, _e: Any) -> tuple[Op, ...]:
    return (("set", "detail_ref", ""),)


def fold_revert_request(context: RoundtableContext, request: RevertRequested) -> tuple[Op, ...]:
    return (
        ("set", "revert_branch", request.branch or context.target),
        ("set", "reverted_by", request.person),
        ("set", "detail_ref", ""),
    )


def fold_roundtable_revert(_c: RoundtableContext, facts: DeliveryFacts) -> tuple[Op, ...]:
    return (("set", "reverted_commit", facts.commit),)
