"""What a roundtable run knows, and what each event changes in it.

Texts are payload names. Lists that grow are logs. **Invariant:** no state, event or row is named here; `confirms`,
`proven` and `stuck` are the questions that guards ask about what folds have brought together.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.facts import AgentFacts, BaselineFacts, CheckFacts, DeliveryFacts, SetupFacts
from steersman.contracts.task.facts import BaseFacts
from steersman.errors import UserError
from steersman.kernel.canonical import digest_of
from steersman.kernel.definition import GateAnswer
from steersman.kernel.ops import Log, Op


class TaskReceived(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's task, and the commit it starts from."""

    task_ref: str
    person: str = ""


class RevertRequested(msgspec.Struct, frozen=True, omit_defaults=True):
    """A delivered change is to be taken back: from which branch (empty: where it went), and who says so."""

    branch: Annotated[str, Meta(max_length=200, pattern=r"^[^\x00-\x20]*$")] = ""
    person: Annotated[str, Meta(max_length=200)] = ""


class Context(msgspec.Struct, kw_only=True):
    """The run's knowledge."""

    # fixed at creation
    mode: Literal["proposal", "implementation"]
    max_iterations: Annotated[int, Meta(ge=1, le=50)] = 3
    repeated: Literal["same_command", "same_failure"] = "same_command"
    same_finding: Annotated[int, Meta(ge=2, le=50)] = 3
    max_moves: Annotated[int, Meta(ge=1, le=20)] = 3
    deliver: Literal["branch", "merge", "draft-pr", "none"] = (
        "branch"  # none: whoever started it takes the tree
    )
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


FIXED = (
    "mode", "max_iterations", "repeated", "same_finding", "deliver", "red_base", "target", "task_ref", "config_ref", "base_commit", "base_tree",
)  # fmt: skip


def begin(request: dict[str, Any]) -> tuple[TaskReceived, Context]:
    """What the first event carries, and the context of a new run, from a request in plain words."""
    given = {name: request[name] for name in FIXED if name in request}
    try:
        context = msgspec.convert({"mode": "proposal", **given}, Context)
    except msgspec.ValidationError as error:
        raise UserError(f"roundtable cannot begin like this: {error}") from error
    return TaskReceived(request["task_ref"], request.get("person", "")), context


def with_sessions(before: dict[str, Any]) -> dict[str, Any]:
    """A context of the time when nobody remembered sessions."""
    return {**before, "sessions": {}}


def as_it_was(before: dict[str, Any]) -> dict[str, Any]:
    """A context whose newer fields all have the value that they begin with."""
    return before


def with_any_base(before: dict[str, Any]) -> dict[str, Any]:
    """A context of the time when failing checks on the base tree stopped nothing."""
    return {**before, "red_base": "fix"}


def _session(role: str, e: AgentFacts) -> tuple[Op, ...]:
    """What the role's next call may continue; a call that kept none leaves the one before in place."""
    return (("put", "sessions", role, e.session),) if e.session else ()


