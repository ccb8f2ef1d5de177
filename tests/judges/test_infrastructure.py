"""Files that decide what runs, and files that speak to agents, are known by their names."""

import pytest

from steersman.judges.changes import infrastructure
from steersman.judges.changes.infrastructure import (
    find_agent_instruction_reason,
    find_decision_by_name,
    find_execution_reason,
    is_named_as_test,
    is_test_file,
)

ORDINARY = [
    "src/app.py", "README.md", "docs/how-to/tests.md", "pkg/types.py", "pkg/json/reader.py", "json/notes.txt",
    "email/forms.py", "a", "main.go", "lib.rs", "index.ts", "contest.py", "conftest.py.txt",
    "my-package.json.md", "app/tasks.py", "src/services/mail.py", "src/queue/worker.py", "code/app.py",
    "lib/deploy.sh", "main_window.py", "Commit.java", "latest.py", ".env.example", "src/build.py",
    "src/features/login.ts", "app/vendor/models.py", "app/ci/models.py", "scripts/import_prices.py",
    "src/data/project.json",
]  # fmt: skip


def _samples(kinds):
    """A path for every word of a table."""
    for kind in kinds:
        yield from ((word.replace("*", "x"), kind) for word in kind.names.split())
        yield from ((f"{word.replace('*', 'x')}/deep/file.txt", kind) for word in kind.folders.split())


def test_every_word_of_the_tables_is_recognised():
    """At the top, below a folder, in capitals and with a dot in front; what it decides about is told with it."""
    for path, kind in _samples(infrastructure.DECISIVE_FILE_RULES):
        for form in (path, f"a/b/{path}", path.upper(), f"./{path}", f"a//{path}"):
            assert find_execution_reason(form) is not None, form
        decides = {"linter": None, "recipe": None}.get(kind.about, (kind.about, kind.why))
        assert (find_execution_reason(path), find_decision_by_name(path, frozenset())) == (
            kind.why,
            decides,
        ), path
    for path, kind in _samples(infrastructure.AGENT_FILE_RULES):
        for form in (path, f"a/b/{path}", path.upper()):
            assert find_agent_instruction_reason(form) == kind.why, form
    assert find_execution_reason("vendor/x/y.js")


def test_tests_are_recognised():
    """Below a folder of the product a loose name counts only where the file itself has it."""
    for path, _ in _samples(infrastructure.TEST_FILE_RULES):
        assert is_test_file(path), path
    for path, _ in _samples(infrastructure.LOOSE_TEST_RULES):
        assert is_test_file(path), path
        assert is_test_file(f"src/{path}") == (not path.endswith("file.txt"))
        assert is_named_as_test(path) is False


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_files_open_no_gate(path):
    """An ordinary source or text file is none of these."""
    assert find_execution_reason(path) is None
    assert find_agent_instruction_reason(path) is None
    assert not is_test_file(path)


@pytest.mark.parametrize("path", ["ｃonftest.py", "CONFTEST.PY", "a/ＭakeFile", "node_modules/.bin/jest"])
def test_forms_of_a_name(path):
    """Case and compatibility forms of Unicode do not hide a name."""
    assert find_execution_reason(path)


@pytest.mark.parametrize("path", ["", "x/" * 5000, "x" * 5000, "/", "./."])
def test_a_name_that_cannot_be_judged_is_not_ordinary(path):
    """Nothing at all, or more than a file system takes, is never waved through."""
    assert find_execution_reason(path)
    assert find_agent_instruction_reason(path)
