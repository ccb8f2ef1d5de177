"""Which changed files a person has to look at."""

import pytest

from steersman.contracts.commands import CommandResult, RunnerReport
from steersman.contracts.workspace import Change, FileText, TouchedPath
from steersman.engine.effects.change_context import find_code_outside_tree, read_change_context
from steersman.judges.changes.review_reasons import (
    ChangeContext,
    find_agent_instructions,
    find_gating_files,
    find_suspicious_files,
    render_suspicious_files,
)

CHECKS = (("bash", "ci/run.sh"), ("python3", "-m", "tools.verify"), ("python3", "-m", "unittest"))


def touched(path, old="a1", new="b2", **more):
    return TouchedPath(path, old, new, **more)


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
    "calc.py", "tests/test_calc.py", "conftest.py", "sub/conftest.py", "tests/data.json", "random.py",
    ".github/CONTRIBUTING.md", "ruff.toml", ".env.example", "manage.py", "scripts/deploy.sh",
]  # fmt: skip


@pytest.mark.parametrize(("path", "why", "kind"), SHOWN)
def test_what_decides_about_tests_or_agents_is_shown(path, why, kind):
    """Settings of runners, dependencies, CI, instructions and a check's own script, each with one reason."""
    (found,) = find_suspicious_files([touched(path), touched("calc.py")], CHECKS)
    assert (found.path, found.why, found.kind) == (path, why, kind)


@pytest.mark.parametrize("path", PLAIN)
@pytest.mark.parametrize("old", ["a1", ""])
def test_tests_and_their_support_open_no_gate(path, old):
    """The base's own tests judge the change; the product and prose decide nothing."""
    assert find_suspicious_files([touched(path, old=old)], CHECKS) == ()


def test_settings_of_a_linter_decide_where_a_check_runs_it():
    """By its name in a check, also where it has another spelling."""
    assert [s.why for s in find_suspicious_files([touched("ruff.toml")], [("ruff", "check")])] == [
        "a linter or a type checker reads it"
    ]
    assert len(find_suspicious_files([touched(".golangci.yml")], [("golangci-lint", "run")])) == 1
    assert len(find_suspicious_files([touched("tsconfig.json")], [("npx", "tsc")])) == 1
    assert find_suspicious_files([touched("tsconfig.json")], [("npx", "jest")]) == ()


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
    assert [s.why for s in find_suspicious_files([touched(path, kind=kind)], ())] == ([why] if why else [])
    assert find_suspicious_files([touched(path, kind=kind, new="")], ()) == ()


def test_suspects_are_told_with_their_digests():
    """What a person reads has the path, the reason and the digests, and nothing a terminal would obey."""
    words = render_suspicious_files(
        find_suspicious_files(
            [touched("a\x1b/pytest.ini"), touched("pytest.ini", old=""), touched("jest.config.js", new="")],
            (),
        )
    )
    assert words.splitlines() == [
        "a\\x1b/pytest.ini: pytest loads it (a1 → b2)",
        "pytest.ini: pytest loads it (new, b2)",
        "jest.config.js: a JavaScript runner executes it (deleted, was a1)",
    ]


def test_a_program_that_plays_a_role_is_shown():
    """The file itself, or any in the folder that is kept with it; one beside that folder is none."""
    scene = ChangeContext(programs={"tools/": "reviewer", "crew.yaml": "coder, tester"})
    paths = ("tools/lib/a.txt", "crew.yaml", "tools.md")
    found = {
        s.path: s.why
        for s in find_suspicious_files([TouchedPath(path, "1", "2") for path in paths], (), scene)
    }
    assert found == {
        "tools/lib/a.txt": "the change edits the program that plays reviewer",
        "crew.yaml": "the change edits the program that plays coder, tester",
    }


def test_instructions_are_known_by_name():
    """Only files that agents would obey are put back for a reviewer."""
    assert find_agent_instructions([touched("AGENTS.md"), touched("a.py"), touched("conftest.py")]) == (
        "AGENTS.md",
    )


