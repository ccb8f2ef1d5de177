"""Counts tests by a project's own `summary` pattern, for runners that steersman does not know.

**Invariant:** pure; a pattern that matches nothing counts nothing, and zero tests is never a pass. Matching itself is
done by an adapter, because a pattern can take exponential time.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from steersman.contracts.commands import CommandOutcome

SUMMARY_GROUPS = ("passed", "failed", "total", "skipped")
EXIT_CODE_ONLY = "exit code only (chosen in steersman.toml)"
COUNTED_BY_PATTERN = "counted by a summary pattern (chosen in steersman.toml)"
NO_SUMMARY_MATCH = "its `summary` pattern in steersman.toml matches nothing in its output: no test is counted"


class SummaryCount(msgspec.Struct, frozen=True):
    """How many tests the matches count, or why none could be counted."""

    ran: int | None = None
    failed: int = 0
    passed: int | None = None  # None where the pattern does not tell
    problem: str = ""


def find_summary_pattern_problem(pattern: str) -> str | None:
    """Why a text cannot be a `summary` pattern, and what to write instead; None where it can."""
    try:
        names = re.compile(pattern, re.MULTILINE).groupindex
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}"
    if "passed" not in names and "total" not in names:
        return r"names no group `passed`: write the number as (?P<passed>\d+)"
    unknown = [name for name in names if name not in SUMMARY_GROUPS]
    return f"names a group `{unknown[0]}`: known are {', '.join(SUMMARY_GROUPS)}" if unknown else None


def count_summary_matches(matches: Sequence[Mapping[str, str | None]]) -> SummaryCount:
    """Adds up the numbers of all matches; `total` counts skipped tests, `passed` does not."""
    if not matches:
        return SummaryCount(problem=NO_SUMMARY_MATCH)
    ran = failed = passed = 0
    counts_passes = all("passed" in groups or "failed" in groups for groups in matches)
    for groups in matches:
        numbers = {name: _parse_summary_number(text) for name, text in groups.items() if text is not None}
        if None in numbers.values():
            return SummaryCount(
                problem="its `summary` pattern in steersman.toml matches text that is no number"
            )
        counts = {name: number or 0 for name, number in numbers.items()}
        failed += counts.get("failed", 0)
        passed_or_failed = counts.get("passed", 0) + counts.get("failed", 0)
        test_count = counts["total"] - counts.get("skipped", 0) if "total" in counts else passed_or_failed
        ran += test_count
        passed += counts.get("passed", 0) if "passed" in groups else test_count - counts.get("failed", 0)
    return SummaryCount(max(0, ran), failed, max(0, passed) if counts_passes else None)


def judge_summary_count(exit_code: int, count: SummaryCount) -> tuple[CommandOutcome, int | None, str]:
    """The verdict on a check with a `summary` that ended by itself, its tests, and why it is no pass."""
    if exit_code != 0:
        return "failed", count.ran, ""
    if count.failed:
        return "failed", count.ran, f"its summary counts {count.failed} failed, its exit code is 0"
    return "passed" if count.ran else "no_tests", count.ran, count.problem


def _parse_summary_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
