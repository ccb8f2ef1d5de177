"""The summary of a run that works on a tree: its checks, its change, where it went, and the files beside it."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.engine.machine_package import Artifact, RunView
from steersman.engine.projections import format_json_file
from steersman.judges.evidence.baseline import count_known_failures
from steersman.judges.text import clip_text
from steersman.kernel.snapshot import Snapshot
from steersman.views.base_stop import BASE_PROBLEMS
from steersman.views.failed_check import failed_check_lines
from steersman.views.report import CHECK_COLUMNS, quoted_section, table_lines
from steersman.views.run_summary import (
    CheckStatus,
    PayloadReader,
    RunFacts,
    known_failure_names,
    read_checks,
    running_checks,
    verdict_words,
)
from steersman.views.screen import quote_block, quote_cell


class TreeContext(Protocol):
    """What the contexts of machines that work on a tree have in common."""

    config_ref: str
    base_commit: str
    base_tree: str
    baseline_ref: str
    results_ref: str
    commit: str
    tree: str
    delivered_ref: str
    delivered_commit: str
    url_ref: str
    reverted_commit: str
    detail_ref: str


def tree_summary_fields(facts: RunFacts, context: TreeContext) -> dict[str, Any]:
    """The fields of a summary that are read the same way from every such context."""
    text = facts.text
    return {
        "checks": latest_checks(facts.snapshot, context, text),
        "base_checks": read_base_checks(context, text),
        "delivered": context.delivered_ref,
        "url": text(context.url_ref),
        "reverted": context.reverted_commit,
        "commit": context.delivered_commit or context.commit,
        "tree": context.tree,
        "base": context.base_commit,
        "detail": text(context.detail_ref),
    }


def latest_checks(snapshot: Snapshot, context: TreeContext, text: PayloadReader) -> tuple[CheckStatus, ...]:
    """The last results: of checks that run now, else of the last round."""
    running = running_checks(snapshot)
    if running is not None:
        return running
    known = known_failure_names(text(context.config_ref))
    return read_checks(text(context.results_ref), text(context.baseline_ref), known)


def read_base_checks(context: TreeContext, text: PayloadReader) -> tuple[CheckStatus, ...]:
    """The results before any change."""
    results = text(context.baseline_ref)
    return read_checks(results, results, known_failure_names(text(context.config_ref)))


def base_problem_of_outcome(outcome: str) -> str:
    """Why a run stopped on its base tree; nothing where it did not."""
    return outcome if outcome in BASE_PROBLEMS else ""


def check_result_files(run_view: RunView) -> Iterator[Artifact]:
    """The recorded results of the last checks."""
    context: TreeContext = run_view.snapshot.context
    if context.results_ref:
        yield "test-results.json", lambda: format_json_file(run_view.text(context.results_ref).encode())


# ── proof sections ──────────────────────────────────────────────────────────────────────────────────────────────────────

# What a report says of proof beside the last results: the base tree, what was in question, what stayed open.
#
# Texts from outside are quoted, never interpreted.


MAX_EVIDENCE_CELL = 300


class QuestionedContext(Protocol):
    """What a context knows of a change that a person was asked about."""

    infrastructure_ref: str
    accepted_by: str
    accepted_tree: str


def base_tree_section(context: TreeContext, text: PayloadReader) -> list[str]:
    """The checks before any change."""
    results = _decode_recorded_results(text(context.baseline_ref))
    if not results:
        return []
    known = known_failure_names(text(context.config_ref))
    counts = [count_known_failures(r, results, known) for r in results]
    rows = [
        (
            quote_cell(r.name),
            verdict_words(r.verdict, count),
            _number_or_dash(r.exit_code),
            _number_or_dash(r.tests),
            quote_cell(clip_text(_failed_test_names(r), MAX_EVIDENCE_CELL)),
        )
        for r, count in zip(results, counts, strict=True)
    ]
    sentence = f"The project's checks before any change, on tree `{context.base_tree}`."
    failures = [
        line
        for r, count in zip(results, counts, strict=True)
        if r.verdict != "passed" and not count
        for line in (*quote_block("\n".join(failed_check_lines(r))), "")
    ]
    return ["## The base tree", "", sentence, "", *table_lines((*CHECK_COLUMNS, "failed"), rows), *failures]


def evidence_questions_section(
    context: QuestionedContext, text: PayloadReader, *, asks: bool, questions_ref: str = ""
) -> list[str]:
    """What a person was asked about, and who accepted it."""
    questions_text = "\n".join(filter(None, (text(context.infrastructure_ref), text(questions_ref))))
    if not questions_text:
        return []
    questions = quoted_section("What was in question", questions_text)
    return [*questions, _acceptance_sentence(context, asks=asks), ""]


def _acceptance_sentence(context: QuestionedContext, *, asks: bool) -> str:
    if context.accepted_by:
        return f"Accepted by {quote_cell(context.accepted_by)} on tree `{context.accepted_tree}`."
    return "Not accepted by a person." if asks else "Only shown: no person had to accept it."


def escalation_section(pack: Mapping[str, Any], text: PayloadReader) -> list[str]:
    """What stayed open, since when, and what was tried."""
    findings = [
        (
            f["id"],
            str(f["since"]),
            str(f["rounds"]),
            quote_cell(clip_text(text(f["text"]), MAX_EVIDENCE_CELL)),
        )
        for f in pack.get("findings", ())
    ]
    attempts = [(str(t["round"]), f"`{str(t['tree'])[:12]}`") for t in pack.get("tried", ())]
    if not findings and not attempts:
        return []
    open_findings = table_lines(("finding", "since round", "reviews", "what"), findings) if findings else []
    return [
        "## What stayed open",
        "",
        *open_findings,
        *table_lines(("round", "tree that was tried"), attempts),
    ]


def _decode_recorded_results(results_json: str) -> list[CommandResult]:
    try:
        return msgspec.json.decode(results_json, type=list[CommandResult]) if results_json else []
    except msgspec.MsgspecError:  # pruned
        return []


def _failed_test_names(result: CommandResult) -> str:
    return ", ".join(result.report.failed) if result.report is not None else ""


def _number_or_dash(number: int | None) -> str:
    return "–" if number is None else str(number)
