"""What each event changes in what a task knows: one pure fold for each.

**Invariant:** no state, event or row is named here.
"""

from typing import Any

from steersman.contracts.facts import AgentFacts, BaselineFacts, CheckFacts, DeliveryFacts, SetupFacts
from steersman.contracts.task.facts import BaseFacts, InspectFacts, OthersFacts, RecordFacts, RevertFacts
from steersman.kernel.definition import ChildEnded, GateAnswer
from steersman.kernel.ops import Op
from steersman.machines.task.context import Context, Words, stands_on

# ── what people say ─────────────────────────────────────────────────────────────────────────────────────────────────


def heard(c: Context, e: Words) -> tuple[Op, ...]:
    return (
        ("set", "notes", [*c.notes[-20:], e.text]),
        ("append", "said", {"text": e.text, "person": e.person}),
    )


def redo(c: Context, e: Words) -> tuple[Op, ...]:
    """A phase begins anew, with what was said about it."""
    notes = [*c.notes[-20:], e.text] if e.text else c.notes
    return (("set", "notes", notes), *_afresh(), ("append", "said", {"redo": e.text, "person": e.person}))


def replan(c: Context, e: Words) -> tuple[Op, ...]:
    return (*redo(c, e), ("add", "round", 1))


def reworked(c: Context, e: GateAnswer) -> tuple[Op, ...]:
    notes = [*c.notes[-20:], e.text] if e.text else c.notes
    return (("set", "notes", notes), *_afresh(), ("append", "said", {"rework": e.text, "person": e.person}))


