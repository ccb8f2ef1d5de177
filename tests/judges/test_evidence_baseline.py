"""A check beside the same check on the base tree."""

import pytest
from tests.support.cases import for_each_case

from steersman.contracts.commands import CommandResult, RunnerReport
from steersman.judges.evidence.baseline import (
    find_stale_known_failures,
    is_known_failure,
    judge_check,
    normalize_test_name,
)
from steersman.judges.evidence.check_results import (
    MAX_NAMED_TESTS,
    note_acknowledged_checks,
    weigh_check_results,
)

OLD = "tests.test_old::test_slow"


def report(passed=(), failed=(), skipped=(), form="junit", broken=(), **more):
    failed = (*failed, *broken)
    return RunnerReport(
        form=form, passed=tuple(passed), failed=failed, skipped=tuple(skipped), broken=tuple(broken),
        ran=len(passed) + len(failed), failures=len(failed), **more,
    )  # fmt: skip


def ran(passed=(), failed=(), exit_code=None, **more):
    """A run of a runner that reports names."""
    told = report(passed, failed)
    code = (1 if failed else 0) if exit_code is None else exit_code
    return plain(code, told.ran, **{"report": told, **more})


def plain(exit_code=0, tests=None, **more):
    """A run of something that tells no names."""
    verdict = "passed" if exit_code == 0 else "failed"
    given = {"name": "unit", "argv": ("x",), "source": "project", "verdict": verdict, **more}
    return CommandResult(exit_code=exit_code, tests=tests, **given)


def test_the_same_as_before_is_passed():
    """A check that passes as it did has nothing to be asked about."""
    verdict = judge_check([ran("ab")], [ran("ab")])
    assert (verdict.verdict, verdict.tests, verdict.missing, verdict.doubt) == ("passed", 2, 0, "")


KNOWN = {
    "by its name": ([ran("a", [OLD])], [ran("a", [OLD])], {OLD}, "known"),
    "by its node id": ([ran("a", [OLD])], [ran("a", [OLD])], {"tests/test_old.py::test_slow"}, "known"),
    "by its check": ([ran("a", [OLD])], [ran("a", [OLD])], {"unit"}, "known"),
    "nobody named it": ([ran("a", [OLD])], [ran("a", [OLD])], set(), "failed"),
    "it passed before": ([ran("a", [OLD])], [ran(["a", OLD])], {OLD}, "failed"),
    "it was not run before": ([ran("a", [OLD])], None, {OLD}, "failed"),
    "a new one beside it": ([ran("a", [OLD, "new"])], [ran("a", [OLD])], {OLD}, "failed"),
    "a new one in an acknowledged check": ([ran("a", [OLD, "new"])], [ran("a", [OLD])], {"unit"}, "failed"),
    "one of two is named": ([ran("a", [OLD, "b"])], [ran("a", [OLD, "b"])], {OLD}, "failed"),
    "it ends in another way": ([ran("a", [OLD], exit_code=2)], [ran("a", [OLD])], {OLD}, "failed"),
    "its names are cut": ([plain(1, 2, report=report("a", [OLD], cut=True))], [ran("a", [OLD])], {OLD}, "failed"),
    "a report without names": ([plain(1, 2, report=report("a"))], [ran("a", [OLD])], {OLD}, "failed"),
    "no names at all": ([plain(1)], [plain(1)], {"unit"}, "known"),
    "no names, not its check": ([plain(1)], [plain(1)], {OLD}, "failed"),
    "names before, none now": ([plain(1)], [ran("a", [OLD])], {"unit"}, "failed"),
    "names now, none before": ([ran("a", [OLD])], [plain(1)], {"unit", OLD}, "failed"),
    "a timeout on top": ([ran("a", [OLD]), plain(1, verdict="timeout")], [ran("a", [OLD])], {OLD}, "failed"),
    "it passed on the second try": ([ran("a", [OLD]), ran(["a", OLD])], [ran("a", [OLD])], {OLD}, "known"),
    "flaky before": ([ran("a", [OLD])], [ran("a", [OLD]), ran(["a", OLD])], {OLD}, "known"),
}  # fmt: skip


