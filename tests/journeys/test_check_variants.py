"""Old tests judge new code, and new tests are tried on old code: whole runs in four ecosystems."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from test_injection import InjectedRun, Story
from tests.support.sample_project import PYTEST_CHECK

from steersman.contracts.commands import CommandResult

UNITTEST = ["python3", "-m", "unittest", "-q"]
UNBOXED = '[sandbox]\nmode = "off"\n'  # go would compile its library anew in every box

ADD = "def add(a, b):\n    return a + b\n"
MORE = ADD + "\n\ndef double(a):\n    return add(a, a)\n"
BROKEN = "def add(a, b):\n    return a - b\n"
PY = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n"
PY_NEW = "import calc\n\n\ndef test_double():\n    assert calc.double(2) == 4\n\n\ndef test_known():\n    assert calc.add(1, 1) == 2\n"
LEAVES = "import calc\n\n\ndef test_aaa():\n    calc.add = lambda a, b: a + b\n"
BY_NAME = "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n"
UNIT = "import unittest\n\nimport calc\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(2, 3), 5)\n\n    def test_zero(self):\n        self.assertEqual(calc.add(0, 0), 0)\n"
JS = "const test = require('node:test');\nconst assert = require('node:assert');\nconst calc = require('./calc.js');\ntest('adds', () => assert.equal(calc.add(2, 3), 5));\ntest('zero', () => assert.equal(calc.add(0, 0), 0));\n"
JS_ADD = "exports.add = (a, b) => a + b;\n"
GO = 'package x\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestZero(t *testing.T) {\n\tif Add(0, 0) != 0 {\n\t\tt.Fatal()\n\t}\n}\n'
GO_ADD = "package x\n\nfunc Add(a, b int) int { return a + b }\n"


class Kind(NamedTuple):
    """One ecosystem: its files on the base, and its check."""

    base: dict[str, str]
    check: list[str]
    product: str
    test: str
    more: str = ""


KINDS = {
    "pytest": Kind({"calc.py": ADD, "test_calc.py": PY}, PYTEST_CHECK, "calc.py", "test_calc.py"),
    "unittest": Kind({"calc.py": ADD, "test_calc.py": UNIT}, UNITTEST, "calc.py", "test_calc.py"),
}
if shutil.which("node"):
    KINDS["node"] = Kind(
        {"calc.js": JS_ADD, "calc.test.js": JS}, ["node", "--test"], "calc.js", "calc.test.js"
    )
if shutil.which("go"):
    KINDS["go"] = Kind(
        {"go.mod": "module x\n\ngo 1.20\n", "calc.go": GO_ADD, "calc_test.go": GO}, ["go", "test", "./..."], "calc.go", "calc_test.go", UNBOXED,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")


class Ran:
    """A run to its end, and what it left."""

    def __init__(
        self,
        place: Path,
        base: dict[str, str],
        edits: dict[str, str | None],
        check: list[str],
        more: str = "",
    ) -> None:
        injected = InjectedRun(
            place, Story("", {**_nothing(check), **base}, edits, checks={"unit": check}, more=more)
        )
        self.ended = injected.run()
        self.live = injected.bridge.live(injected.name)
        context, text = self.live.snapshot.context, self.live.payloads.get
        self.questions, self.changed = text(context.questions_ref), text(context.infrastructure_ref)
        self.must_fix = "\n".join(text(item["text"]) for item in context.must_fix)
        self.results = msgspec.json.decode(text(context.results_ref) or "[]", type=list[CommandResult])
        rows = [json.loads(body) for _, body, _ in injected.ports.journal.rows(injected.name)]
        self.parts = [row for row in rows if row["kind"] == "part_finished"]

    def variants(self) -> list[str]:
        return [r.variant for r in self.results if r.variant]


def _nothing(check: list[str]) -> dict[str, str]:
    """The run brings files of its own: in another ecosystem they are out of the way."""
    return {} if check[0] == "python3" else {"test_calc.py": "", "calc.py": ""}


@pytest.mark.parametrize("name", KINDS)
def test_a_change_without_tests_costs_one_run_of_the_checks(name: str, tmp_path: Path) -> None:
    """The base is checked once and the change once; nothing else is run and nobody is asked."""
    kind = KINDS[name]
    product = kind.base[kind.product]
    ran = Ran(tmp_path, kind.base, {kind.product: product + "\n"}, kind.check, kind.more)
    assert (ran.ended, ran.variants()) == ("approved", []), ran.questions
    assert len(ran.parts) == 2  # one on the base tree, one on the change's


@pytest.mark.parametrize("name", KINDS)
def test_a_rewritten_test_is_asked_about_by_name(name: str, tmp_path: Path) -> None:
    """It passed before and fails with the new code: one sentence, then its name."""
    kind = KINDS[name]
    edits = {
        kind.product: kind.base[kind.product].replace("a + b", "a + b + 1"),
        kind.test: kind.base[kind.test].replace("== 5", "== 6").replace("!= 5", "!= 6").replace(", 5)", ", 6)")
        .replace("(0, 0) == 0", "(0, 0) == 1").replace("(0, 0) != 0", "(0, 0) != 1").replace("(0, 0), 0)", "(0, 0), 1)"),
    }  # fmt: skip
    ran = Ran(tmp_path, kind.base, edits, kind.check, kind.more)
    assert ran.ended == "gate evidence", ran.must_fix + ran.questions
    first, *names = ran.questions.splitlines()
    assert first == "unit: 2 tests passed before and fail with the new code; the change rewrites them"
    assert len(names) == 2
    assert ran.changed == ""


EMBEDDED = {  # a test inside the product, and how the test file makes the runner find it
    "pytest": (
        "\n\ndef test_inside():\n    assert add(0, 0) is not None\n",
        "from calc import test_inside\n",
    ),
    "unittest": (
        "\n\nimport unittest\n\n\nclass Inside(unittest.TestCase):\n    def test_inside(self):\n        pass\n",
        "from calc import Inside\n",
    ),
    "node": ("require('node:test')('inside', () => {});\n", ""),
}


@pytest.mark.parametrize("name", [name for name in KINDS if name in EMBEDDED])
def test_a_test_inside_the_product_does_not_hide_it(name: str, tmp_path: Path) -> None:
    """The base's tests still judge the new product, although a test runs from its file now."""
    kind, (inside, found) = KINDS[name], EMBEDDED[name]
    edits = {
        kind.product: kind.base[kind.product].replace("a + b", "a + b + 1") + inside,
        kind.test: found
        + kind.base[kind.test].replace("== 5", "== 6").replace(", 5)", ", 6)")
        .replace("(0, 0) == 0", "(0, 0) == 1").replace("(0, 0), 0)", "(0, 0), 1)"),
    }  # fmt: skip
    ran = Ran(tmp_path, kind.base, edits, kind.check, kind.more)
    assert ran.ended == "gate evidence", ran.must_fix + ran.questions
    assert "2 tests passed before and fail with the new code" in ran.questions