def confirmed(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    return (("append", "said", {"next": e.digest, "person": e.person}),)


def answered(c: Context, e: GateAnswer) -> tuple[Op, ...]:
    """The answers go to the planner, who drafts again; they answer what this very plan has asked."""
    told = ("append", "said", {"answers": e.text, "person": e.person})
    given = {"text": e.text, "plan": c.artifacts.get("planning/planning.ai.json", "")}
    return (("set", "answers", [*c.answers, given]), ("add", "round", 1), ("set", "comments", {}), told)


def asked_to(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    return (
        ("set", "failures", {}),
        ("set", "detail_ref", ""),
        ("set", "repair_ref", ""),
        ("append", "said", {"choice": e.choice, "person": e.person, "reason": e.reason}),
    )


# ── tasks that come first ────────────────────────────────────────────────────────────────────────────────────────────


def others_there(_c: Context, e: OthersFacts) -> tuple[Op, ...]:
    """It begins on what the others have left."""
    return (("set", "base_commit", e.base), ("set", "base_tree", e.base_tree), ("set", "detail_ref", ""))


def others_missing(_c: Context, e: OthersFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.told_ref),)


# ── planning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def drafted(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """A new draft: what was said about the one before is settled in it, or will be said again."""
    lead = c.planners[0]
    return (
        ("set", "draft", e.reply or {}),
        ("set", "comments", {}),
        ("set", "failures", {}),
        ("set", "notes", []),
        ("set", "must_fix", []),
        ("put", "providers", lead, e.provider),
        *_session(lead, e),
    )


def commented(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return _one_of_many(c, "comments", e)


def _one_of_many(c: Context, field: str, e: AgentFacts) -> tuple[Op, ...]:
    """An answer is kept under its role; one that never came, or never fit, is counted."""
    if e.error or e.reply is None:
        return (("put", "failures", field, c.failures.get(field, 0) + 1), _broke(c, e))
    role = str(e.reply["role"])
    kept = (("put", field, role, e.reply), ("put", "providers", role, e.provider))
    return (*kept, *_session(role, e))


def another_round(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """The draft is made again with all that was said about it."""
    return (*commented(c, e), ("add", "round", 1))


def converged(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """The last word before the plan is laid down: of the lead planner, or of the last who commented."""
    return drafted(c, e) if c.panel == "alone" else commented(c, e)


def scope_missing(_c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    item = {
        "id": "scope",
        "text": "",
        "why": "the plan names no file that may be touched: name them in files",
    }
    return (("set", "must_fix", [item]), ("add", "round", 1))


# ── documents ───────────────────────────────────────────────────────────────────────────────────────────────────────


def recorded(c: Context, e: RecordFacts) -> tuple[Op, ...]:
    """What was laid down is what every later look at the disk is held against; what was taken away is not looked for."""
    kept = {name: digest for name, digest in {**c.artifacts, **e.written}.items() if digest}
    return (
        ("set", "artifacts", kept),
        ("set", "documents", {name: ref for name, ref in {**c.documents, **e.refs}.items() if name in kept}),
        ("set", "told_ref", e.told_ref),
        ("set", "detail_ref", ""),
        *_held(c, e),
        *_looked_over(e),
    )


def _held(c: Context, e: RecordFacts) -> tuple[Op, ...]:
    """A change was held to the frozen plan; any other document says nothing about that."""
    if e.beyond is None:
        return ()
    laid = {"commit": c.commit or c.base_commit, "base": c.base_commit}
    return (("set", "beyond", e.beyond), ("set", "beyond_ref", e.beyond_ref), ("set", "laid", laid))


def _looked_over(e: RecordFacts) -> tuple[Op, ...]:
    if e.infrastructure is None:
        return ()
    return (
        ("set", "infrastructure_ref", e.infrastructure_ref),
        ("set", "instructions_ref", e.instructions_ref),
    )


def unrepaired(_c: Context, e: RecordFacts) -> tuple[Op, ...]:
    return (("set", "repair_ref", e.error_ref),)


def unrecorded(_c: Context, e: RecordFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.error_ref),)


def inspected(_c: Context, e: InspectFacts) -> tuple[Op, ...]:
    """What a person is shown, and what it was on disk when it was."""
    return (("set", "seen", e.seen), ("set", "says", _says(e)), ("set", "told_ref", e.told_ref))


def damaged(_c: Context, e: InspectFacts) -> tuple[Op, ...]:
    told = {**_says(e), "damaged": e.damaged, "adoptable": e.adoptable}
    return (("set", "seen", e.seen), ("set", "says", told), ("set", "detail_ref", e.told_ref))


def _says(e: InspectFacts) -> dict[str, Any]:
    named = (
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
    return {name: value for name in named if (value := getattr(e, name))}


# ── reviews ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_judged(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return _one_of_many(c, "plan_opinions", e)


def code_judged(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    return _one_of_many(c, "code_opinions", e)


def plan_sent_back(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    """The planner is given what the documents say against the plan."""
    return (*_afresh(), ("add", "round", 1), ("set", "must_fix", _pointed(c, "review/plan-review.json")))


def code_sent_back(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    return (*_afresh(), ("add", "turn", 1), ("set", "must_fix", _pointed(c, "review/code-review.json")))


def replanned(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    """Another plan, and another turn of code after it."""
    return (
        *_afresh(),
        ("add", "round", 1),
        ("add", "turn", 1),
        ("set", "must_fix", _pointed(c, "review/code-review.json")),
    )


def out_of_scope(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    """What is outside is in the list of files; which files the plan lacks, only the coder can say."""
    item = {"id": "scope", "text": c.coder_ref, "why": "the coder says which files the plan lacks"}
    said = [item] if c.coder_status == "scope_mismatch" else []
    return (*_afresh(), ("add", "round", 1), ("set", "must_fix", [*_pointed(c, "code/files.json"), *said]))


def left_bounds(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    """Nobody can widen a frozen plan: the coder begins again where it began, and is told what was not taken."""
    why = "the change left the frozen plan and was not taken: make it again, inside the plan"
    told = ("set", "must_fix", [{"id": "bounds", "text": c.beyond_ref, "why": why}])
    return (*_afresh(), ("add", "turn", 1), told, ("set", "detail_ref", c.beyond_ref))


def unclear(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    item = {"id": "unclear", "text": c.coder_ref, "why": "the coder finds the plan unclear"}
    return (*_afresh(), ("set", "must_fix", [item]))


def entered(_c: Context, _e: Any) -> tuple[Op, ...]:
    """A phase begins with nobody's opinion."""
    return _afresh()


def _pointed(c: Context, name: str) -> list[dict[str, str]]:
    """The document that says what is wrong, word for word."""
    return [{"id": name, "text": c.documents.get(name, ""), "why": f"{name} says what has to change"}]


def _afresh() -> tuple[Op, ...]:
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


def prepared(c: Context, e: SetupFacts) -> tuple[Op, ...]:
    return (("set", "commit", e.commit), ("set", "tree", e.tree)) if not c.commit else ()


def setup_failed(_c: Context, e: SetupFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.detail_ref),)


def measured(_c: Context, e: BaselineFacts) -> tuple[Op, ...]:
    return (("set", "baseline_ref", e.results_ref), ("set", "detail_ref", ""))


def base_failed(_c: Context, e: BaselineFacts) -> tuple[Op, ...]:
    """Keep the results for people; the base tree counts as unchecked and is checked again."""
    return (("set", "baseline_ref", e.results_ref), ("set", "detail_ref", e.first_ref))


def coded(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """The tree is another one: whatever was accepted before is void."""
    said = e.reply or {}
    return (
        ("set", "before", stands_on(c)),
        ("set", "commands_ref", said.get("outside", "")),
        ("set", "commit", e.commit),
        ("set", "tree", e.tree),
        ("set", "patch_ref", e.patch_ref),
        ("set", "infrastructure_ref", e.infrastructure_ref),
        ("set", "instructions_ref", e.instructions_ref),
        ("set", "coder_status", said.get("status", "")),
        ("set", "coder_ref", said.get("reply", "")),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "notes", []),
        ("set", "detail_ref", e.problems_ref),
        ("put", "providers", c.coder, e.provider),
        *_session(c.coder, e),
    )


def crew_coded(c: Context, e: ChildEnded) -> tuple[Op, ...]:
    return (
        ("set", "before", stands_on(c)),
        ("set", "commands_ref", ""),
        ("set", "commit", e.commit),
        ("set", "tree", e.tree),
        ("set", "patch_ref", ""),
        ("set", "coder_status", "done"),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "notes", []),
    )


def nothing_coded(_c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    item = {"id": "no-change", "text": "", "why": "the coder changed nothing"}
    return (*_afresh(), ("add", "turn", 1), ("set", "must_fix", [item]))


def suites_run(_c: Context, e: CheckFacts) -> tuple[Op, ...]:
    counted = {
        name: value
        for name in ("passed", "failed", "blocked", "timeout", "no_tests", "known", "flaky", "tests", "missing", "doubts", "error")
        if (value := getattr(e, name))
    }  # fmt: skip
    return (
        ("set", "checks", {**counted, "tree": e.tree, "failed_commands": list(e.failed_commands)}),
        ("set", "results_ref", e.results_ref),
        ("set", "failure_ref", e.first_ref),
        ("set", "evidence_ref", e.questions_ref),
    )


def tests_sent_back(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    """The coder is given the report, and of the first suite that failed what it printed."""
    failure = {"id": "checks", "text": c.failure_ref, "why": "a check failed"}
    points = [*_pointed(c, "test/report.json"), *([failure] if c.failure_ref else [])]
    return (*_afresh(), ("add", "turn", 1), ("set", "must_fix", points))


def evidence_accepted(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    return (("set", "accepted_tree", e.digest), ("set", "accepted_by", e.person))


def evidence_declined(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    why = "the operator does not accept what was changed about the tests"
    return (
        *_afresh(),
        ("add", "turn", 1),
        ("set", "must_fix", [{"id": "evidence", "text": e.text, "why": why}]),
    )


# ── accept and revert ───────────────────────────────────────────────────────────────────────────────────────────────


def based(_c: Context, e: BaseFacts) -> tuple[Op, ...]:
    return (("set", "told_ref", e.told_ref),)


def rebased(c: Context, e: BaseFacts) -> tuple[Op, ...]:
    """The change stands on another commit: it is another tree, to be reviewed and tested again."""
    return (
        *_afresh(),
        ("set", "base_commit", e.base),
        ("set", "base_tree", e.base_tree),
        ("set", "commit", e.commit),
        ("set", "tree", e.tree),
        ("set", "patch_ref", e.patch_ref),
        ("set", "artifacts", {**c.artifacts, **e.written}),
        ("set", "documents", {**c.documents, **e.refs}),
        ("set", "laid", {"commit": e.commit, "base": e.base}),
        ("set", "delivered_tree", ""),
        ("set", "accepted_tree", ""),
        ("set", "accepted_by", ""),
        ("set", "told_ref", e.told_ref),
        ("add", "turn", 1),
        ("add", "followed", 1),
    )


def base_unseen(_c: Context, e: BaseFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.told_ref),)


def base_rewritten(_c: Context, e: BaseFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.told_ref), ("set", "rewritten_tip", e.base))


def base_lost(_c: Context, e: BaseFacts) -> tuple[Op, ...]:
    """What was handed over is not there: it has to be handed over again, like any other change."""
    return (("set", "delivered_tree", ""), ("set", "detail_ref", e.told_ref), *_stands_on(e))


def _stands_on(e: BaseFacts | RevertFacts) -> tuple[Op, ...]:
    """From here on the change is the whole of what the task has made, not what it added last; where that is known."""
    return (("set", "base_commit", e.base), ("set", "base_tree", e.base_tree)) if e.base else ()


def conflicted_base(_c: Context, e: BaseFacts) -> tuple[Op, ...]:
    """The coder begins again on the branch as it is now."""
    why = "the branch has moved, and the change conflicts with it: make the change again on what is there now"
    return (
        *_afresh(),
        ("set", "base_commit", e.base),
        ("set", "base_tree", e.base_tree),
        ("set", "commit", e.base),
        ("set", "tree", e.base_tree),
        ("set", "must_fix", [{"id": "base", "text": e.told_ref, "why": why}]),
        ("add", "turn", 1),
    )


def decided(_c: Context, e: GateAnswer) -> tuple[Op, ...]:
    told = {"choice": e.choice, "person": e.person, "reason": e.reason, "digest": e.digest}
    notes: tuple[Op, ...] = (("set", "notes", [e.text]),) if e.text else ()
    return (
        ("set", "decided_by", e.person),
        ("set", "reason", e.reason),
        *notes,
        ("append", "decisions", told),
    )


def taken_back(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    """Where nothing was delivered there is nothing to take back, and the record says so."""
    status = "pending" if c.delivered == "yes" else "nothing_delivered"
    return (*_afresh(), ("set", "revert", {"status": status, "detail": ""}))


def delivered(c: Context, e: DeliveryFacts) -> tuple[Op, ...]:
    return (
        ("set", "delivered_tree", c.tree),
        ("set", "delivered_ref", e.ref),
        ("set", "delivered_commit", e.commit),
        ("set", "deliveries", [*(made for made in c.deliveries if made != e.commit), e.commit]),
        ("set", "url_ref", e.url_ref),
        ("set", "reverted_commit", ""),
        ("set", "detail_ref", ""),
    )


def undelivered(_c: Context, e: DeliveryFacts) -> tuple[Op, ...]:
    return (("set", "detail_ref", e.detail_ref),)


def reverted(_c: Context, e: RevertFacts) -> tuple[Op, ...]:
    """`detail` is empty where the commit is steersman's own."""
    return (
        *_stands_on(e),
        ("set", "reverted_commit", e.commit),
        ("set", "deliveries", []),
        ("set", "revert", {"status": e.status, "detail": e.detail_ref}),
    )


def unreverted(_c: Context, e: RevertFacts) -> tuple[Op, ...]:
    return (
        ("set", "revert", {"status": e.status, "detail": e.detail_ref}),
        ("set", "detail_ref", e.detail_ref),
    )


def revert_refused(c: Context, _e: InspectFacts) -> tuple[Op, ...]:
    """The decision is asked for again, with why it could not be taken back."""
    return (*_afresh(), ("set", "detail_ref", c.revert.get("detail", "")))


def failed(c: Context, e: AgentFacts) -> tuple[Op, ...]:
    """What broke is told; whoever was asked together with it and has answered is not asked again."""
    fits = not e.error and e.reply is not None
    kept = (op for field in c.failures for op in _one_of_many(c, field, e)) if fits else ()
    return (*kept, ("set", "failures", {}), _broke(c, e))


def _broke(c: Context, e: AgentFacts) -> Op:
    return ("set", "detail_ref", e.detail_ref or e.problems_ref or c.detail_ref)


def _session(role: str, e: AgentFacts) -> tuple[Op, ...]:
    return (("put", "sessions", role, e.session),) if e.session else ()