@for_each_case(("runs", "base", "known", "verdict"), KNOWN.values())
def test_a_known_failure_was_named_and_was_there_before(runs, base, known, verdict):
    """A failure is known where a person has named it and the base tree had exactly it; all others have failed."""
    assert judge_check(runs, base, frozenset(known)).verdict == verdict


def test_a_known_test_does_not_cover_its_package():
    """A package that no longer builds is a failure of its own, and so is one that fails in another way than before."""
    red, unbuilt = (
        ran("a", ["x::TestRed"]),
        plain(1, 0, report=report((), (), broken=["x [build failed]"], form="go")),
    )
    alone = plain(1, 0, report=report((), (), broken=["x"], form="go"))
    for known in ({"x::TestRed"}, {"x", "x::TestRed"}, {"unit"}):
        assert judge_check([unbuilt], [red], frozenset(known)).verdict == "failed"
    assert judge_check([unbuilt], [unbuilt], frozenset({"x [build failed]"})).verdict == "known"
    assert judge_check([unbuilt], [unbuilt], frozenset({"x"})).verdict == "failed"
    assert judge_check([alone], [unbuilt], frozenset({"x", "x [build failed]"})).verdict == "failed"


def test_what_is_known_speaks_with_what_passed():
    """The tests that passed beside a known failure count; a known failure without names proves nothing."""
    assert judge_check([ran("abc", [OLD])], [ran("abc", [OLD])], frozenset({OLD})).tests == 3
    assert judge_check([plain(1)], [plain(1)], frozenset({"unit"})).tests == 0


FILES = " Test Files  {} failed | 4 passed (6)\n      Tests  78 passed (78)\n"
WHOLE = {
    "more pass": (plain(1, 79, passed=79), plain(1, 78, passed=78), ("known", 79)),
    "as many pass": (plain(1, 80, passed=78), plain(1, 80, passed=78), ("known", 78)),
    "fewer pass": (plain(1, 78, passed=77), plain(1, 78, passed=78), ("failed", 78)),
    "more tests fail": (plain(1, 81, passed=78), plain(1, 80, passed=78), ("failed", 81)),
    "more files fail": (plain(1, 78, passed=78, output=FILES.format(3)), plain(1, 78, passed=78, output=FILES.format(2)), ("failed", 78)),
    "as many files fail": (plain(1, 78, passed=78, output=FILES.format(2)), plain(1, 78, passed=78, output=FILES.format(2)), ("known", 78)),
    "none passed before": (plain(1, 5, passed=5), plain(1, 5, passed=0), ("failed", 5)),
    "nobody tells who passed": (plain(1, 78), plain(1, 78), ("failed", 78)),
    "nothing is counted now": (plain(1), plain(1, 78, passed=78), ("failed", 0)),
    "nothing was counted before": (plain(1, 78, passed=78), plain(1), ("failed", 78)),
    "it ends in another way": (plain(2, 79, passed=79), plain(1, 78, passed=78), ("failed", 79)),
    "a report, and an end of its own": (plain(1, 2, passed=2, report=report("ab")), plain(1, 1, passed=1, report=report("a")), ("known", 2)),
}  # fmt: skip


@for_each_case(("now", "base", "wanted"), WHOLE.values())
def test_a_check_acknowledged_as_a_whole_is_judged_by_numbers(now, base, wanted):
    """Without names as many tests have to pass as on the base, and no more of anything may fail."""
    verdict = judge_check([now], [base], frozenset({"unit"}))
    assert (verdict.verdict, verdict.tests) == wanted


