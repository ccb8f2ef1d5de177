"""Counts tests by a project's own `summary` pattern, for runners that steersman does not know.

**Invariant:** pure; a pattern that matches nothing counts nothing, and zero tests is never a pass. Matching itself is
done by an adapter, because a pattern can take exponential time.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from steersman.judges.runners import Outcome

GROUPS = ("passed", "failed", "total", "skipped")
EXIT_CODE_ONLY = "exit code only (chosen in steersman.toml)"
BY_PATTERN = "counted by a summary pattern (chosen in steersman.toml)"
NO_MATCH = "its `summary` pattern in steersman.toml matches nothing in its output: no test is counted"


class SummaryCount(msgspec.Struct, frozen=True):
    """How many tests the matches count, or why none could be counted."""

    ran: int | None = None
    failed: int = 0
    passed: int | None = None  # None where the pattern does not tell
    problem: str = ""


def pattern_problem(pattern: str) -> str | None:
    """Why a text cannot be a `summary` pattern, and what to write instead; None where it can."""
    try:
        names = re.compile(pattern, re.MULTILINE).groupindex
    except (re.error, OverflowError, RecursionError) as error:
        return f"is not a regular expression: {error}"
    if "passed" not in names and "total" not in names:
        return r"names no group `passed`: write the number as (?P<passed>\d+)"
    unknown = [name for name in names if name not in GROUPS]
    return f"names a group `{unknown[0]}`: known are {', '.join(GROUPS)}" if unknown else None


def count_matches(matches: Sequence[Mapping[str, str | None]]) -> SummaryCount:
    """Adds up the numbers of all matches; `total` counts skipped tests, `passed` does not."""
    if not matches:
        return SummaryCount(problem=NO_MATCH)
    ran = failed = passed = 0
    told = all("passed" in groups or "failed" in groups for groups in matches)
    for groups in matches:
        numbers = {name: _number(text) for name, text in groups.items() if text is not None}
        if None in numbers.values():
            return SummaryCount(
                problem="its `summary` pattern in steersman.toml matches text that is no number"
            )
        counts = {name: number or 0 for name, number in numbers.items()}
        failed += counts.get("failed", 0)
        both = counts.get("passed", 0) + counts.get("failed", 0)
        here = counts["total"] - counts.get("skipped", 0) if "total" in counts else both
        ran += here
        passed += counts.get("passed", 0) if "passed" in groups else here - counts.get("failed", 0)
    return SummaryCount(max(0, ran), failed, max(0, passed) if told else None)


def judge_summary(exit_code: int, counted: SummaryCount) -> tuple[Outcome, int | None, str]:
    """The verdict on a check with a `summary` that ended by itself, its tests, and why it is no pass."""
    if exit_code != 0:
        return "failed", counted.ran, ""
    if counted.failed:
        return "failed", counted.ran, f"its summary counts {counted.failed} failed, its exit code is 0"
    return "passed" if counted.ran else "no_tests", counted.ran, counted.problem


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
