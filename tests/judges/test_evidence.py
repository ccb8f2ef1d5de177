"""What a round of commands proves."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.contracts.commands import CommandResult
from steersman.judges import evidence
from steersman.judges.evidence import summarise

CODES = {"passed": 0, "failed": 1, "no_tests": 5}


def result(verdict, argv=("pytest", "-q"), **more):
    given_ = {"exit_code": CODES.get(verdict), "name": "unit", "source": "project", **more}
    return CommandResult(verdict=verdict, argv=argv, **given_)


def test_nothing_is_failure():
    """An empty list is never passed."""
    summary = summarise([], (), "same_command")
    assert summary.verdict == "failed"
    assert not summary.all_passed
    assert not summary.only_blocked_failures


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["passed"], "passed"),
        (["passed", "passed"], "passed"),
        (["blocked"], "blocked"),
        (["passed", "blocked"], "blocked"),
        (["failed"], "failed"),
        (["timeout"], "failed"),
        (["no_tests"], "failed"),
        (["passed", "no_tests"], "failed"),
        (["blocked", "failed"], "failed"),
        (["blocked", "timeout"], "failed"),
    ],
)
def test_precedence(verdicts, expected):
    """failed > blocked > passed; a timeout and zero tests are failures."""
    summary = summarise([result(v) for v in verdicts], (), "same_command")
    assert summary.verdict == expected
    assert summary.all_passed == (expected == "passed")
    assert summary.only_blocked_failures == (expected == "blocked")


def test_counts():
    """Each verdict is counted, and the tests where a runner tells them."""
    results = [result(v, (v,)) for v in ("passed", "failed", "blocked", "timeout", "no_tests")]
    summary = summarise(
        [*results, result("passed", tests=7), result("passed", tests=None)], (), "same_command"
    )
    assert (summary.passed, summary.failed, summary.blocked, summary.timeout, summary.no_tests) == (
        3,
        1,
        1,
        1,
        1,
    )
    assert summary.tests == 7
    assert summary.failed_commands == ("failed", "timeout", "no_tests")


def test_a_pass_that_contradicts_its_record():
    """A pass with zero tests or a failing exit code is not one."""
    assert summarise([result("passed", tests=0)], (), "same_command").no_tests == 1
    assert summarise([result("passed", exit_code=1)], (), "same_command").failed == 1


def test_same_command():
    """The same command failing again is a repetition, whatever it says this time."""
    first = summarise([result("failed", output="a")], (), "same_command")
    again = summarise(
        [result("failed", output="b"), result("passed", ("ls",))],
        evidence.keys(first, "same_command"),
        "same_command",
    )
    assert not first.repeated
    assert again.repeated
    assert again.verdict == "repeated"


def test_same_failure():
    """Under the other rule only the same command with the same failure repeats."""
    first = summarise([result("failed", output="assert 1 == 2 in 0.3s")], (), "same_failure")
    before = evidence.keys(first, "same_failure")
    assert summarise([result("failed", output="assert 1 == 2 in 0.7s")], before, "same_failure").repeated
    assert not summarise([result("failed", output="KeyError: x")], before, "same_failure").repeated
    assert not summarise(
        [result("failed", output="assert 1 == 2 in 0.3s", exit_code=2)], before, "same_failure"
    ).repeated


def test_blocked_and_passed_do_not_repeat():
    """Only a command that failed now can repeat."""
    before = ("pytest -q",)
    assert not summarise([result("blocked")], before, "same_command").repeated
    assert not summarise([result("passed")], before, "same_command").repeated


def test_digests_from_the_caller():
    """Where outputs are stored elsewhere, their digests stand for them."""
    digest = evidence.output_digest("boom")
    there = summarise([result("failed", output="boom")], (), "same_failure")
    here = summarise([result("failed")], there.failure_keys, "same_failure", digests=[digest])
    assert here.repeated


def test_keys_once():
    """A command that failed twice in a round has one key."""
    summary = summarise([result("failed"), result("failed")], (), "same_command")
    assert summary.failed_commands == ("pytest -q",)
    assert len(summary.failure_keys) == 1


def test_output_digest():
    """Colours, addresses, times and temporary paths do not change a failure; words do."""
    one = "\x1b[31mFAILED\x1b[0m at 0x7f3a in /tmp/a1/x after 0.31s"
    other = "FAILED at 0x99ff in /tmp/b2/y after 12.9s"
    assert evidence.output_digest(one) == evidence.output_digest(other)
    assert evidence.output_digest("KeyError: a") != evidence.output_digest("KeyError: b")


@given(st.lists(st.text(min_size=0, max_size=8), min_size=1))
def test_command_key(argv):
    """A key is one line of text that splits back into its argv."""
    assert shlex.split(evidence.command_key(argv)) == argv
