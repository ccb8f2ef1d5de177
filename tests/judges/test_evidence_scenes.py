"""What is read of a base tree to judge a change, and what comes of it: whole trees, one change each."""

import pytest

from steersman.contracts.commands import CommandResult, Report
from steersman.contracts.workspace import Change, Text, Touched
from steersman.judges.changes import gating, suspects
from steersman.runtime.performers.scene import code_outside, scene_of

PYTEST = ("python3", "-m", "pytest", "-q")
UNITTEST = ("python3", "-m", "unittest", "-q")
NPM = ("npm", "test")
CASE = "import unittest\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
ASSERTS = "from helpers import same\nfrom calc import add\n\n\ndef test_add():\n    same(add(2, 3), 5)\n"
SAME = "def same(a, b):\n    assert a == b\n"
READS = "import json\nfrom calc import add\n\n\ndef test_add():\n    for a, b, c in json.load(open('data/expected.json')):\n        assert add(a, b) == c\n"
SHOWN = "def add(a, b):\n    '''\n    >>> add(2, 3)\n    5\n    '''\n    return a - b\n"
JEST = '{"scripts": {"test": "jest"}}'
RUST = "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn adds() { assert_eq!(add(2, 3), 5); }\n}\n"


class Trees:
    """Two recorded commits."""

    def __init__(self, base, new):
        self._trees = {"base": base, "new": new}

    def paths(self, commit):
        return tuple(sorted(self._trees[commit]))

    def texts(self, commit, names, each, total):
        tree = self._trees[commit]
        there = [(n, tree[n]) for n in names if n in tree]
        return tuple(Text(n, t) if len(t) <= min(each, total) else Text(n, "", whole=False) for n, t in there)


def judged(base, edits, check, *, links=()):
    """Why each of the changed files is shown to a person."""
    base = {"calc.py": "", **base}
    new = {name: text for name, text in {**base, **edits}.items() if text is not None}
    touched = tuple(
        Touched(name, "a1" if name in base else "", "b2" if name in new else "", kind="link" if name in links else "file")
        for name in sorted(edits)
    )  # fmt: skip
    change = Change("new", "t", tuple(t.path for t in touched), "", 0, 0, touched)
    scene = scene_of(Trees(base, new), "base", change, [check])
    return {s.path: s.why for s in gating(suspects(touched, [check], scene), "gate")}


INSIDE = "tests in it that were there before were changed"
GATED = {
    "an example": ({"calc.py": SHOWN}, {"calc.py": SHOWN.replace("    5", "    -1")}, (*PYTEST, "--doctest-modules"), INSIDE),
    "an example in prose": ({"README.md": ">>> add(2, 3)\n5\n"}, {"README.md": ">>> add(2, 3)\n-1\n"}, (*PYTEST, "--doctest-glob=*.md"), INSIDE),
    "a suite that is compiled": ({"Makefile": "test:\n\tcc -o suite suite.c calc.c && ./suite\n", "suite.c": "int main(void) { return add(2, 3) != 5; }", "calc.c": ""}, {"suite.c": "int main(void) { return 0; }"}, ("make", "test"), "a check runs it by way of Makefile"),
    "a script's own package": ({"tools/__init__.py": "", "tools/check.py": "from tools.harness import main\nmain()\n", "tools/harness.py": ""}, {"tools/harness.py": "x"}, ("python3", "-m", "tools.check"), "a check runs it by way of tools/check.py"),
    "a script's own package, the other way": ({"tools/check.py": "from tools import harness as h\n", "tools/harness.py": ""}, {"tools/harness.py": "x"}, ("python3", "-m", "tools.check"), "a check runs it by way of tools/check.py"),
    "another folder of tools": ({"package.json": '{"scripts": {"test": "node tools/go.js"}}', "tools/go.js": "require('../qa/harness').run();", "qa/harness.js": ""}, {"qa/harness.js": "x"}, NPM, "a check runs it by way of tools/go.js"),
    "what jest sets up": ({"package.json": JEST, "jest.config.js": "module.exports = { setupFiles: ['<rootDir>/src/setup.js'] };", "src/setup.js": ""}, {"src/setup.js": "x"}, NPM, "a check runs it by way of jest.config.js"),
    "what mocha requires": ({"package.json": JEST.replace("jest", "mocha"), ".mocharc.js": "module.exports = { require: ['./lib/setup.js'] };", "lib/setup.js": ""}, {"lib/setup.js": "x"}, NPM, "a check runs it by way of .mocharc.js"),
    "a list of tests": ({"Makefile": "test:\n\tcat suites.txt | xargs pytest\n", "suites.txt": "test_calc.py"}, {"suites.txt": ""}, ("make", "test"), "a check runs it by way of Makefile"),
    "a module in a recipe": ({"Makefile": "test:\n\tpython3 -m unittest -q mychecks.Add\n", "mychecks.py": "x"}, {"mychecks.py": "y"}, ("make", "test"), "a check runs it by way of Makefile"),
    "scripts by a pattern": ({"Makefile": "test:\n\tfor f in scripts/*.sh; do sh $$f; done\n", "scripts/a.sh": ""}, {"scripts/a.sh": "x"}, ("make", "test"), "a check runs it by way of Makefile"),
    "what a linter leaves out": ({".gitignore": ""}, {".gitignore": "calc.py"}, ("ruff", "check"), "ruff looks at nothing that it names"),
    "vendored packages": ({"svc/go.mod": "", "svc/vendor/x/y.go": ""}, {"svc/vendor/x/y.go": "x"}, ("go", "test"), "installed packages are what the tests run with"),
    "a Rust test": ({"src/lib.rs": RUST}, {"src/lib.rs": RUST.replace("5)", "-1)")}, ("cargo", "test"), INSIDE),
    "a name in front of a Rust test": ({"src/lib.rs": RUST}, {"src/lib.rs": RUST.replace("super::*;", "super::*;\n    fn add(a: i32, b: i32) -> i32 { a + b }")}, ("cargo", "test"), INSIDE),
    "a Rust example": ({"src/lib.rs": "/// ```\n/// assert_eq!(x::add(2, 3), 5);\n/// ```\npub fn add() {}\n"}, {"src/lib.rs": "/// ```\n/// assert_eq!(x::add(2, 3), -1);\n/// ```\npub fn add() {}\n"}, ("cargo", "test"), INSIDE),
    "an Elixir example": ({"lib/c.ex": '@doc """\n    iex> add(2, 3)\n    5\n"""'}, {"lib/c.ex": '@doc """\n    iex> add(2, 3)\n    -1\n"""'}, ("mix", "test"), INSIDE),
}  # fmt: skip


