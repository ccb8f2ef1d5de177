"""The files that a check is made of."""

import pytest

from steersman.contracts.workspace import FileText
from steersman.judges.changes.infrastructure import (
    find_check_files,
    find_check_manifests,
    list_used_check_words,
)

TREE = {"calc.py": "", "main.py": "", "README.md": "", "tests/test_calc.py": ""}
MAKE = "include config.mk\nSRC = calc.py\n# README.md\nrun:\n\tpython3 main.py\ntest: lint\n\t@sh scripts/run.sh $(SRC) README.md\n\tcc suite.c\nlint:\n\t$(MAKE) inner\ninner: ; sh inner.sh\n"
SCRIPTS = '{"main": "calc.py", "scripts": {"start": "node main.py", "pretest": "node pre.js", "test": "npm run verify", "verify": "node ./tools/go.js", "t2": "x"}}'
OWN = {
    "a script": ([("bash", "ci/run.sh")], {"ci/run.sh": "sh more.sh", "more.sh": ""}, {"ci/run.sh": ""}),
    "a module": ([("python3", "-m", "tools.verify")], {"tools/verify.py": "", "tools/__init__.py": ""}, {"tools/verify.py": ""}),
    "a command inside": ([("sh", "-c", "python3 tools/x.py")], {"tools/x.py": ""}, {"tools/x.py": ""}),
    "an option": ([("x", "--config=cfg/p.ini")], {"cfg/p.ini": ""}, {"cfg/p.ini": ""}),
    "make": ([("make", "test")], {"Makefile": MAKE, "config.mk": "", "scripts/run.sh": "sh deep.sh", "deep.sh": "", "inner.sh": "", "suite.c": ""}, {"Makefile": "", "config.mk": "Makefile", "scripts/run.sh": "Makefile", "inner.sh": "Makefile"}),
    "make in a folder": ([("make", "-C", "sub")], {"sub/Makefile": "all:\n\tpython3 go.py\n", "sub/go.py": ""}, {"sub/Makefile": "", "sub/go.py": "sub/Makefile"}),
    "npm": ([("npm", "t")], {"package.json": SCRIPTS, "pre.js": "", "tools/go.js": ""}, {"package.json": "", "pre.js": "package.json", "tools/go.js": "package.json"}),
    "npm, then make": ([("npm", "test")], {"package.json": '{"scripts": {"test": "make check"}}', "Makefile": "check:\n\tsh go.sh\n", "go.sh": ""}, {"package.json": "", "Makefile": "package.json"}),
    "no such script": ([("npm", "run", "x")], {"package.json": '{"scripts": {"test": "node b.js"}}', "b.js": ""}, {"package.json": "", "b.js": "package.json"}),
    "no manifest at all": ([("npm", "test")], {"package.json": "[node b.js", "b.js": ""}, {"package.json": "", "b.js": "package.json"}),
    "a plugin": ([("uv", "run", "pytest")], {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p helper"\n[tool.mypy]\nfiles = ["calc.py"]\n', "helper.py": ""}, {"pyproject.toml": "", "helper.py": "pyproject.toml"}),
    "tox": ([("tox",)], {"tox.ini": "[testenv:py]\ncommands = python go.py\nempty\n[flake8]\nexclude = calc.py\n", "go.py": ""}, {"tox.ini": "", "go.py": "tox.ini"}),
    "settings": ([("pytest",)], {"pytest.ini": "[pytest]\naddopts = -p sub.helper\n", "sub/helper.py": ""}, {"pytest.ini": "", "sub/helper.py": "pytest.ini"}),
    "no check": ([], {"justfile": "test:\n  python3 go.py\n", "go.py": ""}, {"justfile": "", "go.py": "justfile"}),
}  # fmt: skip


@pytest.mark.parametrize(("checks", "files", "own"), OWN.values(), ids=OWN)
def test_the_files_of_a_check(checks, files, own):
    """What its words name, what its program reads, and what the used recipe there names; nothing further."""
    paths = {**TREE, **files}
    texts = {name: FileText(name, paths[name]) for name in find_check_manifests(checks, paths)}
    assert find_check_files(checks, paths, texts) == own


def test_words_of_the_recipes_that_are_used():
    """By them it is known which linters a check runs."""
    words = list_used_check_words(
        [("npm", "test")], {"package.json": FileText("package.json", '{"scripts": {"test": "xo && tsc"}}')}
    )
    assert {"npm", "test", "xo", "tsc"} <= words
