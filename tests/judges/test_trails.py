"""The files behind a check, followed over the base tree."""

import pytest

from steersman.contracts.workspace import Text
from steersman.judges import trails
from steersman.judges.recipes import commands
from steersman.judges.trails import Tree, trail

TREE = {"calc.py": "", "main.py": "", "src/calc.py": "", "test_calc.py": "", "README.md": "see calc.py"}


def followed(checks, files, **more):
    """The whole trail over these files, as a reader that obeys it would get it."""
    texts, hop = {}, 0
    paths = Tree(frozenset({**TREE, **files, **more}))
    found = trail(checks, paths, texts)
    while found.wanted:
        hop += 1
        texts |= {n: Text(n, {**TREE, **files}.get(n, "")) for n in found.wanted}
        found = trail(checks, paths, texts, hop)
    return found


VERIFY = "import lib\nimport missing, calc\nfrom calc import add\nfrom . import near\nopen('rules.json')\nopen('README.md')\n"
LED = {
    "make": (("make", "-s", "test"), {"Makefile": "# a comment\n\nPY ?= python3\nrun:\n\t$(PY) main.py\ntest: lint\n\t@$(PY) scripts/verify.py\nlint:\n\truff check calc.py\n", "scripts/verify.py": VERIFY, "scripts/lib.py": "", "scripts/near.py": "", "rules.json": "main.py"}, {"scripts/verify.py", "scripts/lib.py", "scripts/near.py", "rules.json"}),
    "make, continued and nested": (("make",), {"GNUmakefile": "include more.inc\nX = tools/a.sh\nX += $(X) tools/b.sh\nall: b\nb: ; sh $(X) \\\n  tools/c.sh\n", "tools/a.sh": "", "tools/b.sh": "", "tools/c.sh": "", "more.inc": ""}, {"tools/a.sh", "tools/b.sh", "tools/c.sh", "more.inc"}),
    "make calls itself": (("make", "test"), {"Makefile": "run:\n\tpython3 main.py\ntest:\n\t$(MAKE) inner\ninner:\n\tpython3 go.py\n", "go.py": ""}, {"go.py"}),
    "make in a folder": (("make", "-C", "sub", "test"), {"sub/Makefile": "test:\n\tpython3 go.py\n", "sub/go.py": ""}, {"sub/go.py"}),
    "npm": (("npm", "test"), {"package.json": '{"main": "calc.js", "scripts": {"start": "node main.js", "pretest": "node pre.js", "test": "npm run verify", "verify": "node tools/go.js"}, "jest": {"setupFiles": ["./jsetup.js", 1]}}', "calc.js": "", "main.js": "", "pre.js": "", "jsetup.js": "", "tools/go.js": "const {add} = require('../calc.js'); require('./near'); require('node:fs')", "tools/near.js": ""}, {"pre.js", "tools/go.js", "tools/near.js", "jsetup.js"}),
    "npm t": (("npm", "t"), {"package.json": '{"scripts": {"test": "./go", "build": "node b.js"}}', "go": "#!/usr/bin/env node\nrequire('./b.js')", "b.js": ""}, {"go"}),
    "no such script": (("npm", "run", "other"), {"package.json": '{"scripts": {"test": "node b.js"}}', "b.js": ""}, {"b.js"}),
    "a manifest that is none": (("npm", "test"), {"package.json": "[node b.js", "b.js": ""}, {"b.js"}),
    "a manifest of another form": (("npm", "test"), {"package.json": '["node b.js"]', "b.js": ""}, {"b.js"}),
    "pytest -p": (("python3", "-m", "pytest"), {"pytest.ini": "[pytest]\naddopts = -p helper\n", "helper.py": "from calc import add"}, {"helper.py"}),
    "pytest -p, joined": (("uv", "run", "pytest"), {"pyproject.toml": '[project]\nname = "calc"\n[tool.pytest.ini_options]\naddopts = "-phelper"\nlog = true\n[tool.mypy]\nfiles = ["calc.py"]\n', "helper.py": ""}, {"helper.py"}),
    "setup.cfg": (("pytest",), {"setup.cfg": "[options]\npy_modules = calc.py\n[tool:pytest]\naddopts = -p sub.helper\nempty\n", "sub/helper.py": ""}, {"sub/helper.py"}),
    "a broken setup.cfg": (("pytest",), {"setup.cfg": "-p helper", "helper.py": ""}, {"helper.py"}),
    "a conftest's plugins": (("pytest",), {"tests/conftest.py": "pytest_plugins = ['fix.one']\nfrom helper import *\nfrom other import pytest_hook as h\nfrom calc import add\n", "fix/one.py": "", "helper.py": "", "other.py": ""}, {"fix/one.py", "helper.py", "other.py"}),
    "npm, then make, then sh": (("npm", "t"), {"package.json": '{"scripts": {"test": "make check"}}', "Makefile": "run:\n\tpython main.py\ncheck:\n\tcd tools && ./go\n", "tools/go": '#!/bin/sh\n. "$(dirname "$0")/lib.sh"\n', "tools/lib.sh": ""}, {"Makefile", "tools/go", "tools/lib.sh"}),
    "a compiler reads": (("make", "test"), {"Makefile": "test: calc.c\n\tgcc calc.c t.c -o t && cat calc.py && ./t\n", "calc.c": "", "t.c": ""}, set()),
    "source that is run": (("bash", "ci/run.sh"), {"ci/run.sh": "python -m tools.verify\ngo run ./internal/check.go\n", "tools/verify.py": "", "internal/check.go": ""}, {"tools/verify.py", "internal/check.go"}),
    "a folder is no file": (("make", "test"), {"Makefile": "test:\n\tPYTHONPATH=src python3 -m unittest discover -s src\n"}, set()),
    "many of one name": (("bash", "go.sh"), {"go.sh": "cd b && python3 x.py\n", "a/x.py": "", "b/x.py": "", "c/x.py": "", "d/x.py": ""}, {"b/x.py"}),
    "an argv with a command in it": (("sh", "-c", "python3 tools/x.py"), {"tools/x.py": ""}, {"tools/x.py"}),
    "an option with a file": (("pytest", "--rootdir=x", "--config=cfg/p.ini"), {"cfg/p.ini": "addopts = -p helper", "helper.py": ""}, {"helper.py"}),
    "what is not there yet": (("bash", "ci/run.sh"), {"ci/run.sh": "[ -f extra.sh ] && . extra.sh\n"}, {"extra.sh"}),
    "just": (("just", "test"), {"justfile": "py := 'python3'\nrun:\n    {{py}} main.py\ntest:\n    {{py}} go.py\n", "go.py": ""}, {"go.py"}),
    "tox": (("tox",), {"tox.ini": "[testenv:py]\ncommands = python go.py\n[flake8]\nexclude = calc.py\n", "go.py": ""}, {"go.py"}),
    "poe": (("poe", "test"), {"pyproject.toml": '[tool.poe.tasks]\ntest = "python go.py"\n[tool.poe.tasks.x]\nscript = "qa.verify:main"\n', "go.py": "", "qa/verify.py": ""}, {"go.py", "qa/verify.py"}),
    "cargo": (("cargo", "test"), {"Cargo.toml": '[package]\nbuild = "gen.rs"\n[lib]\npath = "src/lib.rs"\n[[test]]\npath = "checks/x.rs"\n', "gen.rs": "", "src/lib.rs": "", "checks/x.rs": ""}, {"gen.rs", "checks/x.rs"}),
    "a program in a folder": (("make", "test"), {"Makefile": "test:\n\tgo run ./tools/check\n", "tools/check/main.go": ""}, {"tools/check/main.go"}),
    "a plugin that is a package": (("pytest", "-p", "plug"), {"plug/__init__.py": "from .impl import x\nfrom calc import add\n", "plug/impl.py": "from .other import y\n", "plug/other.py": ""}, {"plug/impl.py"}),
    "a test is not followed": (("make", "test"), {"Makefile": "test:\n\tpython3 test_calc.py\n", "test_calc.py": "open('x.json')", "x.json": ""}, {"test_calc.py"}),
    "a ring": (("bash", "a.sh"), {"a.sh": "sh b.sh", "b.sh": "sh a.sh"}, {"b.sh"}),
}  # fmt: skip
ALSO = {"what is not there yet": ("extra.sh",)}


