"""Renders the text of a draft pull request: what was proven, by which checks, and how to verify it.

**Invariant:** outside text stands in a fence, so that a forge sees no mention, closing word or link in it.
"""

import re

import msgspec

from steersman.judges.evidence.summary_patterns import COUNTED_BY_PATTERN, EXIT_CODE_ONLY
from steersman.judges.text import count_with_noun
from steersman.ports.anchors import Anchor
from steersman.views.report import table_lines
from steersman.views.run_summary import RunSummary, known_failures_words
from steersman.views.screen import quote_cell

MAX_REPORT_LENGTH = 50_000


def pull_request_body(details: RunSummary, report: str, anchor: Anchor | None) -> str:
    """Renders the whole body."""
    checks = [c for c in details.checks if not c.variant]
    passed = sum(1 for c in checks if c.verdict in ("passed", "known"))
    known = sum(c.known for c in checks)
    but = f" but for {known_failures_words(known)}" if known else ""
    tests = sum(c.tests or 0 for c in checks)
    chosen = "".join(
        f" ({', '.join(map(quote_cell, names))}: {reason})"
        for reason in (EXIT_CODE_ONLY, COUNTED_BY_PATTERN)
        if (names := [c.name for c in checks if c.verdict == "passed" and c.reason == reason])
    )
    rows = [
        ("run", f"`{details.run}`"),
        ("outcome", f"`{details.outcome}`"),
        (
            "evidence",
            f"{passed} of {len(checks)} checks passed{but}, {count_with_noun(tests, 'test')}, run by steersman itself{chosen}",
        ),
        ("tree", f"`{details.tree}`"),
        ("base", f"`{details.base}`"),
    ]
    parts = ["Draft by steersman. A person decides.", "", *table_lines(("", ""), rows)]
    return "\n".join([*parts, *_report_details(report), *_tape_anchor_lines(details, anchor)])


def _report_details(report: str) -> list[str]:
    cut = report if len(report) <= MAX_REPORT_LENGTH else f"{report[:MAX_REPORT_LENGTH]}\n(cut)"
    return ["<details><summary>Report</summary>", "", *fenced_block(cut), "", "</details>", ""]


def _tape_anchor_lines(details: RunSummary, anchor: Anchor | None) -> list[str]:
    if anchor is None:
        return ["There is no anchor of the tape.", ""]
    anchor_sentence = f"Signed anchor of the tape at entry {anchor.seq}; check it with `steersman audit verify {details.run}`:"
    return [anchor_sentence, "", *fenced_block(msgspec.json.encode(anchor).decode()), ""]


def fenced_block(words: str) -> list[str]:
    """Puts text into a fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *words.rstrip("\n").splitlines(), fence]