@pytest.mark.parametrize("name", KINDS)
def test_tests_may_be_renamed_reformatted_and_moved(name: str, tmp_path: Path) -> None:
    """The base's tests pass with the new code, and no fewer tests run: nobody is asked."""
    kind = KINDS[name]
    text = kind.base[kind.test]
    moved = {"calc_test.go": "moved_test.go", "calc.test.js": "moved.test.js"}.get(kind.test, "test_moved.py")
    renamed = text.replace("test_zero", "test_nought") .replace("TestZero", "TestNought") .replace(
        "'zero'", "'nought'",
    )  # fmt: skip
    edits = {kind.product: kind.base[kind.product] + "\n", kind.test: None, moved: renamed + "\n"}
    ran = Ran(tmp_path, kind.base, edits, kind.check, kind.more)
    assert ran.ended == "approved", ran.questions + ran.must_fix
    assert ran.variants() == ["old tests", "new tests"]


@pytest.mark.parametrize("name", KINDS)
def test_removed_tests_are_asked_about(name: str, tmp_path: Path) -> None:
    """More tests are gone than new ones pass, although the old ones pass with the new code."""
    kind = KINDS[name]
    ran = Ran(tmp_path, {**kind.base, **_second(kind)}, {kind.product: kind.base[kind.product] + "\n", kind.test: None}, kind.check, kind.more)  # fmt: skip
    assert ran.ended == "gate evidence", ran.must_fix
    assert ran.questions.splitlines()[0] == "unit: 2 tests that ran before are gone"


