"""What a round of commands proves."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.contracts.commands import CommandResult
from steersman.judges.evidence import check_results
from steersman.judges.evidence.check_results import (
    NO_TEST_COUNT_REASON,
    RUNS_NO_TESTS_REASON,
    explain_unproven_results,
    weigh_check_results,
)

CODES = {"passed": 0, "failed": 1, "no_tests": 5}


def result(verdict, argv=("pytest", "-q"), **more):
    given_ = {"exit_code": CODES.get(verdict), "name": "unit", "source": "tester", **more}
    return CommandResult(verdict=verdict, argv=argv, **given_)


def test_nothing_is_no_pass():
    """Of no results nothing is passed and no test counts."""
    evidence = weigh_check_results([])
    assert (evidence.passed, evidence.tests, evidence.first) == (0, 0, None)


def test_counts():
    """Each verdict is counted, and the tests of what passed where a runner tells them."""
    results = [result(v, (v,), tests=9) for v in ("failed", "blocked", "timeout", "no_tests")]
    evidence = weigh_check_results(
        [*results, result("passed", tests=7), result("passed", ("ls",), tests=None)]
    )
    assert (evidence.passed, evidence.failed, evidence.blocked, evidence.timeout, evidence.no_tests) == (
        2,
        1,
        1,
        1,
        1,
    )
    assert evidence.tests == 7
    assert evidence.failed_commands == ("failed", "timeout", "no_tests")


@pytest.mark.parametrize(("more", "verdict"), [({"tests": 0}, "no_tests"), ({"exit_code": 1}, "failed")])
def test_a_pass_that_contradicts_its_record(more, verdict):
    """A pass with zero tests or a failing exit code is not one."""
    assert getattr(weigh_check_results([result("passed", **more)]), verdict) == 1


def test_two_runs_of_one_command_are_one_check():
    """Results of the same command on the same tree are judged together: one that failed and passed is flaky."""
    evidence = weigh_check_results([result("failed"), result("passed", tests=3)])
    assert (evidence.passed, evidence.failed, evidence.flaky, evidence.tests, evidence.doubts) == (
        0,
        0,
        1,
        3,
        1,
    )
    assert evidence.questions == ("unit: it failed and passed on the same tree",)
    assert evidence.failed_commands == ()


def test_what_failed_comes_before_what_is_only_open():
    """The next round is told of a real failure first, else of what was kept from running."""
    blocked, failed = result("blocked", ("rm",)), result("failed")
    assert weigh_check_results([blocked, failed]).first is failed
    assert weigh_check_results([blocked]).first is blocked


def test_a_round_without_a_counted_test_says_what_to_do():
    """Where all passed and no test was counted each check of the project says why that proves nothing."""
    own = {"source": "project", "tests": None}
    silent, lint = result("passed", ("make", "test"), **own), result("passed", ("ruff",), name="lint", **own)
    added = result("passed", ("ls",), tests=None)
    said = explain_unproven_results([silent, lint, added], ["lint"])
    assert [r.verdict for r in said] == ["no_tests", "passed", "passed"]
    assert [r.reason for r in said] == [NO_TEST_COUNT_REASON, RUNS_NO_TESTS_REASON, ""]
    assert weigh_check_results(said).first == said[0]
    assert (
        weigh_check_results(explain_unproven_results([lint], ["lint"])).first.reason == RUNS_NO_TESTS_REASON
    )


def test_an_exit_code_is_enough_where_a_person_chose_it():
    """A check that passes by its exit code, by the project's choice, speaks for a pass; one that fails does not."""
    own = {"source": "project", "tests": None, "exit_code_only": True}
    passed = result("passed", ("make", "e2e"), **own)
    assert explain_unproven_results([passed]) == [passed]
    assert (weigh_check_results([passed]).tests, weigh_check_results([passed]).passed) == (1, 1)
    failed = result("failed", ("make", "e2e"), cwd="app", **own)
    assert (weigh_check_results([failed]).tests, weigh_check_results([failed]).failed_commands) == (
        0,
        ("app: make e2e",),
    )


@pytest.mark.parametrize("other", [result("passed", tests=1), result("failed"), result("passed", tests=0)])
def test_a_round_that_says_something_itself_is_left_alone(other):
    """A counted test, or a failure, is what there is to tell."""
    results = [result("passed", ("make", "test"), source="project", tests=None), other]
    assert explain_unproven_results(results) == results


def test_results_are_held_against_the_base_tree():
    """Fewer tests than before are missing, and told; a check of the project without a base is in doubt."""
    base = [result("passed", tests=5, source="project")]
    evidence = weigh_check_results([result("passed", tests=3, source="project")], base)
    assert (evidence.missing, evidence.questions) == (2, ("unit: 2 tests that ran before are gone",))
    assert weigh_check_results([result("passed", tests=3, source="project")]).questions == (
        "unit: it was not run on the base tree",
    )


def test_failures_have_keys():
    """The same command that fails in the same way has the same key; other words or another exit code another."""
    (key,) = weigh_check_results([result("failed", output="assert 1 == 2 in 0.3s")]).failure_keys
    assert weigh_check_results([result("failed", output="assert 1 == 2 in 0.7s")]).failure_keys == (key,)
    assert weigh_check_results([result("failed", output="KeyError: x")]).failure_keys != (key,)
    assert weigh_check_results(
        [result("failed", output="assert 1 == 2 in 0.3s", exit_code=2)]
    ).failure_keys != (key,)


def test_keys_once():
    """A command that failed twice in a round has one key."""
    evidence = weigh_check_results([result("failed"), result("failed", name="again")])
    assert evidence.failed_commands == ("pytest -q",)
    assert len(evidence.failure_keys) == 1


def test_output_digest():
    """Colours, addresses, times and temporary paths do not change a failure; words do."""
    one = "\x1b[31mFAILED\x1b[0m at 0x7f3a in /tmp/a1/x after 0.31s"
    other = "FAILED at 0x99ff in /tmp/b2/y after 12.9s"
    assert check_results.output_digest(one) == check_results.output_digest(other)
    assert check_results.output_digest("KeyError: a") != check_results.output_digest("KeyError: b")


@given(st.lists(st.text(min_size=0, max_size=8), min_size=1))
def test_command_key(argv):
    """A key is one line of text that splits back into its argv."""
    assert shlex.split(check_results.command_key(argv)) == argv
