"""Makes the documents of a task's phases from the replies of agents and the results of programs.

**Invariant:** nothing is decided here. Texts are fetched, judged by `machines.task.documents`, and written.
"""

import json
from collections.abc import Callable
from typing import cast

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.contracts.facts import CheckFacts
from steersman.contracts.machine_names import TaskPhase
from steersman.engine.effects import EffectCall
from steersman.engine.effects.change_context import (
    count_suspects,
    files_outside_bounds,
    find_change_suspects,
    find_plan_bounds,
)
from steersman.engine.projections import read_run_view
from steersman.judges.text import clip_text, count_with_noun
from steersman.machines.task.documents import opinions
from steersman.machines.task.documents.plan import (
    build_task_plan,
    find_open_plan_questions,
    find_plan_flaws,
    infer_plan_files,
    plan_question_id,
)
from steersman.machines.task.documents.schemas import (
    AcceptDecision,
    AcceptedTestEvidence,
    PlanFiles,
    RevertRecord,
    TaskPlan,
    WaivedGuard,
)
from steersman.machines.task.documents.suites import build_task_test_report
from steersman.machines.task.documents.words import (
    CODE_REVIEW_FILE,
    DECISION_FILE,
    PATCH_FILE,
    PLAN_FILE,
    PLAN_REVIEW_FILE,
    REVERT_FILE,
    SCOPE_FILE,
    TEST_REPORT_FILE,
)
from steersman.machines.task.effects.document_writer import (
    DocumentWriter,
    perform_in_thread,
    write_change_documents,
)
from steersman.machines.task.facts import RecordFacts
from steersman.machines.task.replies import (
    CodeReviewerReply,
    PlanCommentReply,
    PlanReviewerReply,
    TaskPlannerReply,
)
from steersman.views.run_summary import RunSummary


@perform_in_thread
def record_phase_documents(call: EffectCall) -> RecordFacts:
    """The documents of the phase, made from what its agents said and its programs showed."""
    writer = DocumentWriter(call)
    _PHASE_WRITERS[call.given("phase")](writer)
    return writer.facts()


def _write_plan_documents(writer: DocumentWriter) -> None:
    call = writer.call
    earlier_plan = writer.document(PLAN_FILE, TaskPlan)
    question_texts = {q.id: q.text for q in earlier_plan.questions} if earlier_plan is not None else {}
    reply = writer.reply(call.given("draft"), TaskPlannerReply)
    comments = writer.replies("comments", PlanCommentReply)
    plan = build_task_plan(
        call.run,
        call.given("round"),
        reply,
        comments,
        _answers_by_question(call, earlier_plan),
        question_texts,
    )
    writer.lay_down(PLAN_FILE, plan)
    write_scope_document(writer, plan)


def write_scope_document(writer: DocumentWriter, plan: TaskPlan) -> None:
    files = infer_plan_files(plan)
    writer.told += [f"{q.id}: {q.text}" for q in find_open_plan_questions(plan)]
    if files is None:
        writer.take_away(SCOPE_FILE)
        return
    writer.lay_down(SCOPE_FILE, files)
    writer.told += [f"may touch: {f.path} ({f.intent})" for f in files.files]


def _answers_by_question(call: EffectCall, earlier_plan: TaskPlan | None) -> dict[str, str]:
    """What people have answered, by question: a text that names none answers all that was open in the plan it is about."""
    questions = earlier_plan.questions if earlier_plan is not None else ()
    answers = {q.id: q.answer for q in questions if q.answer}
    open_now = find_open_plan_questions(earlier_plan) if earlier_plan is not None else ()
    for answer in call.given("answers", ()):
        text = call.payloads.get(answer["text"])
        questions_answered = open_now if answer["plan"] == call.given("artifacts").get(PLAN_FILE) else ()
        answers_by_id = _parse_answers_by_id(text)
        answers |= answers_by_id if answers_by_id is not None else {q.id: text for q in questions_answered}
    return answers


def _parse_answers_by_id(text: str) -> dict[str, str] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    is_answer_map = isinstance(value, dict) and value and all(isinstance(v, str) for v in value.values())
    return (
        {k if k.startswith("q-") else plan_question_id(k): v for k, v in value.items()}
        if is_answer_map
        else None
    )


