"""Tests counted by a project's own pattern."""

import pytest

from steersman.judges.evidence.summary_patterns import (
    NO_SUMMARY_MATCH,
    SummaryCount,
    count_summary_matches,
    find_summary_pattern_problem,
    judge_summary_count,
)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (r"Passed: (?P<passed>\d+)", None),
        (r"(?P<total>\d+) tests, (?P<failed>\d+) bad, (?P<skipped>\d+) left out", None),
        (r"Passed: (\d+)", "names no group `passed`"),
        (r"(?P<failed>\d+)", "names no group `passed`"),
        (r"(?P<passed>\d+) (?P<flaky>\d+)", "names a group `flaky`: known are passed, failed, total, skipped"),
        ("(", "is not a regular expression"),
    ],
)  # fmt: skip
def test_pattern_problem(pattern, problem):
    """A pattern names the numbers that it counts; the problem says which group to write."""
    found = find_summary_pattern_problem(pattern)
    assert found is None if problem is None else problem in found


@pytest.mark.parametrize(
    ("matches", "counted"),
    [
        ([], SummaryCount(problem=NO_SUMMARY_MATCH)),
        ([{"passed": "32"}], SummaryCount(32, passed=32)),
        ([{"passed": "3", "failed": "2"}, {"passed": "4", "failed": None}], SummaryCount(9, 2, 7)),
        ([{"total": "5", "passed": "4", "skipped": "1"}], SummaryCount(4, passed=4)),
        ([{"total": "5", "failed": "2"}], SummaryCount(5, 2, 3)),
        ([{"total": "5", "passed": None}], SummaryCount(5, passed=0)),
        ([{"total": "1", "skipped": "2"}], SummaryCount(0)),
        ([{"passed": "many"}], SummaryCount(problem="its `summary` pattern in steersman.toml matches text that is no number")),
    ],
)  # fmt: skip
def test_count_matches(matches, counted):
    """All matches are added up; without one nothing is counted."""
    assert count_summary_matches(matches) == counted


@pytest.mark.parametrize(
    ("code", "counted", "verdict"),
    [
        (0, SummaryCount(3), ("passed", 3, "")),
        (0, SummaryCount(0), ("no_tests", 0, "")),
        (0, SummaryCount(problem="why"), ("no_tests", None, "why")),
        (1, SummaryCount(3), ("failed", 3, "")),
        (0, SummaryCount(3, 1), ("failed", 3, "its summary counts 1 failed, its exit code is 0")),
    ],
)
def test_judge_summary(code, counted, verdict):
    """Passing needs exit code 0, a counted test and no failure in the summary."""
    assert judge_summary_count(code, counted) == verdict
