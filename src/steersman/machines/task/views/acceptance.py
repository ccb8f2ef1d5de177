"""Exactly what a person accepts: the change, who judged it and how, what was run, what was waived, every digest."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from steersman.judges.redaction.secret_keys import REDACTION_MARKER_PATTERN
from steersman.judges.text import count_with_noun, printable_line, printable_text
from steersman.kernel.snapshot import Snapshot, context_fields
from steersman.machines.task.documents.schemas import (
    ChangeCopies,
    CodeReview,
    PlanFiles,
    PlanReview,
    TaskPlan,
    TestReport,
)
from steersman.machines.task.documents.scope import find_untouched_plan_files
from steersman.machines.task.documents.words import (
    CODE_REVIEW_FILE,
    COPIES_LIST_FILE,
    PATCH_FILE,
    PLAN_FILE,
    PLAN_REVIEW_FILE,
    SCOPE_FILE,
    TEST_REPORT_FILE,
)
from steersman.machines.task.views.phase import (
    blocking_issue_lines,
    code_review_lines,
    open_plan_questions,
    plan_review_lines,
)
from steersman.ports.journal import Gate
from steersman.views.gates import OUTSIDE_TEXT_GUTTER
from steersman.views.run_summary import PayloadReader, RunSummary, override_line


def acceptance_lines(
    snapshot: Snapshot, details: RunSummary, gate: Gate, text: PayloadReader, *, most: int | None = None
) -> list[str]:
    """The lines, from the recorded documents; with `most`, so many of the change."""
    context = context_fields(snapshot.context)
    change = printable_text(_recorded_document_text(context, PATCH_FILE, text)).splitlines()
    rest = len(change) - (most or len(change))
    return [
        f"run {snapshot.run} · {details.title}",
        f"  tree {context['tree']} on base {context['base_commit'][:12]}, delivered as {context['deliver']} to {context['target'] or 'a branch'}",
        *_moved_branch_lines(context),
        *_plan_bounds_lines(context, text),
        "",
        "the change:",
        *(f"{OUTSIDE_TEXT_GUTTER}{line}".rstrip() for line in change[:most]),
        *([f"  … and {rest} more lines"] if rest > 0 else []),
        *_hidden_secret_lines(change),
        *_untouched_file_lines(context, text),
        *_open_question_lines(context, text),
        "verdicts:",
        *(f"  {printable_line(line)}" for line in _review_verdict_lines(context, text)),
        "evidence:",
        *(f"  {printable_line(line)}" for line in _test_evidence_lines(context, details, text)),
        "overrides:",
        *(f"  {override_line(o)}" for o in details.overrides),
        *([] if details.overrides else ["  none"]),
        "documents:",
        *(f"  {digest[:16]}  {name}" for name, digest in sorted(context["artifacts"].items())),
        f"all of it: {gate.digest}",
    ]


def _moved_branch_lines(context: dict[str, Any]) -> list[str]:
    """That what was first judged stood on another commit."""
    times = context["followed"]
    again = f"{times} times" if times > 1 else "once"
    line = f"  {context['target']} has moved {again} since: the change was put on top of it, reviewed and tested again"
    return [line] if times else []


def _plan_bounds_lines(context: dict[str, object], text: PayloadReader) -> Iterator[str]:
    """The frozen plan that none of it leaves."""
    copies_text = _recorded_document_text(context, COPIES_LIST_FILE, text)
    plan = msgspec.json.decode(copies_text, type=ChangeCopies).held_to if copies_text else ""
    if plan:
        yield f"  held to {plan}"


def _hidden_secret_lines(change: list[str]) -> list[str]:
    """Says that the delivered change holds secrets that are not shown, so that a person knows before accepting."""
    places = sum(
        len(re.findall(REDACTION_MARKER_PATTERN, line)) for line in change if not line.startswith("-")
    )
    if not places:
        return []
    count_text = "1 place is" if places == 1 else f"{places} places are"
    return [
        f"  {count_text} hidden here because of what looks like a secret; the change that is delivered HOLDS it in plain text"
    ]


def _untouched_file_lines(context: dict[str, Any], text: PayloadReader) -> Iterator[str]:
    """What the plan has and the change has not: a file that git ignores is in none."""
    planned = _recorded_document_text(context, SCOPE_FILE, text)
    copies_text = _recorded_document_text(context, COPIES_LIST_FILE, text)
    if not planned or not copies_text:
        return
    changed_paths = [copied.path for copied in msgspec.json.decode(copies_text, type=ChangeCopies).files]
    for path in find_untouched_plan_files(msgspec.json.decode(planned, type=PlanFiles), changed_paths):
        yield f"  planned, and not in the change (nothing was done there, or git ignores it): {printable_line(path)}"


def _open_question_lines(context: dict[str, Any], text: PayloadReader) -> Iterator[str]:
    """The questions of the planners that no person had to answer."""
    plan_text = _recorded_document_text(context, PLAN_FILE, text)
    questions = open_plan_questions(msgspec.json.decode(plan_text, type=TaskPlan)) if plan_text else []
    if questions:
        yield "questions that the plan left open:"
    yield from (f"  {printable_line(line)}" for line in questions)


def _recorded_document_text(context: dict[str, object], name: str, text: PayloadReader) -> str:
    documents = context["documents"]
    return text(documents.get(name, "")) if isinstance(documents, dict) else ""


def _review_verdict_lines(context: dict[str, object], text: PayloadReader) -> Iterator[str]:
    kinds: tuple[tuple[str, Any, Any], ...] = (
        (PLAN_REVIEW_FILE, plan_review_lines, PlanReview),
        (CODE_REVIEW_FILE, code_review_lines, CodeReview),
    )
    for name, render_verdict, kind in kinds:
        review_text = _recorded_document_text(context, name, text)
        if not review_text:
            yield f"{name}: there is none"
            continue
        yield from render_verdict(review_text)
        yield from blocking_issue_lines(msgspec.json.decode(review_text, type=kind))


def _test_evidence_lines(
    context: dict[str, object], details: RunSummary, text: PayloadReader
) -> Iterator[str]:
    report_text = _recorded_document_text(context, TEST_REPORT_FILE, text)
    if not report_text:
        yield "there is none"
        return
    report = msgspec.json.decode(report_text, type=TestReport)
    yield f"{'passed' if report.overall_pass else 'NOT passed'} on tree {report.tree}"
    for suite in report.suites:
        tests = f", {count_with_noun(suite.tests, 'test')}" if suite.tests is not None else ""
        only = f", {suite.reason}" if suite.verdict == "passed" and suite.reason else ""
        yield f"  {suite.name}: {suite.verdict}{tests}{only}: {' '.join(suite.argv)}"
    if context["accepted_by"]:
        why = (
            f": {details.evidence.reason}" if details.evidence is not None and details.evidence.reason else ""
        )
        yield f"  what it does to the tests was accepted by {context['accepted_by']}{why}"