def test_a_check_acknowledged_as_a_whole_says_so():
    """What speaks for it and what nobody judges is its reason; a check with names or without tests says nothing."""
    base = [plain(1, 78, passed=78), plain(1, name="lint"), plain(0, 1, passed=1, name="fine")]
    now = [plain(1, 79, passed=79, reason="counted"), *base[1:]]
    whole, lint, fine = note_acknowledged_checks(now, base, frozenset({"unit", "lint"}))
    assert whole.reason == (
        "counted; check unit is acknowledged as a whole: 79 tests passed, its failures are not judged by name"
    )
    assert (lint.reason, fine.reason) == ("", "")
    named = [ran("a", [OLD])]
    assert note_acknowledged_checks(named, named, frozenset({OLD})) == named
    assert note_acknowledged_checks(now, None, frozenset({"unit"})) == now
    assert weigh_check_results(now, base, frozenset({"unit", "lint"})).tests == 80


FLAKY = {
    "failed, then passed": ([ran("a", "b"), ran("ab")], "flaky", 2),
    "passed, then failed": ([ran("ab"), ran("a", "b")], "flaky", 2),
    "failed twice": ([ran("a", "b"), ran("a", "b")], "failed", 2),
    "failed in two ways": ([ran("a", "b"), ran("b", "a")], "failed", 2),
    "failed, then no test": ([ran("a", "b"), plain(0, 0)], "failed", 0),
}


@for_each_case(("runs", "verdict", "tests"), FLAKY.values())
def test_two_answers_are_not_averaged(runs, verdict, tests):
    """A check that failed and passed on the same tree is flaky, and a person is asked; otherwise it has failed."""
    told = judge_check(runs, [ran("ab")])
    assert (told.verdict, told.tests) == (verdict, tests)
    assert (told.doubt == "it failed and passed on the same tree") is (verdict == "flaky")


VANISHED = {
    "deleted": ([ran("a")], [ran("ab")], ("b",), 1),
    "skipped now": ([plain(0, 1, report=report("a", (), "b"))], [ran("ab")], (), 1),
    "skipped, and a new one": ([plain(0, 2, report=report("ac", (), "b"))], [ran("ab")], (), 1),
    "failed before": ([ran("a")], [ran("a", "b")], ("b",), 1),
    "one of two with a name": ([ran("a")], [ran("aa")], ("a",), 1),
    "renamed": ([ran("ac")], [ran("ab")], (), 0),
    "two gone, one new": ([ran("ad")], [ran("abc")], ("b", "c"), 1),
    "added": ([ran("abc")], [ran("ab")], (), 0),
    "fewer without names": ([plain(0, 3)], [plain(0, 5)], (), 2),
    "more without names": ([plain(0, 9)], [plain(0, 5)], (), 0),
    "none told any more": ([plain(0, None)], [plain(0, 5)], (), 5),
    "names are cut": ([plain(0, 3, report=report("abc", cut=True))], [ran("abcde")], (), 2),
    "not run before": ([ran("a")], None, (), 0),
}


@for_each_case(("runs", "base", "names", "missing"), VANISHED.values())
def test_a_test_that_ran_before_and_does_not_run_now_has_vanished(runs, base, names, missing):
    """By name where both reports have names, by count otherwise; a new test makes up for one that is gone."""
    verdict = judge_check(runs, base)
    assert (verdict.vanished, verdict.missing) == (names, missing)


