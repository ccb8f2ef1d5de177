"""What a report says of proof beside the last results: the base tree, what was in question, what stayed open.

Texts from outside are quoted, never interpreted.
"""

from typing import Any

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.judges.base_checks import count_known
from steersman.judges.text import clip
from steersman.views.failed_check import failed_check_lines
from steersman.views.quotation import block, cell
from steersman.views.status import Text, known_names, verdict_words

SHOWN = 300


def base_tree(c: dict[str, Any], text: Text) -> list[str]:
    """The checks before any change."""
    results = _results(text(c.get("baseline_ref", "")))
    if not results:
        return []
    known = known_names(c, text)
    counts = [count_known(r, results, known) for r in results]
    rows = [
        f"| {cell(r.name)} | {verdict_words(r.verdict, count)} | {_figure(r.exit_code)} | {_figure(r.tests)} | {cell(clip(_failed(r), SHOWN))} |"
        for r, count in zip(results, counts, strict=True)
    ]
    head = [
        "## The base tree",
        "",
        f"The project's checks before any change, on tree `{c.get('base_tree', '')}`.",
        "",
    ]
    failures = [
        line
        for r, count in zip(results, counts, strict=True)
        if r.verdict != "passed" and not count
        for line in (*block("\n".join(failed_check_lines(r))), "")
    ]
    return [
        *head,
        "| check | verdict | exit | tests | failed |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *failures,
    ]


def questions(c: dict[str, Any], text: Text) -> list[str]:
    """What a person was asked about, and who accepted it."""
    told = "\n".join(filter(None, (text(c.get("infrastructure_ref", "")), text(c.get("questions_ref", "")))))
    if not told:
        return []
    return ["## What was in question", "", *block(told), "", _accepted(c), ""]


def _accepted(c: dict[str, Any]) -> str:
    if c.get("accepted_by"):
        return f"Accepted by {cell(c['accepted_by'])} on tree `{c.get('accepted_tree', '')}`."
    asks = c.get("infrastructure") == "changed" or c.get("evidence") == "questioned"
    return "Not accepted by anybody." if asks else "Only shown: nobody had to accept it."


def escalation(c: dict[str, Any], text: Text) -> list[str]:
    """What stayed open, since when, and what was tried."""
    pack = c.get("escalation") or {}
    found = [
        f"| {f['id']} | {f['since']} | {f['rounds']} | {cell(clip(text(f['text']), SHOWN))} |"
        for f in pack.get("findings", ())
    ]
    tried = [f"| {t['round']} | `{str(t['tree'])[:12]}` |" for t in pack.get("tried", ())]
    open_ = ["| finding | since round | reviews | what |", "|---|---|---|---|", *found, ""] if found else []
    if not found and not tried:
        return []
    return ["## What stayed open", "", *open_, "| round | tree that was tried |", "|---|---|", *tried, ""]


def _results(told: str) -> list[CommandResult]:
    try:
        return msgspec.json.decode(told, type=list[CommandResult]) if told else []
    except msgspec.MsgspecError:  # pruned
        return []


def _failed(r: CommandResult) -> str:
    return ", ".join(r.report.failed) if r.report is not None else ""


def _figure(number: int | None) -> str:
    return "–" if number is None else str(number)