def proposed(_c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return (("set", "proposal_ref", e.text_ref), *_session("coder", e))


def reviewer_discussed(_c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return (("set", "reviewer_notes_ref", e.text_ref), *_session("reviewer", e))


def discussed(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """The discussion becomes a contract, bound by its digest: refs are keyed digests of the texts themselves."""
    contract = {
        "version": 1,
        "source_round": c.followups.count + 1,
        "task": c.task_ref,
        "followup": c.followup_ref,
        "core_plan": c.proposal_ref,
        "reviewer_notes": c.reviewer_notes_ref,
        "tester_notes": e.text_ref,
        "base_tree": c.base_tree,
    }
    return (
        ("set", "tester_notes_ref", e.text_ref),
        ("set", "contract", contract),
        ("set", "contract_digest", digest_of(contract)),
        *_session("tester", e),
    )


def proposal_summarised(c: Context, _e: Any) -> tuple[Op, ...]:
    summary = {"kind": "proposal", "round": c.followups.count + 1, "contract": c.contract_digest}
    return (("append", "rounds", summary),)


def confirms(c: Context, e: GateAnswer) -> bool:
    """Whether an answer approves exactly the proposal that waits."""
    waits = c.outcome == "await_operator_confirm"
    return waits and e.choice == "approve" and e.digest == c.contract_digest


def followed_up(c: Context, e: GateAnswer) -> tuple[Op, ...]:
    """A follow-up starts afresh: iterations and failure memory, never budgets."""
    said = {"choice": e.choice, "text": e.text, "person": e.person}
    ops: tuple[Op, ...] = (
        ("append", "followups", said),
        ("set", "round", 0),
        ("set", "must_fix", []),
        ("set", "failed_commands", []),
        ("set", "failure_keys", []),
        ("set", "detail_ref", ""),
        ("set", "tries", []),
        ("set", "escalation", {}),
        *(("put", "findings", k, {**f, "rounds": 0}) for k, f in _open(c)),
    )
    if e.text:
        ops += (("set", "followup_ref", e.text),)
    if confirms(c, e):
        ops += (("set", "confirmed_digest", c.contract_digest), ("set", "confirmed_by", e.person))
    return ops


def prepared(c: Context, e: SetupFacts) -> tuple[Op, ...]:
    return (("set", "commit", e.commit), ("set", "tree", e.tree)) if not c.commit else ()


def setup_failed(_c: Context, e: SetupFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.detail_ref),)


def measured(_c: Context, e: BaselineFacts) -> tuple[Op, ...]:
    return (("set", "baseline_ref", e.results_ref),)


def base_failed(_c: Context, e: BaselineFacts) -> tuple[Op, ...]:
    """Keep the results for people; the base tree counts as unchecked and is checked again after a follow-up."""
    return (("set", "baseline_ref", e.results_ref), ("set", "detail_ref", e.first_ref))


def round_started(_c: Context, _e: Any) -> tuple[Op, ...]:
    return (("add", "round", 1),)


def built(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """The tree is another one: whatever was accepted before is void."""
    left = {"round": c.round, "tree": e.tree, "patch": e.patch_ref}
    return (
        ("set", "commit", e.commit),
        ("set", "tree", e.tree),
        ("set", "patch_ref", e.patch_ref),
        ("set", "infrastructure_ref", e.infrastructure_ref),
        ("set", "instructions_ref", e.instructions_ref),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "questions_ref", ""),
        ("set", "tries", [*c.tries, left]),
        *((("set", "detail_ref", ""),) if c.detail_ref else ()),
        *_session("coder", e),
    )


def nothing_built(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """The tree is the one before; a session that tells of edits which were not kept is not gone on with."""
    if e.problems_ref:
        why = "what the coder left cannot be recorded, so nothing of it was kept: do it again without this"
        item = {"id": "not-recorded", "text": e.problems_ref, "why": why}
        told = ("set", "detail_ref", e.problems_ref)
        return (("set", "must_fix", [*c.must_fix[:20], item]), told, _summary(c, "not_recorded"))
    item = {"id": "no-change", "text": "", "why": "the coder changed nothing"}
    must_fix = ("set", "must_fix", [*c.must_fix[:20], item])
    return (must_fix, *_session("coder", e), _summary(c, "coder_changed_nothing"))


def changes_requested(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """What the reviewer wants, and what it had wanted before and did not call fixed."""
    items = [{"id": i["id"], "text": i["text"]} for i in _items(e)]
    fixed = set((e.reply or {}).get("fixed", ()))
    named = {i["id"] for i in items}
    items += [{"id": k, "text": f["text"]} for k, f in _open(c) if k not in named and k not in fixed]
    told = (("set", "must_fix", items), *_findings(c, items), *_session("reviewer", e))
    return (*told, _summary(c, "changes_requested"))


def review_approved(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return (("set", "must_fix", []), *_findings(c, []), *_session("reviewer", e))


def review_invalid(_c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.problems_ref),)


def _items(e: AgentFacts) -> list[dict[str, str]]:
    return list((e.reply or {}).get("must_fix", ()))


def _open(c: Context) -> list[tuple[str, dict[str, Any]]]:
    return [(k, f) for k, f in c.findings.items() if f["state"] == "open"]


def _findings(c: Context, items: list[dict[str, str]]) -> tuple[Op, ...]:
    """A finding keeps its id over the rounds: opened, still open, fixed; each review that leaves it open counts."""
    now = {i["id"] for i in items}
    gone = [(k, f) for k, f in _open(c) if k not in now]
    ops: list[Op] = [("put", "findings", k, {**f, "state": "fixed", "fixed": c.round}) for k, f in gone]
    before = dict(_open(c))
    for i in items:
        known = before.get(i["id"], {"since": c.round, "rounds": 0})
        seen = {"since": known["since"], "seen": c.round, "rounds": known["rounds"] + 1}
        ops.append(("put", "findings", i["id"], {"text": i["text"], "state": "open", **seen}))
    return tuple(ops)


def stuck(c: Context) -> bool:
    """Whether a finding stays open although there are iterations left; without any, that is the reason to stop."""
    return c.round < c.max_iterations and any(f["rounds"] >= c.same_finding for _, f in _open(c))


def escalated(c: Context, _e: Any) -> tuple[Op, ...]:
    """The pack for whoever takes over: what stayed open, since which round, and what was tried."""
    still = [{"id": k, "text": f["text"], "since": f["since"], "rounds": f["rounds"]} for k, f in _open(c)]
    return (("set", "escalation", {"findings": still, "must_fix": c.must_fix, "tried": c.tries}),)


def tester_answered(_c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return (("set", "commands_ref", (e.reply or {}).get("commands_ref", "")), *_session("tester", e))


def tester_invalid(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    item = {
        "id": "tester-reply",
        "text": e.problems_ref,
        "why": "the tester's reply did not fit its contract",
    }
    told = ("set", "detail_ref", e.problems_ref)
    return (("set", "must_fix", [item]), told, _summary(c, "tester_schema_invalid"))


def checks_failed(c: Context, e: CheckFacts) -> tuple[Op, ...]:
    """Must-fix with the failed command and what it printed; this round's failures are remembered for the next."""
    item = {"id": "checks", "text": e.first_ref, "why": "a check failed"}
    return (
        ("set", "must_fix", [item]),
        ("set", "failed_commands", list(e.failed_commands)),
        ("set", "failure_keys", list(e.failure_keys)),
        *_results(e),
        _summary(c, "test_failed"),
    )


def checks_stopped(c: Context, e: CheckFacts) -> tuple[Op, ...]:
    return checks_failed(c, e)


def checks_passed(c: Context, e: CheckFacts) -> tuple[Op, ...]:
    return (
        ("set", "must_fix", []),
        ("set", "failed_commands", []),
        ("set", "failure_keys", []),
        *_results(e),
        *((("set", "questions_ref", e.questions_ref),) if e.questions_ref != c.questions_ref else ()),
        _summary(c, "approved"),
    )


def proven(c: Context, e: CheckFacts) -> bool:
    """Whether something passed, with tests, on the current tree, and nothing failed or was kept from running."""
    against = e.failed + e.timeout + e.no_tests + e.blocked
    speaks = e.passed + e.known + e.flaky > 0 and e.tests > 0
    return speaks and not against and not e.error and e.tree == c.tree


def questioned(_c: Context, e: CheckFacts) -> tuple[Op, ...]:
    return (*_results(e), ("set", "questions_ref", e.questions_ref))


def accepted(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    return (("set", "accepted_tree", e.digest), ("set", "accepted_by", e.person))


def declined(c: Context, e: GateAnswer) -> tuple[Op, ...]:
    item = {
        "id": "evidence",
        "text": e.text,
        "why": "the operator does not accept what was changed about the tests",
    }
    return (("set", "must_fix", [item]), _summary(c, "evidence_declined"))


def _results(e: CheckFacts) -> tuple[Op, ...]:
    return (
        ("set", "results_ref", e.results_ref),
        ("set", "tests", e.tests),
        ("set", "checks_passed", e.passed),
    )


def _summary(c: Context, outcome: str) -> Op:
    return ("append", "rounds", {"kind": "round", "round": c.round, "outcome": outcome, "tree": c.tree})


def provider_failed(_c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.detail_ref),)


def base_looked_at(_c: Context, e: BaseFacts) -> tuple[Op, ...]:
    return (("set", "base_told_ref", e.told_ref),)


def base_rewritten(_c: Context, e: BaseFacts) -> tuple[Op, ...]:
    return (("set", "base_told_ref", e.told_ref), ("set", "rewritten_tip", e.base))


def rebased(c: Context, e: BaseFacts) -> tuple[Op, ...]:
    """The change stands on another commit: it is another tree, and whatever was accepted or approved before is void."""
    return (
        ("set", "base_commit", e.base),
        ("set", "base_tree", e.base_tree),
        ("set", "commit", e.commit),
        ("set", "tree", e.tree),
        ("set", "patch_ref", e.patch_ref),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "merged_by", ""),
        ("set", "questions_ref", ""),
        ("set", "base_told_ref", e.told_ref),
        ("append", "rounds", {"kind": "base", "round": c.round, "outcome": "base_moved", "tree": e.tree}),
    )


def merge_granted(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    return (("set", "merged_by", e.person),)


def rechecked(_c: Context, _e: GateAnswer) -> tuple[Op, ...]:
    """The approval was of a tree that can no longer be merged as it is."""
    return (("set", "merged_by", ""), ("set", "detail_ref", ""))


def delivered(_c: Context, e: DeliveryFacts) -> tuple[Op, ...]:
    return (
        ("set", "delivered_ref", e.ref),
        ("set", "delivered_commit", e.commit),
        ("set", "url_ref", e.url_ref),
        ("set", "reverted_commit", ""),
    )


def delivery_failed(_c: Context, e: DeliveryFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.detail_ref),)


def delivery_requested(_c: Context, _e: Any) -> tuple[Op, ...]:
    return (("set", "detail_ref", ""),)


def revert_requested(c: Context, e: RevertRequested) -> tuple[Op, ...]:
    return (
        ("set", "revert_branch", e.branch or c.target),
        ("set", "reverted_by", e.person),
        ("set", "detail_ref", ""),
    )


def reverted(_c: Context, e: DeliveryFacts) -> tuple[Op, ...]:
    return (("set", "reverted_commit", e.commit),)
