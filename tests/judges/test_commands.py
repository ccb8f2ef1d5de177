"""The grammar of proposed commands and the counting of tests."""

import pytest

from steersman.judges.commands import command_problem

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
    (("pytest", "/etc/passwd"), "inside the tree"),
    (("pytest", "~/x"), "inside the tree"),
    (("pytest", "\\\\host\\x"), "inside the tree"),
    (("pytest", "C:\\x"), "inside the tree"),
    (("pytest", "../x"), "inside the tree"),
    (("pytest", "a/../../x"), "inside the tree"),
    (("pytest", "..::test_x"), "inside the tree"),
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
    (("python3.7", "-m", "pytest"), "add it under"),
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