@pytest.mark.parametrize("name", LED)
def test_files_behind_a_check(name):
    """What recipes, scripts and settings run or load is named; what they build, read or import as the product is not."""
    argv, files, wanted = LED[name]
    found = followed([argv], files, **dict.fromkeys(ALSO.get(name, ()), ""))
    entries = {p for p, by in found.named.items() if not by}
    assert set(found.named) - entries == wanted - entries
    assert wanted <= set(found.named)
    assert not set(found.named) & {"calc.py", "main.py", "src/calc.py", "README.md"}
    assert not found.cut


def test_each_file_knows_who_names_it():
    """The one that leads to a file is told with it."""
    argv, files, _ = LED["npm, then make, then sh"]
    assert followed([argv], files).named == {
        "package.json": "",
        "Makefile": "package.json",
        "tools/go": "Makefile",
        "tools/lib.sh": "tools/go",
    }


def test_without_checks_every_entry_counts():
    """A tester may then ask for any runner, so all of them are followed."""
    files = {
        "Makefile": "test:\n\tpython3 go.py\n",
        "go.py": "",
        "package.json": '{"scripts": {"test": "node x.js"}}',
        "x.js": "",
    }
    assert {"go.py", "x.js"} <= set(followed([], files).named)


def test_a_project_says_what_its_tests_are_called():
    """`python_files` and `discover -p` name tests that no table knows."""
    files = {"pytest.ini": "[pytest]\npython_files = check_*.py *\n"}
    checks = [("pytest", "a[b].py::T"), ("python3", "-m", "unittest", "-p", "spec*.py", "qa.calc.T")]
    assert set(followed(checks, files).patterns) == {
        "check_*.py",
        "spec*.py",
        "a[[]b].py",
        "qa.py",
        "qa/calc.py",
        "qa/calc/T.py",
    }


def test_a_bound_is_told():
    """A file that is too long, too many files and too many hops each cut the trail, and it says so."""
    long = trail([("bash", "a.sh")], Tree(frozenset({"a.sh"})), {"a.sh": Text("a.sh", "", whole=False)}, 1)
    assert (long.wanted, long.cut) == ((), "a.sh is too long to be followed")
    many = {
        "a.sh": " ".join(f"t{n}.sh" for n in range(trails.FILES)),
        **{f"t{n}.sh": "" for n in range(trails.FILES)},
    }
    assert followed([("bash", "a.sh")], many).cut == f"they name more than {trails.FILES} files"
    row = {f"s{n}.sh": f"sh s{n + 1}.sh" for n in range(trails.HOPS + 2)}
    assert followed([("bash", "s0.sh")], row).cut == f"they lead over more than {trails.HOPS} files in a row"
    assert not followed([("bash", "s2.sh")], row).cut


def test_the_words_of_a_line():
    """A program that only reads takes what follows with it, up to the end of its command."""
    words = [s.word for s in commands("FOO=1 echo a.py && python3 b.py; mypy c.py\nsh d.sh | tee e.sh\n\n")]
    assert words == ["FOO", "1", "echo", "a.py", "python3", "b.py", "mypy", "sh", "d.sh"]
