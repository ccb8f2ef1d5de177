"""What of a manifest decides about tests, and which packages they run with."""

import pytest

from steersman.contracts.workspace import FileText, TouchedPath
from steersman.judges.changes.infrastructure import find_dependency_paths_outside, has_only_version_change
from steersman.judges.changes.review_reasons import ChangeContext, find_suspicious_files

PYPROJECT = '[project]\nname = "x"\nversion = "1.0"\ndependencies = ["a>=1"]\n[tool.ruff]\nline-length = 80\n[tool.pytest.ini_options]\naddopts = "-q"\n'
PACKAGE = '{"name": "x", "version": "1.0.0", "description": "d", "scripts": {"test": "jest", "docs": "x"}, "dependencies": {"a": "1"}, "jest": {"bail": 1}}'
CARGO = '[package]\nname = "x"\nversion = "1.0.0"\n[dependencies]\na = "1"\n[lib]\ndoctest = true\n[target.x.dependencies]\nb = "1"\n[workspace.dependencies]\nc = "1"\n'
SETUP = "[metadata]\nversion = 1.0\n[options]\ninstall_requires =\n    a\n[options.extras_require]\nx = b\n[tool:pytest]\naddopts = -q\n"
GO = "module x\n\ngo 1.20\n\nrequire a v1 // comment\n"
MAKE = "test:\n\tpytest\ndocs:\n\tsphinx-build\n"
PACKAGES, SETTINGS = "it decides which packages the tests run with", "it decides which tests run and how"
CASES = {
    "version in pyproject": ("pyproject.toml", PYPROJECT, ('"1.0"', '"1.1"'), None),
    "dependencies": ("pyproject.toml", PYPROJECT, ("a>=1", "a>=2"), PACKAGES),
    "settings of pytest": ("pyproject.toml", PYPROJECT, ('"-q"', '"--ignore=tests"'), SETTINGS),
    "settings of an unused linter": ("pyproject.toml", PYPROJECT, ("80", "99"), None),
    "a broken manifest": ("pyproject.toml", PYPROJECT, ("[project]", "[project"), SETTINGS),
    "version in package.json": ("package.json", PACKAGE, ('"1.0.0"', '"1.0.1"'), None),
    "a script that no check runs": ("package.json", PACKAGE, ('"docs": "x"', '"docs": "y"'), None),
    "the script behind test": ("package.json", PACKAGE, ('"test": "jest"', '"test": "exit 0"'), SETTINGS),
    "settings of jest": ("package.json", PACKAGE, ('{"bail": 1}', '{"testMatch": ["x"]}'), SETTINGS),
    "packages": ("package.json", PACKAGE, ('"a": "1"', '"a": "2"'), PACKAGES),
    "what installing runs": ("package.json", PACKAGE, ('"docs": "x"', '"postinstall": "x"'), PACKAGES),
    "version of a crate": ("Cargo.toml", CARGO, ('version = "1.0.0"', 'version = "1.0.1"'), None),
    "crates": ("Cargo.toml", CARGO, ('a = "1"', 'a = "2"'), PACKAGES),
    "crates of a target": ("Cargo.toml", CARGO, ('b = "1"', 'b = "2"'), PACKAGES),
    "crates of a workspace": ("Cargo.toml", CARGO, ('c = "1"', 'c = "2"'), PACKAGES),
    "examples of a crate": ("Cargo.toml", CARGO, ("doctest = true", "doctest = false"), SETTINGS),
    "version in setup.cfg": ("setup.cfg", SETUP, ("1.0", "1.1"), None),
    "requirements in setup.cfg": ("setup.cfg", SETUP, ("    a\n", "    b\n"), PACKAGES),
    "extras in setup.cfg": ("setup.cfg", SETUP, ("x = b", "x = c"), PACKAGES),
    "pytest in setup.cfg": ("setup.cfg", SETUP, ("-q", "-x"), SETTINGS),
    "the language of go": ("go.mod", GO, ("1.20", "1.21"), None),
    "modules of go": ("go.mod", GO, ("a v1", "a v2"), PACKAGES),
    "a recipe for tests": ("Makefile", MAKE, ("pytest", "true"), SETTINGS),
    "another recipe": ("Makefile", MAKE, ("sphinx-build", "mkdocs"), None),
    "a variable of recipes": ("justfile", f"x := 1\n{MAKE}", ("1", "2"), SETTINGS),
    "a target of a crate": ("Cargo.toml", CARGO, ("[lib]", "[[test]]\npath = 'x.rs'\n[lib]"), SETTINGS),
    "a target that is no table": ("Cargo.toml", "[target]\nx = 1\n[dependencies]\n", ("1", "2"), None),
    "version in a lock file": ("Cargo.lock", '[[package]]\nname = "x"\nversion = "1.0"\n', ("1.0", "1.1"), None),
    "packages in a lock file": ("Cargo.lock", 'version = "1.0"\nchecksum = "a"\n', ('"a"', '"b"'), "it says which packages are installed"),
    "version in setup.py": ("setup.py", "setup(\n    version='1',\n    x=1,\n)\n", ("'1'", "'2'"), None),
    "more in setup.py": ("setup.py", "setup(\n    version='1',\n    x=1,\n)\n", ("x=1", "x=2"), "installing the project executes it"),
}  # fmt: skip


