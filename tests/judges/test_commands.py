"""The grammar of proposed commands and the counting of tests."""

import pytest

from steersman.judges.commands import command_problem, is_test_runner, outcome
from steersman.judges.commands import tests_counted as counted

PROJECT = (("make", "lint"), ("/opt/tools/check", "--all", "../shared"))

ALLOWED = [
    ("make", "lint"),
    ("/opt/tools/check", "--all", "../shared"),
    ("python", "-m", "unittest"),
    ("python3", "-m", "unittest", "-v"),
    ("python", "-m", "unittest", "-q", "tests.test_a", "tests.test_b.Case.test_x"),
    ("python", "-m", "unittest", "tests/test_a.py"),
    ("python", "-m", "unittest", "discover"),
    ("python", "-m", "unittest", "discover", "-v", "tests"),
    ("python3", "-m", "pytest", "-q", "-x", "tests/", "./more"),
    ("pytest",),
    ("pytest", "-x"),
    ("pytest", "tests/test_a.py::TestX::test_y[1-a b]"),
    ("pytest", "tests/größe/test_ü.py"),
]

REFUSED = [
    ((), "not a command"),
    (("",), "not a command"),
    (("pytest", 3), "not a command"),
    ((None,), "not a command"),
    (("pytest", ""), "word 2 is empty"),
    (("pytest", "a\0b"), "word 2 has a control"),
    (("pytest", "a\nb"), "word 2 has a control"),
    (("pytest", "a\u202eb"), "word 2 has a control"),
    (("pytest", "a\ud800b"), "word 2 has a control"),
    (("pytest", "ｔests"), "word 2 is written with look-alike"),
    (("pytest", "/etc/passwd"), "not a path inside the tree"),
    (("pytest", "~/x"), "not a path inside the tree"),
    (("pytest", "\\\\host\\x"), "not a path inside the tree"),
    (("pytest", "C:\\x"), "not a path inside the tree"),
    (("pytest", "../x"), "not a path inside the tree"),
    (("pytest", "a/../../x"), "not a path inside the tree"),
    (("pytest", "..::test_x"), "not a path inside the tree"),
    (("pytest", "--rootdir=.."), "is not an option of `pytest`"),
    (("make", "lint", "-k"), "add it under [checks] in steersman.toml"),
    (("make",), "add it under"),
    (("pytest", "-p", "evil"), "add it under"),
    (("pytest", "--pdb"), "add it under"),
    (("pytest", "@arguments.txt"), "add it under"),
    (("pytest", "-"), "add it under"),
    (("pytest", "--", "tests"), "add it under"),
    (("pytest", "a;b"), "add it under"),
    (("python", "-c", "print()"), "add it under"),
    (("python", "-m", "http.server"), "add it under"),
    (("python", "-m", "unittest", "-x"), "add it under"),
    (("python", "-I", "-m", "unittest"), "add it under"),
    (("python3.11", "-m", "pytest"), "add it under"),
    (("sh", "-c", "pytest"), "`sh` is not a program of the table"),
    (("rm", "-rf", "."), "add it under"),
    (("uv", "run", "pytest"), "it is in the set 'uv', which is off; add 'uv' to sets under [commands]"),
]


@pytest.mark.parametrize("argv", ALLOWED, ids=" ".join)
def test_what_the_project_or_the_table_has_may_run(argv):
    """An argv that equals a project check or fits the table has no problem."""
    assert command_problem(argv, PROJECT) is None


@pytest.mark.parametrize(("argv", "words"), REFUSED, ids=lambda value: repr(value)[:40])
def test_everything_else_is_refused_with_a_reason(argv, words):
    """An argv outside the table is refused, and the reason says what is wrong and what to do."""
    problem = command_problem(argv, PROJECT)
    assert problem is not None
    assert words in problem


def test_a_list_is_compared_by_its_words():
    """A list and a tuple with the same words are the same argv."""
    assert command_problem(["make", "lint"], PROJECT) is None