SETUP, LOADER = "setUpClass (pkg.test_b.B)", "unittest.loader._FailedTest.test_b"
HELD = {
    "pytest: a module": ("pytest", ["test_b.py"], {"passed": ["test_b.py::one"]}, ()),
    "pytest: in a class of it": ("pytest", ["test_b.py::B"], {"passed": ["test_b.py::B::one"]}, ()),
    "pytest: a folder": ("pytest", ["sub"], {"passed": ["sub/test_b.py::one"]}, ()),
    "pytest: a package": ("pytest", ["sub/__init__.py"], {"passed": ["sub/test_b.py::one"]}, ()),
    "pytest: everything": ("pytest", [""], {"passed": ["test_b.py::one"]}, ()),
    "pytest: none of it": ("pytest", ["test_b.py"], {"passed": ["test_bb.py::one"]}, ("test_b.py",)),
    "pytest: all skipped": ("pytest", ["test_b.py"], {"passed": "a", "skipped": ["test_b.py"]}, ("test_b.py",)),
    "pytest: one skipped": ("pytest", ["b.py"], {"passed": ["b.py::x"], "skipped": ["b.py::y"]}, ("b.py::y",)),
    "pytest: another skipped": ("pytest", ["b.py"], {"passed": ["b.py::x"], "skipped": ["c.py::y"]}, ()),
    "pytest: skipped as ever": ("pytest", ["b.py"], {"passed": ["b.py::x"], "skipped": ["b.py::old"]}, ()),
    "pytest: still broken": ("pytest", ["test_b.py"], {"passed": "a", "broken": ["test_b.py"]}, ()),
    "unittest: a module": ("unittest", [LOADER], {"passed": ["test_b.B.one"]}, ()),
    "unittest: a class": ("unittest", [SETUP], {"passed": ["pkg.test_b.B.one"]}, ()),
    "unittest: another class": ("unittest", [SETUP], {"passed": ["pkg.test_b.BB.one"]}, (SETUP,)),
    "unittest: only skipped": (
        "unittest", [LOADER], {"passed": "a", "skipped": ["test_b.B.one"]}, ("test_b.B.one", LOADER),
    ),
    "go: a package": ("go", ["x/b"], {"passed": ["x/b::TestB"]}, ()),
    "go: a package that did not build": ("go", ["x/b [build failed]"], {"passed": ["x/b::TestB"]}, ()),
    "go: did not build, without tests": ("go", ["x/b [setup failed]"], {"passed": "a", "empty": ("x/b",)}, ()),
    "go: did not build, silent": ("go", ["x/b [build failed]"], {"passed": ["x/bb::TestB"]}, ("x/b [build failed]",)),
    "go: without tests": ("go", ["x/b"], {"passed": "a", "empty": ("x/b",)}, ()),
    "go: silent": ("go", ["x/b"], {"passed": ["x/bb::TestB"]}, ("x/b",)),
    "go: its tests ran": ("go", ["x"], {"passed": ["x::Known"], "skipped": ["x::TestNew"]}, ()),
    "node: a new test each": ("junit", ["b.js", "c.js"], {"passed": ["x::Known", "one", "two"]}, ()),
    "node: too few new tests": ("junit", ["b.js", "c.js"], {"passed": ["x::Known", "one"]}, ("b.js", "c.js")),
    "node: a file without tests": ("junit", ["b.js"], {"passed": ["x::Known", "one"], "empty": ("b.js",)}, ("b.js",)),
    "node: a skipped test": ("junit", ["b.js"], {"passed": ["x::Known", "one"], "skipped": ["two"]}, ("two",)),
    "node: nothing broke": ("junit", [], {"passed": ["x::Known"], "skipped": ["two"]}, ()),
}  # fmt: skip


@for_each_case(("form", "broken", "now", "silent"), HELD.values())
def test_what_broke_before_is_no_test_but_has_to_be_answered_for(form, broken, now, silent):
    """A package, module, class or file cannot vanish; a test of it has to pass now, and none may begin to be skipped."""
    known = ["x::Known"]
    base = plain(1, 1, report=report(known, (), ["b.py::old"], form=form, broken=broken))
    verdict = judge_check([plain(0, 9, report=report(form=form, **now))], [base])
    assert verdict.silent == silent
    assert set(verdict.vanished) <= set(known)


def test_what_broke_counts_as_no_test():
    """Where names are cut the numbers are compared, without what only holds tests."""
    base = plain(1, 3, report=report("ab", broken=["x"], cut=True))
    assert judge_check([plain(0, 2)], [base]).missing == 0
    assert judge_check([plain(0, 1)], [base]).missing == 1


def test_what_is_not_answered_for_is_asked():
    """The question names it, and counts as a doubt."""
    base = [plain(1, 1, report=report(broken=["b.py"], form="pytest"))]
    evidence = weigh_check_results([plain(0, 1, report=report("a", form="pytest"))], base)
    assert (evidence.doubts, evidence.missing) == (1, 0)
    assert evidence.questions == (
        "unit: 1 broke on the base tree and have no test that passes now, or are skipped now in what broke there",
        "    b.py",
    )


