"""The documents of a task's phases, made from what agents have said and programs have shown.

**Invariant:** nothing is worked out here: texts are fetched, judged by `judges.task` and laid down.
"""

import json
from collections.abc import Callable

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.contracts.facts import CheckFacts
from steersman.contracts.task.documents import Decision, Judged, Plan, PlanFiles, RevertRecord, Waived
from steersman.contracts.task.facts import RecordFacts
from steersman.contracts.task.replies import (
    CodeReviewerReply,
    PlanCommentReply,
    PlanReviewerReply,
    TaskPlannerReply,
)
from steersman.contracts.task.words import (
    CODE_REVIEW,
    DECISION,
    FILES,
    PATCH,
    PLAN,
    PLAN_REVIEW,
    REVERT,
    TESTS,
)
from steersman.judges.task import opinions
from steersman.judges.task.plan import files_of, flaws, open_questions, plan_of, question_id
from steersman.judges.task.suites import test_report
from steersman.judges.text import clip, count_of
from steersman.runtime.call import Call
from steersman.runtime.performers.bounds import bounds_of, files_beyond
from steersman.runtime.performers.desk import Desk, lay_change, off_the_loop
from steersman.runtime.performers.suspicion import counted, suspected
from steersman.runtime.projections import picture
from steersman.views.status import Status


@off_the_loop
def record(call: Call) -> RecordFacts:
    """The documents of the phase, made from what its agents said and its programs showed."""
    desk = Desk(call)
    _MAKERS[call.given("phase")](desk)
    return desk.facts()


def _plan(desk: Desk) -> None:
    call = desk.call
    before = desk.document(PLAN, Plan)
    asked = {q.id: q.text for q in before.questions} if before is not None else {}
    reply = desk.reply(call.given("draft"), TaskPlannerReply)
    comments = desk.replies("comments", PlanCommentReply)
    plan = plan_of(call.run, call.given("round"), reply, comments, _answers(call, before), asked)
    desk.lay_down(PLAN, plan)
    lay_scope(desk, plan)


def lay_scope(desk: Desk, plan: Plan) -> None:
    files = files_of(plan)
    desk.told += [f"{q.id}: {q.text}" for q in open_questions(plan)]
    if files is None:
        desk.take_away(FILES)
        return
    desk.lay_down(FILES, files)
    desk.told += [f"may touch: {f.path} ({f.intent})" for f in files.files]


def _answers(call: Call, before: Plan | None) -> dict[str, str]:
    """What people have answered, by question: a text that names none answers all that was open in the plan it is about."""
    questions = before.questions if before is not None else ()
    found = {q.id: q.answer for q in questions if q.answer}
    open_now = open_questions(before) if before is not None else ()
    for given in call.given("answers", ()):
        text = call.payloads.get(given["text"])
        asked = open_now if given["plan"] == call.given("artifacts").get(PLAN) else ()
        named = _by_id(text)
        found |= named if named is not None else {q.id: text for q in asked}
    return found


def _by_id(text: str) -> dict[str, str] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    fits = isinstance(value, dict) and value and all(isinstance(v, str) for v in value.values())
    return {k if k.startswith("q-") else question_id(k): v for k, v in value.items()} if fits else None


def _reviewed_plan(desk: Desk) -> None:
    call = desk.call
    plan, files = desk.document(PLAN, Plan), desk.document(FILES, PlanFiles)
    if plan is None:
        raise ValueError("there is no plan to review: plan first")
    left = files_beyond(bounds_of(call), [f.path for f in files.files]) if files is not None else {}
    made = opinions.plan_review(
        call.run,
        call.given("round"),
        call.given("artifacts")[PLAN],
        desk.replies("opinions", PlanReviewerReply),
        call.given("providers"),
        flaws(plan, files, tuple(left.values())),
    )
    desk.lay_down(PLAN_REVIEW, made)
    desk.told += [f"{i.id} {i.found_by}: {i.text}" for i in made.blocking_issues]
    desk.told += [f"{f.severity} {f.id}: {f.message}" for f in made.flaws]


def _coded(desk: Desk) -> None:
    call = desk.call
    workspace = call.world.workspace(call.config)
    change = workspace.change(call.given("commit"), call.given("base"))
    lay_change(desk, change, call.given("base_tree"))
    if call.given("crew"):
        desk.suspects = counted(call, change, suspected(call, workspace, change))


def _reviewed_code(desk: Desk) -> None:
    call = desk.call
    made = opinions.code_review(
        call.run,
        call.given("turn"),
        call.given("tree"),
        call.given("artifacts").get(PATCH, ""),
        desk.replies("opinions", CodeReviewerReply),
        call.given("providers"),
    )
    desk.lay_down(CODE_REVIEW, made)
    desk.told += [f"{i.id} {i.found_by}: {i.text}" for i in (*made.blocking_issues, *made.plan_issues)]


def _tested(desk: Desk) -> None:
    call = desk.call
    ref = call.given("results", "")
    results = msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else []
    checks = msgspec.convert(call.given("checks"), CheckFacts)
    known = call.config.known_failures
    made = test_report(
        call.run, call.given("turn"), call.given("tree"), results, checks, call.config.no_tests, known
    )
    desk.lay_down(TESTS, made)
    desk.told += [
        f"{s.name}: {s.verdict}"
        + (f", {count_of(s.tests, 'test')}" if s.tests is not None else "")
        + (f", {s.reason}" if s.verdict == "passed" and s.reason else "")
        for s in made.suites
    ]


def _decided(desk: Desk) -> None:
    call, shown = desk.call, picture(desk.call.world, desk.call.run).status
    desk.lay_down(
        DECISION,
        Decision(
            task_id=call.run,
            decision=call.given("decision"),
            decided_by=call.given("person") or "somebody",
            reason=clip(call.given("reason"), 4000),
            tree=call.given("tree"),
            artifacts={n: d for n, d in call.given("artifacts").items() if n != DECISION},
            overrides=_overrides(shown),
            evidence=_seen(shown, call.given("tree")),
        ),
    )


def _seen(shown: Status, tree: str) -> tuple[Judged, ...]:
    """Who has accepted what this very tree does to the tests, and why, as the tape says."""
    found = shown.evidence
    if found is None or found.tree != tree:
        return ()
    return (Judged(tree=tree, person=found.person or "somebody", reason=clip(found.reason, 4000)),)


def _overrides(shown: Status) -> tuple[Waived, ...]:
    """Every guard that was waived on the way here, as the tape says."""
    return tuple(
        Waived(
            source=o.source,
            to=o.to,
            person=o.person or "somebody",
            reason=clip(o.reason, 4000),
        )
        for o in shown.overrides
    )


def _taken_back(desk: Desk) -> None:
    call = desk.call
    said = call.given("revert")
    desk.lay_down(
        REVERT,
        RevertRecord(
            task_id=call.run,
            status=said["status"],
            reason=clip(call.given("reason"), 4000),
            reverted_by=call.given("person") or "somebody",
            branch=call.given("target"),
            delivered=call.given("delivered"),
            commit=call.given("reverted"),
            detail=clip(call.payloads.get(said["detail"]), 4000),
        ),
    )


_MAKERS: dict[str, Callable[[Desk], None]] = {
    "planning": _plan,
    "plan_review": _reviewed_plan,
    "codegen": _coded,
    "review": _reviewed_code,
    "test": _tested,
    "accept": _decided,
    "revert": _taken_back,
}
