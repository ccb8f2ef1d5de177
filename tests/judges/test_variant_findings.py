"""The base's tests with new code, and new tests with the base's code."""

import pytest

from steersman.contracts.commands import CommandResult, RunnerReport, VariantFinding
from steersman.contracts.workspace import TouchedPath
from steersman.judges.evidence.check_results import (
    ChangedTestFiles,
    find_changed_test_files,
    has_new_passing_tests,
    judge_new_tests_variant,
    judge_old_tests_variant,
    weigh_check_results,
)

A, B = "test_a.py::a", "test_b.py::b"


def ran(passed=(), failed=(), skipped=(), broken=(), form="pytest", **more):
    """A run of a runner that reports names and files."""
    failed = (*failed, *broken)
    files = {}
    for name in (*passed, *failed, *skipped):
        files.setdefault(name.partition("::")[0], []).append(name)
    told = RunnerReport(
        form=form, passed=tuple(passed), failed=failed, skipped=tuple(skipped), broken=tuple(broken),
        ran=len(passed) + len(failed), failures=len(failed), files={f: tuple(n) for f, n in files.items()},
    )  # fmt: skip
    return plain(1 if failed else 0, told.ran, report=told, **more)


def plain(exit_code=0, tests=None, **more):
    verdict = "passed" if exit_code == 0 else "failed"
    given = {"name": "unit", "argv": ("x",), "source": "project", "verdict": verdict, **more}
    return CommandResult(exit_code=exit_code, tests=tests, **given)


def files(*changed, added=()):
    return ChangedTestFiles(frozenset(changed), frozenset(added))


PASSED_BEFORE = "1 test passed before and fails with the new code; the change rewrites it"
FAILED_BEFORE = "1 test failed before and still fails with the new code; the change rewrites it"
ONLY_TOGETHER = "1 test passes only because of the change's other test files; the change does not touch it"
OLD = {
    "all pass": ([ran([A, B])], [ran([A, B])], [ran([A, B])], files("test_a.py"), []),
    "rewritten": ([ran([A, B])], [ran([A, B])], [ran([B], [A])], files("test_a.py"), [("question", PASSED_BEFORE, (A,))]),
    "rewritten, does not run": ([ran([A, B])], [ran([A, B])], [ran([B])], files("test_a.py"), [("question", PASSED_BEFORE, (A,))]),
    "failed before, rewritten": ([ran([A])], [ran([], [A])], [ran([], [A])], files("test_a.py"), [("question", FAILED_BEFORE, (A,))]),
    "failed before, renamed": ([ran(["test_a.py::z"])], [ran([], [A])], [ran([], [A])], files("test_a.py"), [("question", FAILED_BEFORE, (A,))]),
    "support changed": ([ran([A])], [ran([A])], [ran([], [A])], files("tests/data.json"), [("question", PASSED_BEFORE, (A,))]),
    "a new test's state": ([ran([A])], [ran([], [A])], [ran([], [A])], files(added=["test_0.py"]), [("failure", ONLY_TOGETHER, (A,))]),
    "another old test's state": ([ran([A, B])], [ran([B], [A])], [ran([B], [A])], files("test_b.py"), [("failure", ONLY_TOGETHER, (A,))]),
    "known failure": ([ran([B], [A])], [ran([B], [A])], [ran([B], [A])], files("test_b.py"), []),
    "skipped by the product": ([ran([B], (), [A])], [ran([B], [A])], [ran([B], (), [A])], files(added=["test_0.py"]), []),
    "passes on the second try": ([ran([A])], [ran([A])], [ran([], [A]), ran([A])], files("test_a.py"), []),
    "broke before, still broken": ([ran([A])], [ran(broken=["test_a.py"])], [ran(broken=["test_a.py"])], files("test_a.py"), [("question", FAILED_BEFORE, ("test_a.py",))]),
    "cannot be loaded, others do not run": ([ran([A, B])], [ran([A, B])], [ran(broken=["test_a.py"])], files("test_a.py"), [("question", PASSED_BEFORE, (A,))]),
    "cannot be loaded, another fails": ([ran([A, B])], [ran([A, B])], [ran([], [B], broken=["test_a.py"])], files("test_a.py"), [("question", PASSED_BEFORE, (A,)), ("failure", ONLY_TOGETHER, (B,))]),
    "broke before, fine now": ([ran([A])], [ran(broken=["test_a.py"])], [ran([A])], files("test_a.py"), []),
    "a module of unittest": (
        [ran(["x.A.a"], form="unittest")], [ran(broken=["unittest.loader._FailedTest.tests.test_a"], form="unittest")],
        [ran(broken=["unittest.loader._FailedTest.tests.test_a"], form="unittest")], files("tests/test_a.py"),
        [("question", FAILED_BEFORE, ("unittest.loader._FailedTest.tests.test_a",))],
    ),
    "the variant tells nothing": ([ran([A])], [ran([A])], [plain(1)], files("test_a.py"), [("question", PASSED_BEFORE, (A,))]),
    "counts: as many": ([plain(0, 3)], [plain(0, 2)], [plain(0, 2)], files("a.test.js"), []),
    "counts: fewer": ([plain(0, 3)], [plain(0, 2)], [plain(0, 1)], files("a.test.js"), [("question", "it passed before and fails with the base's tests and the new code; the change touches tests", ())]),
    "counts: red before": ([plain(0, 3)], [plain(1, 2)], [plain(1, 2)], files(added=["a.test.js"]), [("question", "it failed before and still fails with the base's tests and the new code; the change touches tests", ())]),
    "counts: acknowledged as a whole": ([plain(1, 4, passed=3)], [plain(1, 3, passed=2)], [plain(1, 3, passed=2)], files(added=["a.test.js"]), []),
    "counts: acknowledged, and worse": ([plain(1, 4, passed=3)], [plain(1, 3, passed=2)], [plain(1, 3, passed=1)], files(added=["a.test.js"]), [("question", "it failed before and still fails with the base's tests and the new code; the change touches tests", ())]),
    "counts: green by its tests": ([plain(0, 3, passed=3)], [plain(1, 3, passed=2)], [plain(1, 3, passed=2)], files("a.test.js"), [("question", "it failed before and still fails with the base's tests and the new code; the change touches tests", ())]),
    "counts: no tests before": ([plain(0, 3)], [plain(1)], [plain(1)], files(added=["a.test.js"]), []),
}  # fmt: skip