def test_a_long_argv_is_shown_shortened():
    """A reason stays short however long the proposal is."""
    problem = command_problem(("echo", "x" * 5000), ())
    assert problem is not None
    assert len(problem) < 300


COUNTS = [
    ("", None),
    ("all good\n", None),
    ("..\n----\nRan 2 tests in 0.001s\n\nOK\n", 2),
    ("Ran 1 test in 0.001s\n\nFAILED (failures=1)\n", 1),
    ("Ran 0 tests in 0.000s\n\nOK\n", 0),
    ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", 0),
    ("Ran 3 tests in 0.000s\n\nOK (skipped=3)\n", 0),
    ("Ran 3 tests in 0.000s\n\nFAILED (failures=1, skipped=1)\n", 2),
    ("Ran 0 tests in 0.000s\n\nOK (skipped=1)\n", 0),
    ("Ran 2 tests in 0.1s", 2),
    ("===== 3 passed in 0.12s =====\n", 3),
    ("3 passed in 0.12s\n", 3),
    ("1 failed, 2 passed, 1 skipped, 4 warnings in 65.01s (0:01:05)\n", 3),
    ("= 1 xfailed, 1 xpassed, 2 deselected, 1 error in 1.00s =\n", 2),
    ("1 passed, 3 subtests passed in 0.01s\n", 1),
    ("2 skipped in 0.01s\n", 0),
    ("no tests ran in 0.00s\n", 0),
    ("\x1b[32m\x1b[1m3 passed\x1b[0m\x1b[32m in 0.12s\x1b[0m\n", 3),
    ("..s.x   [ 50%]\nF.     [100%]\n", 6),
    ("sss   [100%]\n", 0),
    (".....   [100%]\n2 skipped in 0.01s\n", 0),
    ("3 passed in 0.1s\nRan 2 tests in 0.1s\n\nOK\n", 5),
    ("Ran 0 tests in 0.000s\n\nOK\nRan 99 tests in 0.1s\n\nOK\n", 0),
    ("we Ran 4 tests in 1s of them\n", None),
]


@pytest.mark.parametrize(("output", "count"), COUNTS, ids=lambda value: repr(value)[:40])
def test_tests_are_counted_as_the_runner_says(output, count):
    """Counts come from the runners' own summaries; skipped tests did not run and an empty summary decides."""
    assert counted(output) == count


@pytest.mark.parametrize(
    ("argv", "is_runner"),
    [
        ((), False),
        (("pytest", "-q"), True),
        (("/venv/bin/pytest",), True),
        (("/venv/bin/python", "-m", "pytest"), True),
        (("python", "-m", "unittest", "discover"), True),
        (("uv", "run", "--frozen", "pytest"), True),
        (("uv", "run", "ruff", "check"), False),
        (("coverage", "run", "-m", "unittest"), True),
        (("ruff", "check", "pytest"), False),
        (("python", "-m", "mypy"), False),
        (("make", "test"), False),
    ],
)
def test_a_test_runner_is_known_by_its_argv(argv, is_runner):
    """pytest and unittest are recognised directly, as modules and behind launchers; nothing else is."""
    assert is_test_runner(argv) is is_runner


@pytest.mark.parametrize(
    ("argv", "exit_code", "tests", "verdict"),
    [
        (("pytest",), 0, 3, "passed"),
        (("pytest",), 0, 0, "no_tests"),
        (("pytest",), 0, None, "no_tests"),
        (("pytest",), 5, None, "no_tests"),
        (("python", "-m", "unittest"), 5, 0, "no_tests"),
        (("pytest",), 1, 3, "failed"),
        (("ruff", "check"), 0, None, "passed"),
        (("ruff", "check"), 1, None, "failed"),
        (("make", "test"), 0, 0, "no_tests"),
        (("make", "test"), 5, 2, "failed"),
        (("make", "test"), -9, None, "failed"),
    ],
)
def test_passing_needs_evidence(argv, exit_code, tests, verdict):
    """Exit 0 passes only with at least one counted test, or for a command that is no test runner."""
    assert outcome(argv, exit_code, tests) == verdict