def test_vanished_tests_are_told_by_name_but_not_endlessly():
    """The first ones are named, with what a terminal would obey written out; the rest is counted."""
    names = [f"t{n:03}\x1b" for n in range(MAX_NAMED_TESTS + 5)]
    told = weigh_check_results([ran(["x"])], [ran(["x", *names])]).questions
    assert told[0] == f"unit: {MAX_NAMED_TESTS + 5} tests that ran before are gone"
    assert told[1] == "    t000\\x1b"
    assert told[-1] == "    and 5 more"


def test_a_skipped_test_is_asked_about_by_name():
    """It ran before and kept its name, so that a new test does not make up for it."""
    evidence = weigh_check_results([plain(0, 1, report=report("c", (), "b"))], [ran("b")])
    assert (evidence.missing, evidence.questions) == (
        1,
        ("unit: 1 test that ran before is skipped now", "    b"),
    )


def test_what_is_done_to_the_runner_is_held_against_the_base():
    """A function that is replaced, or a module that is hidden, counts where the base tree did not do the same."""
    base = report("a", form="pytest", replaced=("x.Old",), modules={"random": "", "calc": "calc.py"})
    now = report(
        "a", form="pytest", replaced=("x.Old", "unittest.case.TestCase.assertEqual"),
        modules={"random": "random.py", "calc": "src/calc.py", "new": "new.py"},
    )  # fmt: skip
    evidence = weigh_check_results([plain(0, 1, report=now)], [plain(0, 1, report=base)])
    assert evidence.doubts == 1
    assert evidence.questions == (
        "unit: the change replaces unittest.case.TestCase.assertEqual while tests run",
        "unit: the module random now comes from random.py, which hides the one that was there before",
    )
    assert weigh_check_results([plain(0, 1, report=base)], [plain(0, 1, report=base)]).doubts == 0


DOUBTS = {
    "words against exit code 0": ([plain(0, 3, output="1 failed")], [plain(0, 3)], True),
    "the same words before": ([plain(0, 3, output="1 failed")], [plain(0, 3, output="2 failed")], False),
    "the words of a failure before": ([plain(0, 3, output="1 failed")], [plain(1, 3, output="1 failed")], True),
    "a sentence": ([plain(0, 3, output="ok: locks after 3 failed logins")], [plain(0, 3)], False),
    "another's words before a failure": (
        [plain(0, 3, output="1 failed\n3 passed in 1s")], [plain(1, 3, output="2 failed\n1 failed, 2 passed in 1s")], False,
    ),
    "more of them than before": (
        [plain(0, 3, output="1 failed\n1 failed")], [plain(0, 3, output="1 failed"), plain(0, 3)], True,
    ),
    "words that fit": ([plain(1, 3, output="1 failed")], [plain(0, 3)], False),
}  # fmt: skip


@for_each_case(("runs", "base", "doubted"), DOUBTS.values())
def test_words_of_failure_beside_exit_code_zero_are_in_doubt(runs, base, doubted):
    """A pass whose words speak of failures is asked about, unless the base tree passes with such words too."""
    assert bool(judge_check(runs, base).doubt) is doubted


@pytest.mark.parametrize("name", [OLD, "tests/test_old.py::test_slow", "tests.test_old.test_slow"])
def test_a_test_has_one_spelling(name):
    """As its runner names it, as a node id, with dots: the same test."""
    assert normalize_test_name(name) == "tests.test_old.test_slow"
    assert is_known_failure(OLD, [name])
    assert not is_known_failure(OLD, ["tests/test_old.py::test_fast"])


def test_an_acknowledgement_that_is_no_longer_needed_is_told():
    """Names that did not fail on the base tree are stale, by test and by check."""
    known = (OLD, "tests/test_gone.py::test_x", "lint", "unit")
    base = [ran("a", [OLD]), plain(1, name="unit"), plain(0, name="lint")]
    assert find_stale_known_failures(known, base) == ("lint", "tests/test_gone.py::test_x")