class Trees:
    """Two recorded commits."""

    def __init__(self, base, new):
        self._trees = {"base": base, "new": new}

    def paths(self, commit):
        return tuple(sorted(self._trees[commit]))

    def read_texts(self, commit, names, each, total):
        tree = self._trees[commit]
        return tuple(FileText(n, tree[n]) for n in names if n in tree and len(tree[n]) <= min(each, total))

    def link_targets(self, _commit):
        return {}


def judged(base, edits, checks=CHECKS):
    """What is shown of a change over these files, and why."""
    touches = tuple(touched(name, old="a1" if name in base else "") for name in edits)
    change = Change("new", "t", tuple(edits), "", 0, 0, touches)
    scene = read_change_context(Trees(base, {**base, **edits}), "base", change, checks)
    return find_suspicious_files(touches, checks, scene)


RUST = "pub fn a() {}\n#[cfg(test)]\nmod tests { #[test] fn t() { OLD } }\n"
MAKE = {"Makefile": "test:\n\tsh go.sh\ndocs:\n\tx\n", "go.sh": ""}
JUDGED = {
    "a check's own script": ({"ci/run.sh": ""}, {"ci/run.sh": "x"}, CHECKS, "a check of the project names it"),
    "a script of its recipe": (MAKE, {"go.sh": "x"}, [("make", "test")], "a check runs it by way of Makefile"),
    "its recipe": (MAKE, {"Makefile": "test:\n\t-sh go.sh\n"}, [("make", "test")], "it decides which tests run and how"),
    "another recipe": (MAKE, {"Makefile": MAKE["Makefile"].replace("x", "y")}, [("make", "test")], None),
    "recipes that no check uses": (MAKE, {"Makefile": "test:\n"}, CHECKS, None),
    "a test that a check names": ({"tests/test_a.py": ""}, {"tests/test_a.py": "x"}, [("python3", "tests/test_a.py")], None),
    "a script among tests": ({"tests/all.sh": ""}, {"tests/all.sh": "x"}, [("sh", "tests/all.sh")], None),
    "tests in the product's file": ({"a.rs": RUST}, {"a.rs": RUST.replace("OLD", "new")}, CHECKS, "tests in it that were there before were changed"),
    "the product beside its tests": ({"a.rs": RUST}, {"a.rs": RUST.replace("a()", "b()")}, CHECKS, None),
    "the product": ({"calc.py": ""}, {"calc.py": "import os\nos._exit(0)", "test_new.py": "import calc\ncalc.x = 1"}, CHECKS, None),
    "vendored code": ({"svc/go.mod": "", "svc/vendor/x/y.go": ""}, {"svc/vendor/x/y.go": "x"}, CHECKS, "installed packages are what the tests run with"),
    "a linter in a script": ({"package.json": '{"scripts": {"test": "tsc && ava"}}'}, {"tsconfig.json": "{}"}, [("npm", "test")], "a linter or a type checker reads it"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "changed", "checks", "why"), JUDGED.values(), ids=JUDGED)
def test_what_a_check_is_made_of(files, changed, checks, why):
    """Beside names: a check's own files, and tests that cannot be put back; tests are judged by those of the base."""
    found = judged(files, changed, checks)
    assert [s.why for s in found] == ([why] if why else [])
    assert len(find_gating_files(found, "show")) == (0 if why is None or why.startswith("tests in it") else 1)


LINKS = {
    "absolute": ({"a": "/etc"}, True), "a step too far": ({"a": "../x"}, True),
    "inside": ({"a": "./docs//x"}, False), "back inside": ({"b/a": "../x"}, False),
    "by way of another": ({"a": "b/x", "b": "c", "c": "d/../.."}, True),
    "a circle": ({"a": "b", "b": "a"}, False),
}  # fmt: skip


@pytest.mark.parametrize(("links", "out"), LINKS.values(), ids=LINKS)
def test_a_link_that_leads_out_of_the_tree_opens_the_gate(links, out):
    """Whatever its name is, also by way of other links; one that stays inside, or is gone, does not."""
    path = next(iter(links))
    found = find_suspicious_files([touched(path, kind="link")], (), ChangeContext(links=links))
    assert [s.why for s in found] == (["it is a link that leads out of the tree"] if out else [])
    assert len(find_gating_files(found, "show")) == out
    assert (
        find_suspicious_files(
            [touched(path, kind="link", new="")], (), ChangeContext(links=links, base_links=links)
        )
        == ()
    )


