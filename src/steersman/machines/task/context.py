"""What a task knows, and what guards ask about it.

Texts and documents are payload names; `artifacts` has the digest of every file that was written. Lists that grow are logs.
 **Invariant:** no state, event or row is named here.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.facts import AgentFacts
from steersman.errors import UserError
from steersman.kernel.canonical import digest_of
from steersman.kernel.ops import Log
from steersman.machines.task.facts import InspectFacts

PersonName = Annotated[str, Meta(max_length=200)]
PayloadRef = Annotated[str, Meta(max_length=200)]


class TaskReceived(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's task."""

    task_ref: str
    person: str = ""


class PersonWords(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person says to the agent that works next; `text` is a payload, or nothing."""

    text: PayloadRef = ""
    person: PersonName = ""


class TaskContext(msgspec.Struct, kw_only=True):
    """The task's knowledge."""

    # fixed at creation
    pace: Literal["through", "step"] = "through"
    codegen: Literal["coder", "roundtable"] = "coder"
    deliver: Literal["branch", "merge", "draft-pr"] = "branch"
    panel: Literal["alone", "several"] = "alone"
    # The first drafts, the others comment.
    planners: list[str] = msgspec.field(default_factory=lambda: ["planner"])
    plan_reviewers: list[str] = msgspec.field(default_factory=lambda: ["reviewer"])
    code_reviewers: list[str] = msgspec.field(default_factory=lambda: ["reviewer"])
    coder: str = "coder"
    max_rounds: Annotated[int, Meta(ge=1, le=20)] = 3
    max_regressions: Annotated[int, Meta(ge=1, le=20)] = 3
    red_base: Literal["stop", "fix"] = "stop"  # fix: this task has to make failing checks pass
    max_moves: Annotated[int, Meta(ge=1, le=20)] = 3
    target: str = ""
    task_ref: str
    config_ref: str = ""
    base_commit: str = ""
    base_tree: str = ""
    bounds_ref: str = ""  # of a frozen plan that it may not leave
    after: list[PayloadRef] = []  # tasks whose change has to be in the branch before this one begins
    # memory: set by rows, followed exactly by the check
    step: str = "work"
    workspace: str = "unprepared"
    others: str = "none"
    evidence: str = "plain"
    decision: str = "none"
    delivered: str = "no"
    outcome: str | None = None
    # what the phases have brought
    round: int = 1  # of planning
    turn: int = 1  # of code, review and tests
    notes: list[str] = []  # what people have said and no agent has used yet
    # What people have answered: text, and the digest of the plan that asked.
    answers: list[dict[str, str]] = []
    draft: dict[str, Any] = {}  # the lead planner's reply, counted
    comments: dict[str, dict[str, Any]] = {}  # by planner
    plan_opinions: dict[str, dict[str, Any]] = {}  # by reviewer
    code_opinions: dict[str, dict[str, Any]] = {}
    # Of those who are asked together, by what they were asked for: never came, or never fit.
    failures: dict[str, int] = {}
    providers: dict[str, str] = {}
    must_fix: list[dict[str, str]] = []
    coder_status: str = ""
    coder_ref: str = ""
    commit: str = ""
    tree: str = ""
    followed: int = 0  # times that the change was put on top of a branch that had moved
    before: dict[str, str] = {}  # what the last turn of code began on: commit, tree
    commands_ref: str = ""  # what the coder wanted to run outside the frozen plan
    beyond: int = 0  # of the last change: files and commands outside the frozen plan
    beyond_ref: str = ""
    patch_ref: str = ""
    infrastructure_ref: str = ""
    instructions_ref: str = ""
    baseline_ref: str = ""
    results_ref: str = ""
    failure_ref: str = ""  # of the suites: the first that failed, with what it printed
    checks: dict[str, Any] = {}  # of the suites: what was counted, on which tree
    evidence_ref: str = ""
    accepted_tree: str = ""
    accepted_by: str = ""
    artifacts: dict[str, str] = {}  # name -> sha256 of the bytes that were written
    documents: dict[str, str] = {}  # name -> payload with these bytes
    laid: dict[str, str] = {}  # what the documents of the change were made of: commit, base
    seen: dict[str, str] = {}  # what a person was shown: name -> digest on disk
    says: dict[str, Any] = {}  # what the last look at the disk said
    told_ref: str = ""
    rewritten_tip: str = ""  # where the rewritten branch was that a person was shown
    decided_by: str = ""
    reason: str = ""
    delivered_ref: str = ""
    delivered_commit: str = ""
    deliveries: list[str] = []  # every delivered commit that was not reverted, oldest first
    delivered_tree: str = ""
    url_ref: str = ""
    reverted_commit: str = ""
    revert: dict[str, str] = {}
    detail_ref: str = ""
    repair_ref: str = ""  # why documents could not be restored the last time
    sessions: dict[str, str] = {}
    said: Log = Log()
    decisions: Log = Log()


TASK_FIXED_FIELDS = (
    "pace", "codegen", "deliver", "planners", "plan_reviewers", "code_reviewers", "coder", "max_rounds", "max_regressions",
    "red_base", "target", "task_ref", "config_ref", "base_commit", "base_tree", "bounds_ref", "after",
)  # fmt: skip


def begin_task(request: dict[str, Any]) -> tuple[TaskReceived, TaskContext]:
    """What the first event carries, and the context of a new task, from a request in plain words."""
    fixed_values = {name: request[name] for name in TASK_FIXED_FIELDS if name in request}
    try:
        context = msgspec.convert(fixed_values, TaskContext)
    except msgspec.ValidationError as error:
        raise UserError(f"task cannot begin like this: {error}") from error
    for crew in (context.planners, context.plan_reviewers, context.code_reviewers):
        if not crew:
            raise UserError("task cannot begin like this: it needs a planner and reviewers")
        if len(set(crew)) < len(crew):
            raise UserError(f"task cannot begin like this: {', '.join(crew)} names somebody twice")
    if len(set(context.after)) < len(context.after):
        raise UserError(f"task cannot begin like this: {', '.join(context.after)} names a task twice")
    context.panel = "several" if len(context.planners) > 1 else "alone"
    return TaskReceived(request["task_ref"], request.get("person", "")), context


def upcast_checked_base(before: dict[str, Any]) -> dict[str, Any]:
    """A context of the time when the base was checked with the code: a task that has begun checks it without stopping."""
    has_begun = bool(before.get("providers")) and before.get("workspace") != "measured"
    return {**before, "red_base": "fix", **({"workspace": "moved"} if has_begun else {})}


def next_work_base(context: TaskContext) -> dict[str, str]:
    """The commit and the tree for the next work, which never hold a change outside the frozen plan."""
    if context.beyond:
        return context.before
    return (
        {"commit": context.commit, "tree": context.tree}
        if context.commit
        else {"commit": context.base_commit, "tree": context.base_tree}
    )


def inspection_digest(context: TaskContext) -> str:
    """What a gate is bound to: the files as they were seen, the tree, and what they said."""
    return digest_of({"seen": context.seen, "tree": context.tree, "says": context.says})


# ── what guards ask ───────────────────────────────────────────────────────────────────────────────────────────────────


def has_blocking_question(context: TaskContext, facts: AgentFacts) -> bool:
    """Whether an agent asks what a person has to answer first."""
    return any(r.get("blocking", 0) for r in (context.draft, *context.comments.values(), facts.reply or {}))


def has_open_concern(context: TaskContext, facts: AgentFacts) -> bool:
    """Whether an agent has something that the planners have to settle."""
    return any(not reply.get("ready", True) for reply in (*context.comments.values(), facts.reply or {}))


def needs_person_next(context: TaskContext, facts: InspectFacts) -> bool:
    """Whether a person has yet to say next about exactly what is there now."""
    return context.pace == "step" and not (context.step == "confirmed" and context.seen == facts.seen)


def is_last_comment(context: TaskContext) -> bool:
    """Whether no other comment is awaited."""
    return len(context.comments) + context.failures.get("comments", 0) + 1 >= len(context.planners) - 1


def is_last_plan_opinion(context: TaskContext) -> bool:
    """Whether no other opinion on the plan is awaited."""
    return len(context.plan_opinions) + context.failures.get("plan_opinions", 0) + 1 >= len(
        context.plan_reviewers
    )


def is_last_code_opinion(context: TaskContext) -> bool:
    """Whether no other opinion on the change is awaited."""
    return len(context.code_opinions) + context.failures.get("code_opinions", 0) + 1 >= len(
        context.code_reviewers
    )


def has_failed_reply(context: TaskContext, reply_field: str, facts: AgentFacts) -> bool:
    """Whether one of those who were asked together gave nothing that can be kept, this one or another."""
    return bool(context.failures.get(reply_field, 0)) or bool(facts.error) or facts.reply is None


def can_adopt_damage(context: TaskContext) -> bool:
    """Whether everything that is not as recorded is a plan that a person may have meant."""
    return bool(context.says.get("damaged")) and context.says["damaged"] == context.says.get("adoptable")


def has_doubtful_results(context: TaskContext, _e: InspectFacts) -> bool:
    """Whether tests vanished, a check was flaky, or its words speak against it."""
    return any(context.checks.get(name, 0) for name in ("missing", "flaky", "doubts"))


def is_task_tree_proven(context: TaskContext, facts: InspectFacts) -> bool:
    """Whether the report on disk says that every suite ran and passed on the tree as it is now."""
    return (
        facts.overall_pass and bool(context.tree) and facts.tree == context.tree == context.checks.get("tree")
    )
