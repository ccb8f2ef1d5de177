"""Which changed files a person has to look at."""

import pytest

from steersman.contracts.workspace import Text, Touched
from steersman.judges.changes import Scene, gating, instructions, suspects, told
from steersman.judges.trails import Trail, Tree, trail

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


def seen(files, changed, checks=CHECKS):
    """What is known of a change over these files, as whoever reads them would bring it."""
    texts, base = {}, frozenset(files)
    tree = Tree(base.union(changed))
    found = trail(checks, tree, texts)
    while found.wanted:
        texts |= {n: Text(n, files.get(n, "")) for n in found.wanted}
        found = trail(checks, tree, texts)
    old = {n: Text(n, files[n]) for n in changed if n in files}
    return Scene(base, found, old, {n: Text(n, t) for n, t in changed.items()})


@pytest.mark.parametrize(
    ("files", "changed", "why"),
    [
        ({"ci/run.sh": "python3 deep/go.py", "deep/go.py": ""}, {"deep/go.py": "x"}, "a check runs it by way of ci/run.sh"),
        ({"calc.py": "", "tests/test_a.py": ""}, {"tests/calc.py": "x"}, "it stands in for calc.py"),
        ({"calc.py": ""}, {"calc.py": "import os\nos._exit(0)"}, "line 2 ends the process at once"),
        ({}, {"test_new.py": "import calc\ncalc.add = 1"}, "line 2 changes calc.add for everybody"),
        ({"a.rs": "#[cfg(test)]\nold"}, {"a.rs": "#[cfg(test)]\nnew"}, "tests in it that were there before were changed"),
        ({"a.rs": "fn a"}, {"a.rs": "fn b"}, None),
        ({"calc.py": ""}, {"calc.py": "x = 1", "test_new.py": "import calc"}, None),
    ],
)  # fmt: skip
def test_what_a_check_leads_to_and_what_a_text_does(files, changed, why):
    """Beside names: the files behind a check, modules in front of others, texts that reach for the runner."""
    touches = [touched(n, old="a1" if n in files else "") for n in changed]
    found = suspects(touches, CHECKS, seen(files, changed))
    assert [s.why for s in found] == ([why] if why else [])
    assert len(gating(found, "show")) == (0 if why is None or why.startswith("tests in it") else 1)


def test_a_project_names_its_own_tests():
    """What `python_files` calls a test is one: changed it is shown, new it is welcome."""
    scene = Scene(trail=Trail({}, patterns=("check_*.py",)))
    found = suspects([touched("sub/check_a.py"), touched("check_b.py", old=""), touched("a.py")], (), scene)
    assert [(s.path, s.why) for s in found] == [
        ("sub/check_a.py", "a test that was there before was changed")
    ]


def test_checks_that_cannot_be_followed_open_the_gate():
    """Whatever was changed; a person reads why."""
    scene = Scene(trail=Trail({}, cut="they name more than 200 files"))
    found = suspects([touched("a.py")], (), scene)
    assert told(found) == "the checks could not be followed: they name more than 200 files"
    assert gating(found, "show") == found
    assert suspects([], (), scene) == ()


def test_a_large_change_is_judged_in_one_go():
    """Two thousand files of a change are looked through within the bounds, and those that matter are found."""
    files = {f"pkg/m{n}.py": "def f():\n    return 1\n" * 20 for n in range(2_000)}
    changed = {**files, "pkg/m7.py": "import os\nos._exit(0)\n"}
    found = suspects([touched(n) for n in changed], CHECKS, seen(files, changed))
    assert [(s.path, s.why) for s in found] == [("pkg/m7.py", "line 2 ends the process at once")]