def test_a_link_into_git_opens_the_gate():
    """What is there belongs to nobody's change, however it is written."""
    for target in (".git/config", "./.GIT", "x/../.git"):
        (found,) = find_suspicious_files(
            [touched("gc", kind="link")], (), ChangeContext(links={"gc": target})
        )
        assert found.why == "it is a link that leads into .git"


BENT = {
    "a folder becomes a link": ({"a": "b/../secret", "b": "."}, {"a": "b/../secret"}, "b", True),
    "a link becomes a folder": ({"a": "b/../../x"}, {"a": "b/../../x", "b": "c/d/e"}, "b", True),
    "it led out before": ({"a": "/x", "b": "."}, {"a": "/x"}, "b", False),
    "another file changes": ({"a": "/x"}, {"a": "y"}, "z", False),
    "every link stays inside": ({"a": "b/x", "b": "."}, {"a": "b/x"}, "b", False),
}


@pytest.mark.parametrize(("links", "before", "path", "out"), BENT.values(), ids=BENT)
def test_a_link_that_leads_out_by_what_another_became_opens_the_gate(links, before, path, out):
    """Links that the change leaves alone are followed too; one that led out before is the base's own."""
    found = find_suspicious_files(
        [touched(path, kind="link")], (), ChangeContext(links=links, base_links=before)
    )
    assert [s.why for s in found] == (["with it the link a leads out of the tree"] if out else [])


def test_examples_that_were_tried_are_tests():
    """By the runner's report on the base tree, file by file."""
    old, new = ('def f():\n    """\n    >>> f()\n    1\n    """\n', "def f():\n    pass\n")
    texts = {"a.py": FileText("a.py", old)}, {"a.py": FileText("a.py", new)}
    assert find_suspicious_files([touched("a.py")], (), ChangeContext(old=texts[0], new=texts[1])) == ()
    tried = ChangeContext(old=texts[0], new=texts[1], examples=frozenset({"a.py"}))
    assert [s.kind for s in find_suspicious_files([touched("a.py")], (), tried)] == ["inside"]


def test_what_ran_as_a_test_is_one():
    """By its name it can be put back as the base has it; a file that may be a product too is shown to a person."""
    scene = ChangeContext(ran=frozenset({"tests/verify.py", "tools/verify.py"}))
    assert find_suspicious_files([touched("tests/verify.py")], CHECKS, scene) == ()
    (mixed,) = find_suspicious_files([touched("tools/verify.py")], CHECKS, scene)
    assert mixed.why.endswith("they cannot be told from product code")
    assert find_suspicious_files([touched("tools/verify.py", new="")], (), scene) == ()


def test_files_of_tests_come_from_the_report():
    """Examples and tests are known by what ran on the base tree."""
    report = RunnerReport(form="unittest", ran=1, files={"odd.py": ("odd.A.a",)}, examples=("calc.py",))
    before = [
        CommandResult(name="x", argv=CHECKS[2], source="project", verdict="passed", report=r)
        for r in (report, None)
    ]
    scene = read_change_context(Trees({}, {}), "base", Change("new", "t", (), "", 0, 0, ()), CHECKS, before)
    assert (scene.ran, scene.examples) == ({"odd.py"}, {"calc.py"})


@pytest.mark.parametrize(
    ("files", "place"),
    [({"go.mod": "replace a => ../a\n"}, "../a"), ({"sub/go.mod": "replace a => ../a\n"}, ""), ({}, "")],
)
def test_code_from_outside_a_tree(files, place):
    """The manifests of a recorded commit say where code would come from."""
    assert find_code_outside_tree(Trees(files, {}), "base") == place


def test_a_large_change_is_judged_in_one_go():
    """Two thousand files of a change are looked through within the bounds, and those that matter are found."""
    files = {f"pkg/m{n}.py": "def f():\n    return 1\n" * 20 for n in range(2_000)}
    changed = {**files, "pytest.ini": "[pytest]\n"}
    found = judged(files, changed)
    assert [(s.path, s.why) for s in found] == [("pytest.ini", "pytest loads it")]