def _write_plan_review(writer: DocumentWriter) -> None:
    call = writer.call
    plan, files = writer.document(PLAN_FILE, TaskPlan), writer.document(SCOPE_FILE, PlanFiles)
    if plan is None:
        raise ValueError("there is no plan to review: plan first")
    outside_reasons = (
        files_outside_bounds(find_plan_bounds(call), [f.path for f in files.files])
        if files is not None
        else {}
    )
    plan_review = opinions.build_plan_review(
        call.run,
        call.given("round"),
        call.given("artifacts")[PLAN_FILE],
        writer.replies("opinions", PlanReviewerReply),
        call.given("providers"),
        find_plan_flaws(plan, files, tuple(outside_reasons.values())),
    )
    writer.lay_down(PLAN_REVIEW_FILE, plan_review)
    writer.told += [f"{i.id} {i.found_by}: {i.text}" for i in plan_review.blocking_issues]
    writer.told += [f"{f.severity} {f.id}: {f.message}" for f in plan_review.flaws]


def _write_code_documents(writer: DocumentWriter) -> None:
    call = writer.call
    workspace = call.world.workspace(call.config)
    change = workspace.change(call.given("commit"), call.given("base"))
    write_change_documents(writer, change, call.given("base_tree"))
    if call.given("crew"):
        writer.suspects = count_suspects(call, change, find_change_suspects(call, workspace, change))


def _write_code_review(writer: DocumentWriter) -> None:
    call = writer.call
    review = opinions.build_code_review(
        call.run,
        call.given("turn"),
        call.given("tree"),
        call.given("artifacts").get(PATCH_FILE, ""),
        writer.replies("opinions", CodeReviewerReply),
        call.given("providers"),
    )
    writer.lay_down(CODE_REVIEW_FILE, review)
    writer.told += [f"{i.id} {i.found_by}: {i.text}" for i in (*review.blocking_issues, *review.plan_issues)]


def _write_test_report(writer: DocumentWriter) -> None:
    call = writer.call
    ref = call.given("results", "")
    results = msgspec.json.decode(call.payloads.get(ref), type=list[CommandResult]) if ref else []
    checks = msgspec.convert(call.given("checks"), CheckFacts)
    known_failures = call.config.known_failures
    report = build_task_test_report(
        call.run,
        call.given("turn"),
        call.given("tree"),
        results,
        checks,
        call.config.no_tests,
        known_failures,
    )
    writer.lay_down(TEST_REPORT_FILE, report)
    writer.told += [
        f"{s.name}: {s.verdict}"
        + (f", {count_with_noun(s.tests, 'test')}" if s.tests is not None else "")
        + (f", {s.reason}" if s.verdict == "passed" and s.reason else "")
        for s in report.suites
    ]


def _write_decision(writer: DocumentWriter) -> None:
    call, run_status = writer.call, read_run_view(writer.call.world, writer.call.run).status
    writer.lay_down(
        DECISION_FILE,
        AcceptDecision(
            task_id=call.run,
            decision=call.given("decision"),
            decided_by=call.given("person") or "somebody",
            reason=clip_text(call.given("reason"), 4000),
            tree=call.given("tree"),
            artifacts={n: d for n, d in call.given("artifacts").items() if n != DECISION_FILE},
            overrides=_waived_guards(run_status),
            evidence=_accepted_evidence(run_status, call.given("tree")),
        ),
    )


def _accepted_evidence(run_status: RunSummary, tree: str) -> tuple[AcceptedTestEvidence, ...]:
    """Who has accepted what this very tree does to the tests, and why, as the tape says."""
    evidence = run_status.evidence
    if evidence is None or evidence.tree != tree:
        return ()
    return (
        AcceptedTestEvidence(
            tree=tree, person=evidence.person or "somebody", reason=clip_text(evidence.reason, 4000)
        ),
    )


def _waived_guards(run_status: RunSummary) -> tuple[WaivedGuard, ...]:
    """Every guard that was waived on the way here, as the tape says."""
    return tuple(
        WaivedGuard(
            source=cast("TaskPhase", o.source),  # the tape has it from the machine
            to=cast("TaskPhase", o.to),
            person=o.person or "somebody",
            reason=clip_text(o.reason, 4000),
        )
        for o in run_status.overrides
    )


def _write_revert_record(writer: DocumentWriter) -> None:
    call = writer.call
    revert_facts = call.given("revert")
    writer.lay_down(
        REVERT_FILE,
        RevertRecord(
            task_id=call.run,
            status=revert_facts["status"],
            reason=clip_text(call.given("reason"), 4000),
            reverted_by=call.given("person") or "somebody",
            branch=call.given("target"),
            delivered=call.given("delivered"),
            commit=call.given("reverted"),
            detail=clip_text(call.payloads.get(revert_facts["detail"]), 4000),
        ),
    )


_PHASE_WRITERS: dict[str, Callable[[DocumentWriter], None]] = {
    "planning": _write_plan_documents,
    "plan_review": _write_plan_review,
    "codegen": _write_code_documents,
    "review": _write_code_review,
    "test": _write_test_report,
    "accept": _write_decision,
    "revert": _write_revert_record,
}