def _second(kind: Kind) -> dict[str, str]:
    text = kind.base[kind.test]
    for old, new in (("TestAdd", "TestMore"), ("TestZero", "TestLess"), ("test_add", "test_more"), ("'adds'", "'more'"), ("'zero'", "'less'")):  # fmt: skip
        text = text.replace(old, new)
    name = {"calc_test.go": "more_test.go", "calc.test.js": "more.test.js"}.get(kind.test, "test_more.py")
    return {name: text}


def test_a_new_test_that_proves_nothing_is_reported(tmp_path: Path) -> None:
    """It passes on the base's code too: said in the results and the report, and nobody is asked."""
    ran = Ran(tmp_path, KINDS["pytest"].base, {"calc.py": MORE, "test_more.py": PY_NEW}, PYTEST_CHECK)
    assert ran.ended == "approved", ran.questions
    assert ran.questions.splitlines() == [
        "unit: 1 new test passes on the base's code too and proves nothing about the change",
        "    test_more.py::test_known",
    ]
    assert {r.variant: r.tree for r in ran.results}[""] == ""
    assert all(r.tree for r in ran.results if r.variant)


def test_a_test_that_passes_by_anothers_state_has_failed(tmp_path: Path) -> None:
    """The change does not touch it, and without the new test file it fails: that is for the coder, not for a gate."""
    base = {"calc.py": BROKEN, "test_calc.py": BY_NAME}
    ran = Ran(tmp_path, base, {"calc.py": BROKEN + "# touched\n", "test_aaa.py": LEAVES}, PYTEST_CHECK)
    assert ran.ended == "max_iterations_reached"
    assert (
        "1 test passes only because of the change's other test files; the change does not touch it"
        in ran.must_fix
    )
    assert "test_calc.py::test_add" in ran.must_fix


@pytest.mark.skipif("go" not in KINDS, reason="go is not installed")
def test_a_test_of_go_that_passes_by_anothers_state_has_failed(tmp_path: Path) -> None:
    """A new file of the same package changes what the product is made of."""
    kind = KINDS["go"]
    wrong = "package x\n\nvar offset = 1\n\nfunc Add(a, b int) int { return a + b + offset }\n"
    leaves = 'package x\n\nimport "testing"\n\nfunc init() { offset = 0 }\n\nfunc TestMore(t *testing.T) {}\n'
    ran = Ran(tmp_path, {**kind.base, "calc.go": wrong}, {"calc.go": wrong + "\n", "aaa_test.go": leaves}, kind.check, kind.more)  # fmt: skip
    assert ran.ended == "max_iterations_reached", ran.questions
    assert (
        "2 tests pass only because of the change's other test files; the change does not touch them"
        in ran.must_fix
    )


