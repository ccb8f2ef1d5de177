"""Files that decide what runs, and files that speak to agents, are known by their names."""

import pytest

from steersman.judges import infrastructure
from steersman.judges.infrastructure import (
    instructs_agents,
    is_named_as_test,
    is_test_file,
    runs_as_code,
)

ORDINARY = [
    "src/app.py",
    "README.md",
    "docs/how-to/tests.md",
    "pkg/types.py",
    "pkg/json/reader.py",
    "json/notes.txt",
    "email/forms.py",
    "a",
    "main.go",
    "lib.rs",
    "index.ts",
    "contest.py",
    "conftest.py.txt",
    "my-package.json.md",
    "app/tasks.py",
    "src/services/mail.py",
    "src/queue/worker.py",
    "code/app.py",
    "lib/deploy.sh",
    "main_window.py",
    "Commit.java",
    "latest.py",
    ".env.example",
    "src/build.py",
    "src/features/login.ts",
    "app/vendor/models.py",
    "app/ci/models.py",
    "scripts/import_prices.py",
    "src/data/project.json",
]


def _lines(kinds):
    return [
        (path, kind.why)
        for kind in kinds
        for path in (
            *(word.replace("*", "x") for word in kind.names.split()),
            *(f"{word.replace('*', 'x')}/deep/file.txt" for word in kind.folders.split()),
        )
    ]


@pytest.mark.parametrize(("path", "why"), _lines(infrastructure.TESTS), ids=lambda v: v)
def test_infrastructure_is_recognised(path, why):
    """Every word of the table is recognised at the top, below a folder, in capitals and with a dot in front."""
    for form in (path, f"a/b/{path}", path.upper(), f"./{path}", f"a//{path}"):
        assert runs_as_code(form) is not None, form
    assert runs_as_code(path) == why


TOPS = [
    (path, kind.why)
    for kind in (*infrastructure.TESTS, *infrastructure.CODE)
    for path in (
        *(name.replace("*", "x") for name in kind.top.split()),
        *(f"{folder}/deep/file.txt" for folder in kind.top_folders.split()),
    )
]


@pytest.mark.parametrize(("path", "why"), TOPS, ids=lambda v: v)
def test_some_names_count_at_the_top_alone(path, why):
    """A shell script beside the product's own is a check's as likely as not; deep inside it is the product."""
    assert runs_as_code(path) == why
    assert runs_as_code(f"deep/{path}") is None


@pytest.mark.parametrize(("path", "why"), _lines(infrastructure.CODE), ids=lambda v: v)
def test_what_is_executed_unasked_is_recognised(path, why):
    """Every word of the table is recognised, at any depth and in any case."""
    for form in (path, f"a/b/{path}", path.upper()):
        assert runs_as_code(form) == why, form


@pytest.mark.parametrize(("path", "why"), _lines(infrastructure.AGENTS), ids=lambda v: v)
def test_what_instructs_agents_is_recognised(path, why):
    """Every word of the table is recognised, at any depth and in any case."""
    for form in (path, f"a/b/{path}", path.upper()):
        assert instructs_agents(form) == why, form


@pytest.mark.parametrize(("path", "_why"), _lines(infrastructure.TEST_FILES), ids=lambda v: v)
def test_tests_are_recognised(path, _why):
    """A test file is seen as one."""
    assert is_test_file(path)


@pytest.mark.parametrize(("path", "_why"), _lines(infrastructure.LOOSE), ids=lambda v: v)
def test_loose_names_are_tests_outside_a_product(path, _why):
    """They look like tests; below a folder of the product only the name of the file itself does."""
    assert is_test_file(path)
    assert is_test_file(f"src/{path}") == (not path.endswith("file.txt"))
    assert is_named_as_test(path) is False


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_open_no_gate(path):
    """An ordinary source or text file is none of these."""
    assert runs_as_code(path) is None
    assert instructs_agents(path) is None
    assert not is_test_file(path)


@pytest.mark.parametrize(
    "path",
    [
        "pytest.py",
        "json.py",
        "tests/re.py",
        "src/unittest/__init__.py",
        "pytest/__init__.py",
        "unittest/case.py",
        "abc.cpython-311.so",
    ],
)
def test_a_module_in_front_of_a_known_one(path):
    """A module that `python -m pytest` would import in place of a real one is test infrastructure."""
    assert runs_as_code(path)


@pytest.mark.parametrize("path", ["ｃonftest.py", "CONFTEST.PY", "a/ＭakeFile", "node_modules/.bin/jest"])
def test_forms_of_a_name(path):
    """Case and compatibility forms of Unicode do not hide a name."""
    assert runs_as_code(path)


@pytest.mark.parametrize("path", ["", "x/" * 5000, "x" * 5000, "/", "./."])
def test_a_name_that_cannot_be_judged_is_not_ordinary(path):
    """Nothing at all, or more than a file system takes, is never waved through."""
    assert runs_as_code(path)
    assert instructs_agents(path)
