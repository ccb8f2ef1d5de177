"""The words of a pull request: what was proven, by what, and where to check it.

**Invariant:** outside text stands in a fence: at a forge it mentions nobody, closes nothing and links nowhere.
"""

import re

import msgspec

from steersman.judges.summary_patterns import BY_PATTERN, EXIT_CODE_ONLY
from steersman.judges.text import count_of
from steersman.ports.anchors import Anchor
from steersman.views.quotation import cell
from steersman.views.status import Status, known_failures_words

LONGEST = 50_000


def body(s: Status, report: str, anchor: Anchor | None) -> str:
    """The whole body; ends with a newline."""
    checks = [c for c in s.checks if not c.variant]
    passed = sum(1 for c in checks if c.verdict in ("passed", "known"))
    known = sum(c.known for c in checks)
    but = f" but for {known_failures_words(known)}" if known else ""
    tests = sum(c.tests or 0 for c in checks)
    chosen = "".join(
        f" ({', '.join(map(cell, names))}: {reason})"
        for reason in (EXIT_CODE_ONLY, BY_PATTERN)
        if (names := [c.name for c in checks if c.verdict == "passed" and c.reason == reason])
    )
    rows = [
        ("run", f"`{s.run}`"),
        ("outcome", f"`{s.outcome}`"),
        (
            "evidence",
            f"{passed} of {len(checks)} checks passed{but}, {count_of(tests, 'test')}, run by steersman itself{chosen}",
        ),
        ("tree", f"`{s.tree}`"),
        ("base", f"`{s.base}`"),
    ]
    table = [f"| {name} | {value} |" for name, value in rows]
    parts = ["Draft by steersman. A person decides.", "", "| | |", "|---|---|", *table, ""]
    return "\n".join([*parts, *_report(report), *_anchor(s, anchor)])


def _report(report: str) -> list[str]:
    cut = report if len(report) <= LONGEST else f"{report[:LONGEST]}\n(cut)"
    return ["<details><summary>Report</summary>", "", *fenced(cut), "", "</details>", ""]


def _anchor(s: Status, anchor: Anchor | None) -> list[str]:
    if anchor is None:
        return ["There is no anchor of the tape.", ""]
    told = f"Signed anchor of the tape at entry {anchor.seq}; check it with `steersman audit verify {s.run}`:"
    return [told, "", *fenced(msgspec.json.encode(anchor).decode()), ""]


def fenced(words: str) -> list[str]:
    """Text in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *words.rstrip("\n").splitlines(), fence]