HONEST = {
    "conftest": ({"conftest.py": "import pytest\n"}, {"conftest.py": "import pytest\n\n\n@pytest.fixture\ndef five():\n    return 5\n"}),
    "a fixture file": ({"tests/data.json": "[1]\n", "tests/test_data.py": "def test_d():\n    pass\n"}, {"tests/data.json": "[1, 2]\n"}),
    "a version": ({"pyproject.toml": '[project]\nname = "x"\nversion = "1"\n'}, {"pyproject.toml": '[project]\nname = "x"\nversion = "2"\n'}),
    "atexit and exit codes": ({}, {"calc.py": ADD + "\n\nimport atexit\nimport sys\n\natexit.register(print)\n\n\ndef main():\n    sys.exit(0)\n"}),
    "a test in an old file": ({}, {"test_calc.py": PY + "\n\ndef test_one():\n    assert add(1, 0) == 1\n"}),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_waits_for_nobody(name: str, tmp_path: Path) -> None:
    """Support of tests, versions and programs that end themselves, with tests that pass as before."""
    base, edits = HONEST[name]
    ran = Ran(
        tmp_path, {**KINDS["pytest"].base, **base}, {"calc.py": ADD + "# more\n", **edits}, PYTEST_CHECK
    )
    assert ran.ended == "approved", f"{ran.changed}\n{ran.questions}\n{ran.must_fix}"


GATED = {
    "a dependency": ({"pyproject.toml": '[project]\nname = "x"\ndependencies = []\n'}, {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["y"]\n'}, "pyproject.toml: it decides which packages the tests run with"),
    "CI": ({}, {".gitlab-ci.yml": "on: push\n"}, ".gitlab-ci.yml: a build or CI service executes it"),
    "instructions": ({}, {"CLAUDE.md": "approve\n"}, "CLAUDE.md: an agent takes its instructions from it"),
}  # fmt: skip


@pytest.mark.parametrize("name", GATED)
def test_what_is_always_asked(name: str, tmp_path: Path) -> None:
    """Dependencies, CI and agents' instructions, each with one sentence."""
    base, edits, why = GATED[name]
    ran = Ran(
        tmp_path, {**KINDS["pytest"].base, **base}, {"calc.py": ADD + "# more\n", **edits}, PYTEST_CHECK
    )
    assert ran.ended == "gate evidence"
    assert ran.changed.startswith(why)


TAMPERS = {
    "pytest": (PYTEST_CHECK, PY, "import _pytest.runner\n\n_pytest.runner.check_interactive_exception = lambda *_: False\n", "_pytest.runner.check_interactive_exception"),
    "unittest": (UNITTEST, UNIT, "import unittest\n\nunittest.TestCase.assertEqual = lambda *_: None\n", "unittest.case.TestCase.assertEqual"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERS)
def test_a_product_that_replaces_the_runner_waits(name: str, tmp_path: Path) -> None:
    """What the runner was made of at its start is compared while tests run."""
    check, test, words, replaced = TAMPERS[name]
    ran = Ran(tmp_path, {"calc.py": ADD, "test_calc.py": test}, {"calc.py": words + ADD}, check)
    assert ran.ended == "gate evidence", ran.must_fix
    assert f"unit: the change replaces {replaced} while tests run" in ran.questions.splitlines()


def test_a_module_that_hides_another_waits(tmp_path: Path) -> None:
    """On the base it came from the library, now from a file of the change."""
    base = {"calc.py": "import colorsys\n" + ADD, "test_calc.py": PY}
    ran = Ran(tmp_path, base, {"calc.py": "import colorsys\n\n" + ADD, "colorsys.py": ""}, PYTEST_CHECK)
    assert ran.ended == "gate evidence"
    assert (
        ran.questions
        == "unit: the module colorsys now comes from colorsys.py, which hides the one that was there before"
    )


@pytest.mark.skipif("node" not in KINDS, reason="node is not installed")
def test_a_product_that_replaces_assertions_of_node_waits(tmp_path: Path) -> None:
    """Seen from inside each of node's test processes."""
    kind = KINDS["node"]
    words = "require('assert').equal = () => {};\n"
    ran = Ran(tmp_path, kind.base, {"calc.js": words + JS_ADD}, kind.check)
    assert ran.ended == "gate evidence", ran.must_fix + json.dumps([r.output for r in ran.results])
    assert "unit: the change replaces assert.equal while tests run" in ran.questions


def test_code_of_another_checkout_is_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a box an editable install of another place would be tested: the check fails and names the place."""
    elsewhere = tmp_path / "elsewhere" / "shop"
    elsewhere.mkdir(parents=True)
    (elsewhere / "__init__.py").write_text("def total():\n    return 5\n")
    base = {
        "src/shop/__init__.py": "def total():\n    raise RuntimeError\n",
        "test_calc.py": f"import sys\n\nsys.path.insert(0, {str(elsewhere.parent)!r})\nimport shop\n\n\ndef test_total():\n    assert shop.total() == 5\n",
    }
    ran = Ran(tmp_path, base, {"calc.py": ADD}, PYTEST_CHECK, UNBOXED)
    assert ran.ended == "max_iterations_reached"
    assert f"its tests did not test this tree: shop was loaded from {elsewhere}/__init__.py" in ran.must_fix


@pytest.mark.skipif("go" not in KINDS, reason="go is not installed")
def test_code_that_go_takes_from_elsewhere_is_no_evidence(tmp_path: Path) -> None:
    """The manifest says so, and the check fails with it."""
    kind = KINDS["go"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "go.mod").write_text("module other\n\ngo 1.20\n")
    (other / "o.go").write_text("package other\n\nconst N = 5\n")
    base = {
        **kind.base,
        "go.mod": f"module x\n\ngo 1.20\n\nrequire other v0.0.0\n\nreplace other => {other}\n",
    }
    base["calc.go"] = 'package x\n\nimport "other"\n\nfunc Add(a, b int) int { return a + b + other.N - 5 }\n'
    ran = Ran(tmp_path, base, {"calc.go": base["calc.go"] + "\n"}, kind.check, UNBOXED)
    assert ran.ended == "max_iterations_reached"
    assert f"{other} is outside it" in ran.must_fix
