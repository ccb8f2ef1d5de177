"""Which changed files a person has to look at."""

import pytest

from steersman.contracts.workspace import Touched
from steersman.judges.changes import gating, instructions, suspects, told

CHECKS = (("bash", "ci/run.sh"), ("python3", "-m", "tools.verify"), ("python3", "-m", "unittest"))


def touched(path, old="a1", new="b2", **more):
    return Touched(path, old, new, **more)


SHOWN = [
    ("conftest.py", "pytest loads it"),
    ("sub/conftest.py", "pytest loads it"),
    ("package.json", "a package manager takes scripts and settings from it"),
    ("Makefile", "make or a task runner executes it"),
    ("pytest.ini", "pytest loads it"),
    ("sitecustomize.py", "Python runs it at start-up"),
    ("unittest.py", "it stands in for a module that the test run imports"),
    (".github/workflows/ci.yml", "a build or CI service executes it"),
    ("AGENTS.md", "an agent takes its instructions from it"),
    ("docs/CLAUDE.md", "an agent takes its instructions from it"),
    ("tools/verify.py", "a check of the project names it"),
    ("tools/verify/__main__.py", "a check of the project names it"),
    ("steersman.toml", "it says what steersman runs"),
    ("tests/test_calc.py", "a test that was there before was changed"),
]


@pytest.mark.parametrize(("path", "why"), SHOWN)
def test_what_decides_about_tests_or_agents_is_shown(path, why):
    """Infrastructure, instructions, a check's own script and tests that were there before, each with its reason."""
    (found,) = suspects([touched(path), touched("calc.py")], CHECKS)
    assert (found.path, found.why) == (path, why)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (touched("tests/test_a.py", new=""), "a test was deleted"),
        (touched("tests/test_a.py", empty=True), "a test was emptied"),
        (touched("tests/test_a.py", kind="link"), "a test became a link"),
        (touched("tests/test_a.py"), None),
        (touched("tests/test_a.py", old=""), None),
        (touched("conftest.py", old=""), "pytest loads it"),
    ],
)
def test_a_project_may_let_changed_tests_be_shown_only(change, why):
    """With `show` a changed test opens no gate; a deleted, emptied or replaced one does in any case, a new one never."""
    found = gating(suspects([change], ()), "show")
    assert [s.why for s in found] == ([why] if why else [])


def test_suspects_are_told_with_their_digests():
    """What a person reads has the path, the reason and the digests, and nothing a terminal would obey."""
    words = told(
        suspects(
            [touched("a\x1b/conftest.py"), touched("pytest.ini", old=""), touched("tox.ini", new="")], ()
        )
    )
    assert words.splitlines() == [
        "a\\x1b/conftest.py: pytest loads it (a1 → b2)",
        "pytest.ini: pytest loads it (new, b2)",
        "tox.ini: Python's tools read their settings in it (deleted, was a1)",
    ]


def test_instructions_are_known_by_name():
    """Only files that agents would obey are put back for a reviewer."""
    assert instructions([touched("AGENTS.md"), touched("a.py"), touched("conftest.py")]) == ("AGENTS.md",)