@pytest.mark.parametrize("name", GATED)
def test_what_decides_is_seen_whatever_it_is_called(name):
    """Tests by what they hold, what only tests use, what a check leads to: a change to it is shown with its reason."""
    base, edits, check, why = GATED[name]
    assert judged(base, edits, check) == dict.fromkeys(edits, why)


ADDED = RUST.replace(
    "5); }\n",
    "5); }\n\n    // one more\n    #[test]\n    fn zero() { assert_eq!(add(0, 0), 0); }\n",
)
OPEN = {
    "the product that tests import": ({"test_calc.py": "from calc import add\n"}, {"calc.py": "def add(a, b):\n    assert b\n"}, PYTEST),
    "a helper that the product uses too": ({"calc.py": "from helpers import same\n", "helpers.py": SAME, "test_calc.py": ASSERTS}, {"helpers.py": "x = 1\n"}, PYTEST),
    "a module of the product's package": ({"shop/__init__.py": "", "shop/helpers.py": SAME, "test_all.py": "from shop.helpers import same\n"}, {"shop/helpers.py": "x = 1\n"}, PYTEST),
    "a plain module without an assertion": ({"engine.py": "X = 1\n", "test_all.py": "import engine\n"}, {"engine.py": "X = 2\n"}, PYTEST),
    "a module with a test of its own": ({"util.py": SAME, "tests/test_util.py": "import util\n"}, {"util.py": "x = 1\n"}, PYTEST),
    "data that the product reads": ({"calc.py": "open('data/prices.json')", "data/prices.json": "", "test_calc.py": "open('data/prices.json')"}, {"data/prices.json": "[]"}, PYTEST),
    "data in a folder that the product reads": ({"calc.py": "glob('data')", "data/prices.json": "", "test_calc.py": "open('data/prices.json')"}, {"data/prices.json": "[]"}, PYTEST),
    "product below src": ({"src/features/login.ts": "1", "package.json": "{}"}, {"src/features/login.ts": "2"}, NPM),
    "models of snapshots": ({"app/snapshots/models.py": "1"}, {"app/snapshots/models.py": "2"}, PYTEST),
    "a description of an interface": ({"app/spec/openapi.py": "1"}, {"app/spec/openapi.py": "2"}, PYTEST),
    "a client with a name like a test": ({"app/test_client.py": "X = 1\n"}, {"app/test_client.py": "X = 2\n"}, PYTEST),
    "an experiment with a name like a test": ({"src/ab_test.py": "def assign(user):\n    assert user\n", "src/main.py": "from ab_test import assign\n"}, {"src/ab_test.py": "x = 1\n"}, PYTEST),
    "testimonials": ({"testimonials.py": "WORDS = []\n"}, {"testimonials.py": "WORDS = [1]\n"}, PYTEST),
    "a package that the product imports": ({"features/cart.js": "", "index.js": "import cart from './features/cart';"}, {"features/cart.js": "x"}, NPM),
    "a package with an alias": ({"src/features/cart.ts": "", "features/cart.ts": "", "src/index.ts": "import cart from '@/features/cart';"}, {"src/features/cart.ts": "x"}, NPM),
    "a package of go": ({"spec/spec.go": "package spec", "main.go": 'import "example.org/x/spec"'}, {"spec/spec.go": "package spec // more"}, ("go", "test", "./...")),
    "a build of the product's own": ({"src/build.py": "1", ".env.example": "1", "scripts/import_prices.py": "1", "app/vendor/models.py": "1", "app/ci/models.py": "1", "src/data/project.json": "1"}, {"src/build.py": "2", ".env.example": "2", "scripts/import_prices.py": "2", "app/vendor/models.py": "2", "app/ci/models.py": "2", "src/data/project.json": "2"}, PYTEST),
    "a long history": ({"CHANGELOG.md": "x" * 300_000}, {"CHANGELOG.md": "y" * 300_000}, PYTEST),
    "what git ignores, and no check minds": ({".gitignore": ""}, {".gitignore": "x"}, PYTEST),
    "words around an example": ({"calc.py": SHOWN}, {"calc.py": SHOWN.replace("    >>>", "    Adds.\n\n    >>>").replace("a - b", "a + b")}, (*PYTEST, "--doctest-modules")),
    "a further example": ({"calc.py": SHOWN}, {"calc.py": SHOWN + "\n\ndef sub(a, b):\n    '''\n    >>> sub(2, 3)\n    -1\n    '''\n"}, (*PYTEST, "--doctest-modules")),
    "an example that nobody tries": ({"calc.py": SHOWN, "README.md": ">>> 1\n1\n"}, {"calc.py": SHOWN.replace("    5", "    -1"), "README.md": "x"}, PYTEST),
    "what a suite is compiled with": ({"Makefile": "test:\n\t$(CC) -o suite suite.c calc.c main.c && ./suite\nlint:\n\tclang-tidy suite.c calc.c\n", "suite.c": "int main() {}", "calc.c": "int add() {}", "main.c": "int main() {}"}, {"calc.c": "int add() { }", "main.c": "int main() { }"}, ("make", "test", "lint")),
    "what jest covers": ({"package.json": JEST, "jest.config.js": "module.exports = { collectCoverageFrom: ['src/index.js'], setupFiles: ['dotenv/config'] };", "src/index.js": ""}, {"src/index.js": "x"}, NPM),
    "what a script imports of the product": ({"tools/check.py": "import shop.core\nfrom calc import add\n", "shop/core.py": ""}, {"shop/core.py": "x = 1\n"}, ("python3", "-m", "tools.check")),
    "a library's name in a package of tests": ({"pkg/__init__.py": "", "pkg/test_x.py": ""}, {"pkg/types.py": "x = 1\n"}, PYTEST),
    "a class of a new name": ({"src/main/java/x/Calc.java": ""}, {"src/test/java/x/More.java": "x"}, ("mvn", "test")),
    "a Rust fix above its tests": ({"src/lib.rs": RUST}, {"src/lib.rs": RUST.replace("a - b", "a + b")}, ("cargo", "test")),
    "a Rust fix and a further test": ({"src/lib.rs": RUST}, {"src/lib.rs": ADDED.replace("a - b", "a + b")}, ("cargo", "test")),
    "a Rust fix below the name of its tests": ({"src/lib.rs": "#[cfg(test)]\nmod tests;\n\npub fn add() { 1 }\n", "src/tests.rs": ""}, {"src/lib.rs": "#[cfg(test)]\nmod tests;\n\npub fn add() { 2 }\n"}, ("cargo", "test")),
    "a Rust fix below something for tests": ({"src/lib.rs": "impl A {\n    #[cfg(test)]\n    fn sample() -> A { A }\n    fn v(&self) -> i32 { 1 }\n}\n"}, {"src/lib.rs": "impl A {\n    #[cfg(test)]\n    fn sample() -> A { A }\n    fn v(&self) -> i32 { 2 }\n}\n"}, ("cargo", "test")),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_ordinary_work_is_left_alone(name):
    """The product, what it uses, new tests beside old ones: nobody is asked."""
    base, edits, check = OPEN[name]
    assert judged(base, edits, check) == {}


JUDGED = {
    "unittest's own pattern": ({"testcalc.py": CASE}, {"testcalc.py": "x"}, UNITTEST),
    "a module that unittest is given": ({"mychecks.py": "x"}, {"mychecks.py": "y"}, (*UNITTEST, "mychecks")),
    "a class of another name": ({"calctest.py": CASE}, {"calctest.py": "x"}, PYTEST),
    "a Java test by its text": ({"a/CalcIT.java": "class CalcIT {\n  @Test\n  void adds() {}\n}\n"}, {"a/CalcIT.java": "x"}, ("mvn", "verify")),
    "a JavaScript spec by its text": ({"calcSpec.js": "describe('add', () => {})"}, {"calcSpec.js": "x"}, NPM),
    "steps": ({"steps/add.py": "@given('two')\ndef two(c):\n    pass\n"}, {"steps/add.py": "x"}, ("behave",)),
    "values of a test": ({"test_data.py": "CASES = [(2, 3, 5)]\n", "test_calc.py": "from test_data import CASES\n"}, {"test_data.py": "CASES = []\n"}, PYTEST),
    "a helper of tests": ({"helpers.py": SAME, "test_calc.py": ASSERTS}, {"helpers.py": "def same(a, b):\n    return\n"}, PYTEST),
    "a helper with a plain name": ({"equal.py": SAME, "tests/test_add.py": ASSERTS.replace("helpers", "equal")}, {"equal.py": "def same(a, b):\n    return\n"}, PYTEST),
    "a helper in JavaScript": ({"same.js": "exports.same = (a, b) => assert.equal(a, b);", "test/calc.test.js": "const { same } = require('../same');"}, {"same.js": "x"}, NPM),
    "expected values": ({"data/expected.json": "[[2, 3, 5]]", "test_calc.py": READS}, {"data/expected.json": "[]"}, PYTEST),
    "expected values beside what the product reads": ({"calc.py": "open('data/prices.json')", "data/expected.json": "", "test_calc.py": READS}, {"data/expected.json": "[]"}, PYTEST),
    "a linter's settings": ({".golangci.yml": ""}, {".golangci.yml": "x"}, ("go", "test")),
    "a class of the product's name": ({"src/main/java/x/Calc.java": "", "src/test/java/x/CalcTest.java": ""}, {"src/test/kotlin/x/Calc.kt": "x"}, ("mvn", "test")),
    "a library's name beside tests": ({"tests/unit/test_mean.py": ""}, {"tests/unit/statistics.py": "x"}, PYTEST),
    "a part of a larger repository": ({"backend/prices.py": "", "backend/tests/test_p.py": ""}, {"backend/tests/prices.py": "x"}, PYTEST),
    "a root that settings name": ({"pytest.ini": "[pytest]\npythonpath = server/code\n", "server/code/prices.py": "", "qa/test_p.py": ""}, {"qa/prices.py": "x"}, PYTEST),
}  # fmt: skip


@pytest.mark.parametrize("name", JUDGED)
def test_tests_are_judged_by_those_of_the_base(name):
    """A changed test, what tests use, a module that stands in for another: how the checks run says what it does."""
    base, edits, check = JUDGED[name]
    assert judged(base, edits, check) == {}


def test_files_of_tests_come_from_the_report():
    """Examples and tests are known by what ran on the base tree."""
    report = Report(form="unittest", ran=1, files={"odd.py": ("odd.A.a",)}, examples=("calc.py",))
    before = [CommandResult(name="unit", argv=UNITTEST, source="project", verdict="passed", report=report)]
    change = Change("new", "t", (), "", 0, 0, ())
    scene = scene_of(Trees({"calc.py": ""}, {}), "base", change, [UNITTEST], [*before, before[0].__class__(
        name="x", argv=UNITTEST, source="project", verdict="passed")])  # fmt: skip
    assert (scene.ran, scene.examples) == ({"odd.py"}, {"calc.py"})


def test_a_program_that_is_a_link():
    """Nobody looks at what it leads to: a new test or a product's file that is a link is shown; other links are not."""
    edits = {"test_aaa.py": "", "calc.py": "", "docs/latest": "", "notes.txt": ""}
    assert judged({}, edits, PYTEST, links=edits) == {
        "calc.py": "a program is a link",
        "test_aaa.py": "a test is a link",
    }


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"go.mod": "replace a => ../a\n"}, "../a"),
        ({"sub/go.mod": "replace a => ../a\n"}, ""),
        ({"a.py": ""}, ""),
    ],
)
def test_code_from_outside_a_tree(files, place):
    """The manifests of a recorded commit say where code would come from."""
    assert code_outside(Trees(files, {}), "base") == place
