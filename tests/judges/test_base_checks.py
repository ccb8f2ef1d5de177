"""A base tree may be begun on, or not: what cannot start, what fails, what is acknowledged."""

import pytest

from steersman.contracts.commands import CommandResult, RunnerReport, full_output
from steersman.judges.evidence.baseline import (
    count_known_failures,
    find_acknowledgeable_failures,
    judge_base_checks,
)

TWO = RunnerReport(form="unittest", ran=3, failures=2, failed=("m.A.test_a", "m.A.test_b"))


def result(verdict="failed", exit_code=1, name="unit", **more):
    return CommandResult(
        name=name, argv=("t",), source="project", verdict=verdict, exit_code=exit_code, **more
    )


def names(of):
    return [r.name for r in of]


@pytest.mark.parametrize(
    ("runs", "unstarted", "red"),
    [
        ([result("passed", 0, tests=3)], 0, 0),
        ([result("no_tests", 0)], 0, 0),
        ([result("no_tests", 5)], 0, 0),
        ([result()], 0, 1),
        ([result("timeout", None)], 0, 1),
        ([result("blocked", None)], 0, 1),
        ([result(exit_code=None)], 1, 0),
        ([result(exit_code=127)], 1, 0),
        ([result(), result("passed", 0, tests=3)], 0, 0),
        ([result(), result(exit_code=2)], 0, 1),
        ([result(), result(name="lint", exit_code=None)], 1, 1),
    ],
)
def test_what_stands_against_beginning(runs, unstarted, red):
    """Failures and checks without an end are red, checks that cannot start are apart; no tests and flaky ones are not red."""
    base = judge_base_checks(runs, frozenset())
    assert (len(base.unstarted), len(base.red)) == (unstarted, red)


@pytest.mark.parametrize(
    ("known", "red"), [((), 1), (("m.A.test_a",), 1), (("m.A.test_a", "m.A.test_b"), 0), (("unit",), 0)]
)
def test_acknowledged_failures_are_not_red(known, red):
    """Every failing test by name, or the check as a whole; half of it is not enough."""
    assert len(judge_base_checks([result(report=TWO)], frozenset(known)).red) == red


@pytest.mark.parametrize(
    ("now", "base", "known", "count"),
    [
        (result(report=TWO), [result(report=TWO)], ("m.A.test_a", "m.A.test_b"), 2),
        (result(report=TWO), [result(report=TWO)], ("m.A.test_a",), 0),
        (result(report=TWO), [], ("m.A.test_a", "m.A.test_b"), 0),
        (result(), [result()], ("unit",), 1),
        (result("passed", 0, tests=3), [result(report=TWO)], ("unit",), 0),
    ],
)
def test_known_failures_are_counted(now, base, known, count):
    """Only where nothing else fails, and what fails has failed on the base tree too."""
    assert count_known_failures(now, base, frozenset(known)) == count


def test_a_check_that_cannot_start_is_never_acknowledged():
    """A name in known_failures does not make up for a program that is not there."""
    assert names(judge_base_checks([result(exit_code=None)], frozenset({"unit"})).unstarted) == ["unit"]


def test_what_can_be_acknowledged():
    """Failing tests by name; a check without names by its own where it counts what passes or runs no tests; no other."""
    more = RunnerReport(form="unittest", ran=3, failures=1, failed=("m.A.test_c",))
    runs = [
        result(report=TWO),
        result(report=more),
        result(name="lint"),
        result(name="cut", passed=2, report=RunnerReport(form="unittest", failed=("x",), cut=True)),
        result(name="vitest", tests=78, passed=78),
        result(name="crashed"),
        result(name="crashed"),
        result(name="unknown", tests=5),
        result(name="all red", tests=5, passed=0),
        result("timeout", None, name="slow"),
        result("blocked", None, name="far"),
        result(name="gone", exit_code=None),
        result("passed", 0, name="fine"),
    ]
    found = find_acknowledgeable_failures(runs, frozenset({"m.A.test_b"}), no_tests=("lint",))
    assert found.names == ("m.A.test_a", "m.A.test_c", "lint", "cut", "vitest")
    assert [name for name, _ in found.refused] == ["gone", "slow", "far", "crashed", "unknown", "all red"]
    assert found.refused[-1][1].startswith("its failures have no names")


def test_three_failing_checks_are_shown_whole():
    """What cannot start comes first."""
    runs = [*(result(name=f"c{n}") for n in range(4)), result(name="gone", exit_code=None)]
    assert names(judge_base_checks(runs, frozenset()).shown) == ["gone", "c0", "c1"]


def test_everything_that_was_printed():
    """Standard output and then standard error, each on lines of its own; an older record has both in one."""
    assert full_output(result(output="a\n", errors="b")) == "a\nb"
    assert full_output(result(output="both")) == "both"
    assert full_output(result(errors="b")) == "b"
