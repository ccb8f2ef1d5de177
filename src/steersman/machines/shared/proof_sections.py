"""What a report says of proof beside the last results: the base tree, what was in question, what stayed open.

Texts from outside are quoted, never interpreted.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.judges.evidence.base_checks import count_known_failures
from steersman.judges.text import clip_text
from steersman.machines.shared.tree_summary import TreeContext
from steersman.views.failed_check import failed_check_lines
from steersman.views.quotation import quote_block, quote_cell
from steersman.views.run_summary import PayloadReader, known_failure_names, verdict_words

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
        f"| {quote_cell(r.name)} | {verdict_words(r.verdict, count)} | {_number_or_dash(r.exit_code)} | {_number_or_dash(r.tests)} | {quote_cell(clip_text(_failed_test_names(r), MAX_EVIDENCE_CELL))} |"
        for r, count in zip(results, counts, strict=True)
    ]
    head = [
        "## The base tree",
        "",
        f"The project's checks before any change, on tree `{context.base_tree}`.",
        "",
    ]
    failures = [
        line
        for r, count in zip(results, counts, strict=True)
        if r.verdict != "passed" and not count
        for line in (*quote_block("\n".join(failed_check_lines(r))), "")
    ]
    return [
        *head,
        "| check | verdict | exit | tests | failed |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *failures,
    ]


def evidence_questions_section(
    context: QuestionedContext, text: PayloadReader, *, asks: bool, questions_ref: str = ""
) -> list[str]:
    """What a person was asked about, and who accepted it."""
    questions_text = "\n".join(filter(None, (text(context.infrastructure_ref), text(questions_ref))))
    if not questions_text:
        return []
    return [
        "## What was in question",
        "",
        *quote_block(questions_text),
        "",
        _acceptance_sentence(context, asks=asks),
        "",
    ]


def _acceptance_sentence(context: QuestionedContext, *, asks: bool) -> str:
    if context.accepted_by:
        return f"Accepted by {quote_cell(context.accepted_by)} on tree `{context.accepted_tree}`."
    return "Not accepted by anybody." if asks else "Only shown: nobody had to accept it."


def escalation_section(pack: Mapping[str, Any], text: PayloadReader) -> list[str]:
    """What stayed open, since when, and what was tried."""
    finding_rows = [
        f"| {f['id']} | {f['since']} | {f['rounds']} | {quote_cell(clip_text(text(f['text']), MAX_EVIDENCE_CELL))} |"
        for f in pack.get("findings", ())
    ]
    attempt_rows = [f"| {t['round']} | `{str(t['tree'])[:12]}` |" for t in pack.get("tried", ())]
    open_ = (
        ["| finding | since round | reviews | what |", "|---|---|---|---|", *finding_rows, ""]
        if finding_rows
        else []
    )
    if not finding_rows and not attempt_rows:
        return []
    return [
        "## What stayed open",
        "",
        *open_,
        "| round | tree that was tried |",
        "|---|---|",
        *attempt_rows,
        "",
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
