"""Which changed files a person has to look at."""

import pytest

from steersman.contracts.workspace import Text, Touched
from steersman.judges.changes import Scene, gating, instructions, suspects, told
from steersman.judges.trails import Trail, Tree, trail

CHECKS = (("bash", "ci/run.sh"), ("python3", "-m", "tools.verify"), ("python3", "-m", "unittest"))


def touched(path, old="a1", new="b2", **more):
    return Touched(path, old, new, **more)


SHOWN = [
    ("pytest.ini", "pytest loads it", "tests"),
    ("jest.config.js", "a JavaScript runner executes it", "tests"),
    ("sitecustomize.py", "Python runs it at start-up", "tests"),
    ("build.rs", "cargo builds with it", "tests"),
    ("tools/verify.py", "a check of the project names it", "tests"),
    ("tools/verify/__main__.py", "a check of the project names it", "tests"),
    ("steersman.toml", "it says what steersman runs", "tests"),
    ("uv.lock", "it says which packages are installed", "dependencies"),
    ("node_modules/x/index.js", "installed packages are what the tests run with", "dependencies"),
    (".github/workflows/ci.yml", "a build or CI service executes it", "ci"),
    ("Dockerfile", "a container is built or started from it", "ci"),
    ("AGENTS.md", "an agent takes its instructions from it", "agents"),
    ("docs/CLAUDE.md", "an agent takes its instructions from it", "agents"),
]
PLAIN = [
    "calc.py",
    "tests/test_calc.py",
    "conftest.py",
    "sub/conftest.py",
    "tests/data.json",
    "random.py",
    ".github/CONTRIBUTING.md",
    "ruff.toml",
    ".env.example",
    "manage.py",
    "scripts/deploy.sh",
]


@pytest.mark.parametrize(("path", "why", "kind"), SHOWN)
def test_what_decides_about_tests_or_agents_is_shown(path, why, kind):
    """Settings of runners, dependencies, CI, instructions and a check's own script, each with one reason."""
    (found,) = suspects([touched(path), touched("calc.py")], CHECKS)
    assert (found.path, found.why, found.kind) == (path, why, kind)


@pytest.mark.parametrize("path", PLAIN)
@pytest.mark.parametrize("old", ["a1", ""])
def test_tests_and_their_support_open_no_gate(path, old):
    """The base's own tests judge the change; the product and prose decide nothing."""
    assert suspects([touched(path, old=old)], CHECKS) == ()


def test_settings_of_a_linter_decide_where_a_check_runs_it():
    """By its name in a check, also where it has another spelling."""
    assert [s.why for s in suspects([touched("ruff.toml")], [("ruff", "check")])] == [
        "coverage or a linter reads it"
    ]
    assert len(suspects([touched(".golangci.yml")], [("golangci-lint", "run")])) == 1
    assert len(suspects([touched("tsconfig.json")], [("npx", "tsc")])) == 1
    assert suspects([touched("tsconfig.json")], [("npx", "jest")]) == ()


@pytest.mark.parametrize(
    ("path", "kind", "why"),
    [
        ("test_a.py", "link", "a test is a link"),
        ("calc.py", "link", "a program is a link"),
        ("notes.txt", "link", ""),
    ],
)
def test_what_a_link_leads_to_is_seen_by_nobody(path, kind, why):
    """A test or a program that becomes a link is shown; one that is gone is not."""
    assert [s.why for s in suspects([touched(path, kind=kind)], ())] == ([why] if why else [])
    assert suspects([touched(path, kind=kind, new="")], ()) == ()


def test_suspects_are_told_with_their_digests():
    """What a person reads has the path, the reason and the digests, and nothing a terminal would obey."""
    words = told(
        suspects(
            [touched("a\x1b/pytest.ini"), touched("pytest.ini", old=""), touched("jest.config.js", new="")],
            (),
        )
    )
    assert words.splitlines() == [
        "a\\x1b/pytest.ini: pytest loads it (a1 → b2)",
        "pytest.ini: pytest loads it (new, b2)",
        "jest.config.js: a JavaScript runner executes it (deleted, was a1)",
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


RUST = "pub fn a() {}\n#[cfg(test)]\nmod tests { #[test] fn t() { OLD } }\n"
FOLLOWED = {
    "a script of a script": ({"ci/run.sh": "python3 deep/go.py", "deep/go.py": ""}, {"deep/go.py": "x"}, "a check runs it by way of ci/run.sh"),
    "a script among tests": ({"ci/run.sh": "sh tests/all.sh", "tests/all.sh": ""}, {"tests/all.sh": "x"}, "a check runs it by way of ci/run.sh"),
    "a test that a check names": ({"ci/run.sh": "python3 tests/test_a.py", "tests/test_a.py": ""}, {"tests/test_a.py": "x"}, None),
    "a test that settings name": ({"ci/run.sh": "npm test", "package.json": '{"scripts": {"test": "ava"}, "ava": {"files": ["test/hooks.ts"]}}', "test/hooks.ts": ""}, {"test/hooks.ts": "x"}, None),
    "tests in the product's file": ({"a.rs": RUST}, {"a.rs": RUST.replace("OLD", "new")}, "tests in it that were there before were changed"),
    "the product beside its tests": ({"a.rs": RUST}, {"a.rs": RUST.replace("a()", "b()")}, None),
    "the product": ({"calc.py": ""}, {"calc.py": "import os\nos._exit(0)", "test_new.py": "import calc\ncalc.x = 1"}, None),
    "vendored code": ({"svc/go.mod": "", "svc/vendor/x/y.go": ""}, {"svc/vendor/x/y.go": "x"}, "installed packages are what the tests run with"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "changed", "why"), FOLLOWED.values(), ids=FOLLOWED)
def test_what_a_check_leads_to(files, changed, why):
    """Beside names: the files behind a check, and tests that cannot be put back by themselves."""
    touches = [touched(n, old="a1" if n in files else "") for n in changed]
    found = suspects(touches, CHECKS, seen(files, changed))
    assert [s.why for s in found] == ([why] if why else [])
    assert len(gating(found, "show")) == (0 if why is None or why.startswith("tests in it") else 1)


def test_what_a_checker_ignores():
    """What git ignores some checkers leave out."""
    scene = Scene(trail=Trail({}, ignoring="ruff"))
    assert [s.why for s in suspects([touched(".gitignore")], (), scene)] == [
        "ruff looks at nothing that it names"
    ]
    assert suspects([touched(".gitignore")], ()) == ()


def test_examples_that_were_tried_are_tests():
    """By the runner's report on the base tree, file by file."""
    old, new = ('def f():\n    """\n    >>> f()\n    1\n    """\n', "def f():\n    pass\n")
    texts = {"a.py": Text("a.py", old)}, {"a.py": Text("a.py", new)}
    assert suspects([touched("a.py")], (), Scene(old=texts[0], new=texts[1])) == ()
    tried = Scene(old=texts[0], new=texts[1], examples=frozenset({"a.py"}))
    assert [s.kind for s in suspects([touched("a.py")], (), tried)] == ["inside"]


def test_what_ran_as_a_test_is_one():
    """Whatever it is called, also where a check names it."""
    scene = Scene(ran=frozenset({"tools/verify.py"}))
    assert suspects([touched("tools/verify.py")], CHECKS, scene) == ()


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
    changed = {**files, "pytest.ini": "[pytest]\n"}
    found = suspects([touched(n) for n in changed], CHECKS, seen(files, changed))
    assert [(s.path, s.why) for s in found] == [("pytest.ini", "pytest loads it")]