@pytest.mark.parametrize(("now", "base", "variant", "tests", "wanted"), OLD.values(), ids=OLD)
def test_old_tests_judge_new_code(now, base, variant, tests, wanted):
    """A test that is rewritten is asked about, one that passes by others' doing has failed, the rest is fine."""
    found = judge_old_tests_variant(now, base, variant, tests)
    assert [(f.weight, f.sentence, f.tests) for f in found] == wanted


def test_several_tests_are_told_in_the_plural():
    """One sentence for all of them."""
    (found,) = judge_old_tests_variant(
        [ran([A, B])], [ran([A, B])], [ran([], [A, B])], files("test_a.py", "test_b.py")
    )
    assert found.sentence == "2 tests passed before and fail with the new code; the change rewrites them"


def test_a_new_test_that_passes_with_old_code_proves_nothing():
    """It is reported by name; one that fails there, or was there before, is not."""
    new, proves = "test_a.py::new", "test_a.py::proves"
    now, base = [ran([A, new, proves])], [ran([A])]
    assert has_new_passing_tests(now, base)
    assert not has_new_passing_tests(base, base)
    (found,) = judge_new_tests_variant(now, base, [ran([A, new], [proves])])
    assert (found.weight, found.tests) == ("note", (new,))
    assert found.sentence == "1 new test passes on the base's code too and proves nothing about the change"
    assert judge_new_tests_variant(now, base, [ran([A], [new, proves])]) == ()


def test_test_files_are_known_by_reports_and_names():
    """What ran, what a name says, support; a name that a product may have counts where tests are."""
    paths = [
        "odd.py", "calc.py", "tests/x.json", "conftest.py", "features/cart.py", "spec/help.rb",
        "spec/a_spec.rb",
    ]  # fmt: skip
    touched = [TouchedPath(p, "a1" if p != "tests/x.json" else "", "b2") for p in paths]
    now = [ran(["odd.py::a", "calc.py::test_put_into_the_product"])]
    found = find_changed_test_files(touched, [ran(["odd.py::a"]), plain(0, 1)], now)
    assert found.changed == {"odd.py", "conftest.py", "spec/help.rb", "spec/a_spec.rb"}
    assert found.added == {"tests/x.json"}
    assert find_changed_test_files([TouchedPath("new.py", "", "b2")], [], [ran(["new.py::a"])]).added == {
        "new.py"
    }
    assert found.paths == ("conftest.py", "odd.py", "spec/a_spec.rb", "spec/help.rb", "tests/x.json")


def test_variants_weigh_but_never_count():
    """A failure fails the round, a question asks a person, a note is told; no test of a variant speaks for a pass."""
    base = [ran([A])]
    old = ran([A, B], name="unit (old tests)", variant="old tests", tree="t")
    alone = weigh_check_results([old], base)
    assert (alone.passed, alone.tests) == (0, 0)

    def weighed(weight):
        return weigh_check_results(
            [
                ran([A]),
                CommandResult(**{**_fields(old), "findings": (VariantFinding(weight, "1 test x", (A,)),)}),
            ],
            base,
        )

    failed = weighed("failure")
    assert (failed.failed, failed.passed, failed.tests) == (1, 1, 1)
    assert failed.first.reason == f"1 test x\n    {A}"
    assert weighed("question").doubts == 1
    noted = weighed("note")
    assert (noted.failed, noted.doubts) == (0, 0)
    assert noted.questions == ("unit: 1 test x", f"    {A}")


def _fields(result):
    return {name: getattr(result, name) for name in result.__struct_fields__}
