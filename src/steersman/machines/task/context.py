"""What a task knows, and what guards ask about it.

Texts and documents are payload names; `artifacts` has the digest of every file that was laid down. Lists that grow are
logs. **Invariant:** no state, event or row is named here.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from steersman.contracts.facts import AgentFacts
from steersman.contracts.task.facts import InspectFacts
from steersman.errors import UserError
from steersman.kernel.canonical import digest_of
from steersman.kernel.ops import Log

Person = Annotated[str, Meta(max_length=200)]
Ref = Annotated[str, Meta(max_length=200)]


class TaskReceived(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's task."""

    task_ref: str
    person: str = ""


class Words(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person says to whoever works next; `text` is a payload, or nothing."""

    text: Ref = ""
    person: Person = ""


class Context(msgspec.Struct, kw_only=True):
    """The task's knowledge."""

    # fixed at creation
    pace: Literal["through", "step"] = "through"
    codegen: Literal["coder", "roundtable"] = "coder"
    deliver: Literal["branch", "merge", "draft-pr"] = "branch"
    panel: Literal["alone", "several"] = "alone"
    planners: list[str] = msgspec.field(
        default_factory=lambda: ["planner"]
    )  # the first drafts, the others comment
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
    after: list[Ref] = []  # tasks whose change has to be in the branch before this one begins
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
    notes: list[str] = []  # what people have said and nobody has worked with yet
    answers: list[
        dict[str, str]
    ] = []  # what people have answered: text, and the digest of the plan that asked
    draft: dict[str, Any] = {}  # the lead planner's reply, counted
    comments: dict[str, dict[str, Any]] = {}  # by planner
    plan_opinions: dict[str, dict[str, Any]] = {}  # by reviewer
    code_opinions: dict[str, dict[str, Any]] = {}
    failures: dict[
        str, int
    ] = {}  # of those who are asked together, by what they were asked for: never came, or never fit
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
    artifacts: dict[str, str] = {}  # name -> sha256 of the bytes that were laid down
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
    deliveries: list[str] = []  # every commit that was handed over and not taken back, the first one first
    delivered_tree: str = ""
    url_ref: str = ""
    reverted_commit: str = ""
    revert: dict[str, str] = {}
    detail_ref: str = ""
    repair_ref: str = ""  # why documents could not be put back the last time
    sessions: dict[str, str] = {}
    said: Log = Log()
    decisions: Log = Log()


FIXED = (
    "pace", "codegen", "deliver", "planners", "plan_reviewers", "code_reviewers", "coder", "max_rounds", "max_regressions",
    "red_base", "target", "task_ref", "config_ref", "base_commit", "base_tree", "bounds_ref", "after",
)  # fmt: skip


def begin(request: dict[str, Any]) -> tuple[TaskReceived, Context]:
    """What the first event carries, and the context of a new task, from a request in plain words."""
    given = {name: request[name] for name in FIXED if name in request}
    try:
        context = msgspec.convert(given, Context)
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


def with_checked_base(before: dict[str, Any]) -> dict[str, Any]:
    """A context of the time when the base was checked with the code: a task that has begun checks it without stopping."""
    begun = bool(before.get("providers")) and before.get("workspace") != "measured"
    return {**before, "red_base": "fix", **({"workspace": "moved"} if begun else {})}


def stands_on(c: Context) -> dict[str, str]:
    """The commit and the tree that whoever works next is given: never a change that left the frozen plan."""
    if c.beyond:
        return c.before
    return (
        {"commit": c.commit, "tree": c.tree} if c.commit else {"commit": c.base_commit, "tree": c.base_tree}
    )


def shown(c: Context) -> str:
    """What a gate is bound to: the files as they were seen, the tree, and what they said."""
    return digest_of({"seen": c.seen, "tree": c.tree, "says": c.says})


# ── what guards ask ───────────────────────────────────────────────────────────────────────────────────────────────────


def asks(c: Context, e: AgentFacts) -> bool:
    """Whether somebody asks what a person has to answer first."""
    return any(said.get("blocking", 0) for said in (c.draft, *c.comments.values(), e.reply or {}))


def concerned(c: Context, e: AgentFacts) -> bool:
    """Whether somebody has something that the planners have to settle."""
    return any(not said.get("ready", True) for said in (*c.comments.values(), e.reply or {}))


def unseen(c: Context, e: InspectFacts) -> bool:
    """Whether a person has yet to say next about exactly what is there now."""
    return c.pace == "step" and not (c.step == "confirmed" and c.seen == e.seen)


def last_comment(c: Context) -> bool:
    """Whether nobody else's comment is awaited."""
    return len(c.comments) + c.failures.get("comments", 0) + 1 >= len(c.planners) - 1


def last_plan_opinion(c: Context) -> bool:
    """Whether nobody else's opinion on the plan is awaited."""
    return len(c.plan_opinions) + c.failures.get("plan_opinions", 0) + 1 >= len(c.plan_reviewers)


def last_code_opinion(c: Context) -> bool:
    """Whether nobody else's opinion on the change is awaited."""
    return len(c.code_opinions) + c.failures.get("code_opinions", 0) + 1 >= len(c.code_reviewers)


def broke(c: Context, kept: str, e: AgentFacts) -> bool:
    """Whether one of those who were asked together gave nothing that can be kept, this one or another."""
    return bool(c.failures.get(kept, 0)) or bool(e.error) or e.reply is None


def adoptable(c: Context) -> bool:
    """Whether everything that is not as recorded is a plan that a person may have meant."""
    return bool(c.says.get("damaged")) and c.says["damaged"] == c.says.get("adoptable")


def doubted(c: Context, _e: InspectFacts) -> bool:
    """Whether tests vanished, a check was flaky, or its words speak against it."""
    return any(c.checks.get(name, 0) for name in ("missing", "flaky", "doubts"))


def proven(c: Context, e: InspectFacts) -> bool:
    """Whether the report on disk says that every suite ran and passed on the tree as it is now."""
    return e.overall_pass and bool(c.tree) and e.tree == c.tree == c.checks.get("tree")