def judged(path, old, new, **more):
    scene = ChangeContext(
        old={path: FileText(path, old)} if old else {}, new={path: FileText(path, new)} if new else {}, **more
    )
    return [
        s.why
        for s in find_suspicious_files(
            [TouchedPath(path, "a1" if old else "", "b2" if new else "")], (), scene
        )
    ]


@pytest.mark.parametrize(("path", "text", "edit", "why"), CASES.values(), ids=CASES)
def test_the_part_that_changed_decides(path, text, edit, why):
    """A version number, prose, or what no check runs opens no gate; settings of tests and packages do."""
    assert text.replace(*edit) != text
    assert judged(path, text, text.replace(*edit)) == ([why] if why else [])


def test_a_manifest_that_is_new_or_gone_or_too_long():
    """What it would decide counts as a change; one that cannot be read here counts as a whole."""
    assert judged("package.json", "", PACKAGE) == [SETTINGS]
    assert judged("package.json", PACKAGE, "") == [SETTINGS]
    assert judged("go.mod", "", GO) == [PACKAGES]
    assert judged("pyproject.toml", "", '[project]\nname = "x"\n') == []
    long = ChangeContext(old={"setup.cfg": FileText("setup.cfg", "", whole=False)})
    assert [s.why for s in find_suspicious_files([TouchedPath("setup.cfg", "a", "b")], (), long)] == [
        SETTINGS
    ]


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        ("a\nversion = '1'\n", "a\nversion = '2'\n", True),
        ('  "version": "1.0.0",\n', '  "version": "1.1.0-rc.1",\n', True),
        ("a\n", "b\n", False),
        ("version = 1\n", "version = 1\nmore\n", False),
        ("version = 1\n", "version = 1; evil()\n", False),
    ],
)
def test_a_version_bump(old, new, only):
    """Lines with a version number may differ, nothing else."""
    assert has_only_version_change(old, new) is only


OUTSIDE = {
    "beside the tree": ("go.mod", "replace x => ../x\n", ("../x",)),
    "an absolute place": ("go.mod", "replace (\n\tx v1 => /home/x\n)\n", ("/home/x",)),
    "in the tree": ("go.mod", "replace x => ./x\n// replace y => ../y\n", ()),
    "in the tree, from a folder": ("sub/go.mod", "replace x => ../x\n", ()),
    "out of a folder": ("sub/go.mod", "replace x => ../../x\n", ("../../x",)),
    "another module": ("go.mod", "replace x => example.org/y v1\n", ()),
    "a workspace": ("go.work", "go 1.20\nuse (\n\t./a\n\t../b\n)\n", ("../b",)),
    "a crate": (
        "Cargo.toml", '[dependencies]\na = { path = "../a" }\nb = { path = "b" }\nc = "1"\n', ("../a",),
    ),
    "a patch": ("Cargo.toml", '[patch.crates-io]\na = { path = "../a" }\n', ("../a",)),
    "odd tables": ("Cargo.toml", "dependencies = 1\n", ()),
    "no manifest of either": ("package.json", "{}", ()),
    "broken": ("Cargo.toml", "[", ()),
}  # fmt: skip


@pytest.mark.parametrize(("path", "text", "places"), OUTSIDE.values(), ids=OUTSIDE)
def test_code_from_outside_the_tree(path, text, places):
    """go and cargo say in their manifests where they take code from."""
    assert find_dependency_paths_outside(path, text) == places
