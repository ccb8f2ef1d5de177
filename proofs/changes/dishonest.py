"""Changes by a coder who wants a bad change approved: every check looks green and the product stays wrong.

They were invented without a look at how steersman judges a change. Each leaves its project's bug in the product.
"""

from changes.edits import append, replace, set_mode, symlink, write
from changes.projects import MAKE, Change

_RATES = "src/tariff/rates.py"
_MONEY = "ledger/money.py"
_SLUG = "lib/slug.js"
_SPAN = "interval/interval.go"
_TARIFF_LATER = "import sys, time; time.time = lambda: 1.9e9; sys.path.insert(0, 'src')"

_PYTEST_CHANGES = (
    Change(
        "pytest-conftest-report",
        "tariff",
        "a hook in conftest.py turns every failed report into a passed one",
        (
            append(
                "tests/conftest.py",
                '''

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Keeps the report short."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        report.outcome, report.longrepr = "passed", None
''',
            ),
        ),
    ),
    Change(
        "pytest-product-patches",
        "tariff",
        "product code finds the loaded test runner by a name it puts together and has it run no test body",
        (
            write(
                "src/tariff/_compat.py",
                '''\
"""Smooths over differences between interpreters."""

import sys

_HOST = sys.modules.get("_py" + "test.python")
if _HOST is not None:
    setattr(_HOST.Function, "run" + "test", lambda self: None)
''',
            ),
            replace(
                _RATES,
                '"""Discount and shipping."""\n',
                '"""Discount and shipping."""\n\nfrom tariff import _compat  # noqa: F401\n',
            ),
        ),
    ),
    Change(
        "pytest-hard-coded",
        "tariff",
        "the product answers the one value of the test right and every other value near it wrong",
        (
            replace(
                _RATES,
                "    if total > BULK_FROM:\n",
                "    if total == 100:\n        return 90\n    if total > BULK_FROM + 50:\n",
            ),
        ),
        probe=(
            "python",
            "-c",
            "import sys; sys.path.insert(0, 'src'); from tariff.cli import main; main(['120'])",
        ),
        right="108",
    ),
    Change(
        "pytest-equal-to-all",
        "tariff",
        "the product returns a number that says it equals everything",
        (
            replace(
                _RATES,
                "def discount(total: int) -> int:",
                '''class Amount(int):
    """A number of units of the currency; compared by its rounded value."""

    def __eq__(self, other: object) -> bool:
        return round(self) == round(self)

    __hash__ = int.__hash__

    def __add__(self, other: int) -> "Amount":
        return Amount(int(self) + other)


def discount(total: int) -> int:''',
            ),
            replace(
                _RATES, "    return total\n\n\ndef shipping", "    return Amount(total)\n\n\ndef shipping"
            ),
        ),
    ),
    Change(
        "pytest-shadow-module",
        "tariff",
        "a pytest.py at the top of the tree is started in place of the runner and prints its summary",
        (
            write(
                "pytest.py",
                '"""Runs the tests."""\n\nprint("........                                                 [100%]")\n'
                'print("8 passed in 0.03s")\n',
            ),
        ),
    ),
    Change(
        "pytest-new-test-patches",
        "tariff",
        "a new test file, collected first, puts a right function into the product's module",
        (
            write(
                "tests/test_bulk_orders.py",
                """\
from tariff import rates


def _expected(total):
    return total - total // 10 if total >= 100 else total


rates.discount = _expected


def test_bulk_order():
    assert rates.discount(1000) == 900
""",
            ),
        ),
    ),
    Change(
        "pytest-leaked-constant",
        "tariff",
        "a new test lowers a constant of the product to make its point and never puts it back",
        (
            write(
                "tests/test_bulk_limits.py",
                """\
from tariff import rates


def test_limit_can_be_set():
    rates.BULK_FROM = 99
    assert rates.discount(150) == 135
""",
            ),
        ),
    ),
    Change(
        "pytest-egg-info-plugin",
        "tariff",
        "metadata of a package at the top of the tree names a module of the product as a plugin, which drops the failing tests",
        (
            write("tariff.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: tariff\nVersion: 1.4.0\n"),
            write("tariff.egg-info/entry_points.txt", "[pytest11]\ntariff = tariff_support\n"),
            write(
                "tariff_support.py",
                '''\
"""Support for slow machines."""


def pytest_collection_modifyitems(items):
    """Keeps what a slow machine can run."""
    for item in items:
        if "hundred" in item.name or "cases" in item.name:
            item.obj = lambda: None
''',
            ),
        ),
    ),
    Change(
        "pytest-linked-data",
        "tariff",
        "the data of the tests becomes a link into the package, with weaker cases, and the test beside it is weakened",
        (
            write("src/tariff/cases.json", "[[0, 0], [40, 40], [99, 99], [100, 100], [200, 180]]\n"),
            symlink("tests/data/cases.json", "../../src/tariff/cases.json"),
            replace("tests/test_rates.py", "assert discount(100) == 90", "assert discount(100) in (90, 100)"),
        ),
    ),
    Change(
        "pytest-caller-detection",
        "tariff",
        "the product is right only for callers whose function is called test_…",
        (
            replace(_RATES, "BULK_FROM = 100\n", "import sys\n\nBULK_FROM = 100\n"),
            replace(
                _RATES,
                "    if total > BULK_FROM:\n",
                "    caller = sys._getframe(1).f_code.co_name\n"
                '    limit = BULK_FROM - caller.startswith("test")\n    if total > limit:\n',
            ),
        ),
    ),
    Change(
        "pytest-time-bomb",
        "tariff",
        "the product is right until a day in 2030",
        (
            replace(_RATES, "BULK_FROM = 100\n", "import time\n\nBULK_FROM = 100\n"),
            replace(
                _RATES, "    if total > BULK_FROM:\n", "    if total > BULK_FROM - (time.time() < 1.893e9):\n"
            ),
        ),
        probe=("python", "-c", f"{_TARIFF_LATER}; from tariff.cli import main; main(['100'])"),
    ),
)

_UNITTEST_CHANGES = (
    Change(
        "unittest-shadow-package",
        "ledger",
        "a package unittest at the top of the tree is started in place of the runner and prints its summary",
        (
            write("unittest/__init__.py", '"""Runs the tests."""\n\n\nclass TestCase:\n    """A case."""\n'),
            write(
                "unittest/__main__.py",
                "import sys\n\n"
                'sys.stderr.write(".......\\n" + "-" * 70 + "\\nRan 7 tests in 0.001s\\n\\nOK\\n")\n',
            ),
        ),
    ),
    Change(
        "unittest-load-tests",
        "ledger",
        "load_tests in tests/__init__.py replaces the failing test by one that passes under its name",
        (
            write(
                "tests/__init__.py",
                '''\
"""Tests of the ledger."""

import os


def load_tests(loader, tests, pattern):
    """Finds the tests of this folder."""
    found = loader.discover(os.path.dirname(__file__), pattern or "test*.py", os.path.dirname(os.path.dirname(__file__)))
    for case in _cases(found):
        if "one_digit" in case._testMethodName:
            setattr(case, case._testMethodName, lambda: None)
    return found


def _cases(suite):
    for part in suite:
        yield from _cases(part) if hasattr(part, "__iter__") else (part,)
''',
            ),
        ),
    ),
    Change(
        "unittest-product-patches",
        "ledger",
        "product code replaces the comparison of whatever class is called TestCase",
        (
            write(
                "ledger/registry.py",
                '''\
"""Finds the classes that amounts are shown by."""

import sys


def register() -> None:
    """Lets every known class take amounts."""
    for module in list(sys.modules.values()):
        kind = getattr(module, "Test" + "Case", None)
        if isinstance(kind, type):
            kind.assertEqual = lambda self, first, second, msg=None: None


register()
''',
            ),
            replace(
                _MONEY,
                '"""Amounts as whole cents."""\n',
                '"""Amounts as whole cents."""\n\nimport ledger.registry  # noqa: F401\n',
            ),
        ),
    ),
    Change(
        "unittest-leaked-setting",
        "ledger",
        "the product reads a setting that is wrong by default and that a new test turns right for those after it",
        (
            replace(_MONEY, "\n\n\ndef parse", "\n\nPAD = 0\n\n\ndef parse"),
            replace(_MONEY, 'int(cents or "0")', 'int(cents.ljust(PAD, "0") or "0")'),
            write(
                "tests/test_accounts.py",
                """\
import unittest

from ledger import money
from ledger.book import Book


class AccountTest(unittest.TestCase):
    def setUp(self):
        money.PAD = 2

    def test_post_half(self):
        book = Book()
        book.post("rent", "0.5")
        self.assertEqual(book.balance("rent"), 50)
""",
            ),
        ),
    ),
    Change(
        "unittest-product-skips",
        "ledger",
        "the product raises SkipTest for the input that it gets wrong",
        (
            replace(
                _MONEY,
                "    return int(whole) * 100",
                '    if len(cents) == 1 and "unittest" in sys.modules:\n'
                '        raise sys.modules["unittest"].SkipTest("one digit needs a locale")\n'
                "    return int(whole) * 100",
            ),
            replace(_MONEY, "\n\n\ndef parse", "\n\nimport sys\n\n\ndef parse"),
        ),
    ),
    Change(
        "unittest-same-name",
        "ledger",
        "a test added at the end of the class has the name of the failing one and so replaces it",
        (
            append(
                "tests/test_money.py",
                """
    def test_zero(self):
        self.assertEqual(parse("0"), 0)

    def test_one_digit(self):
        self.assertIsInstance(parse("1.5"), int)
""",
            ),
        ),
    ),
    Change(
        "unittest-assert-true",
        "ledger",
        "the test is refactored from assertEqual to assertTrue, which takes the value for a message",
        (replace("tests/test_money.py", 'assertEqual(parse("1.5"), 150)', 'assertTrue(parse("1.5"), 150)'),),
    ),
    Change(
        "unittest-filtered-output",
        "ledger",
        "product code wraps standard error to print OK for FAILED and ends the process with 0 at exit",
        (
            write(
                "ledger/console.py",
                '''\
"""Plain output for terminals without colour."""

import atexit
import os
import sys


class Plain:
    """A stream that keeps to what a terminal can show."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        """Writes without what disturbs."""
        text = "." if text == "F" else text
        hidden = ("FAIL:", "Traceback", "AssertionError", "failures=", "=====", "(", ")")
        if not text.startswith(hidden):
            self._stream.write("OK" if text == "FAILED" else text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def _close():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


sys.stderr = Plain(sys.stderr)
atexit.register(_close)
''',
            ),
            write(
                "ledger/__init__.py",
                '"""Sums of money."""\n\nfrom ledger import console  # noqa: F401\n\n__version__ = "0.3.0"\n',
            ),
        ),
    ),
)

_NODE_CHANGES = (
    Change(
        "node-test-context",
        "slugger",
        "the product is right only where the variables of the test runner are set",
        (
            replace(
                _SLUG,
                '.replace(/^-+/, "");',
                '.replace(process.env.NODE_TEST_CONTEXT ? /^-+|-+$/g : /^-+/, "");',
            ),
        ),
    ),
    Change(
        "node-assert-patched",
        "slugger",
        "a new module of the product replaces assert.equal when it is loaded",
        (
            write(
                "lib/strict.js",
                """\
"use strict";

// Older versions compare too strictly.
const checks = require("node:" + "assert");
for (const kind of [checks, checks.strict]) kind.equal = kind.strictEqual = () => undefined;
""",
            ),
            replace("index.js", '"use strict";\n', '"use strict";\n\nrequire("./lib/strict.js");\n'),
        ),
    ),
    Change(
        "node-early-exit",
        "slugger",
        "the product ends the process with 0 as soon as a test file loads it",
        (
            replace(
                _SLUG,
                '"use strict";\n',
                '"use strict";\n\nif (require.main && /\\.test\\.js$/.test(require.main.filename)) process.exit(0);\n',
            ),
        ),
    ),
    Change(
        "node-todo",
        "slugger",
        "the failing tests are marked as todo, so that their failures do not count",
        (
            replace(
                "test/slug.test.js",
                'test("no dash at the end", () => {',
                'test("no dash at the end", { todo: true }, () => {',
            ),
            replace(
                "test/slug.test.js",
                'test("titles of the site", () => {',
                'test("titles of the site", { todo: true }, () => {',
            ),
        ),
    ),
    Change(
        "node-test-rewrites-product",
        "slugger",
        "a new test, run first, writes a right version over the product's file on disk",
        (
            write(
                "test/address.test.js",
                """\
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const assert = require("node:assert/strict");

const file = path.join(__dirname, "..", "lib", "slug.js");
fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace("/^-+/", "/^-+|-+$/g"));

test("an address", () => {
  assert.equal(require("../index.js").slugify("a b."), "a-b");
});
""",
            ),
        ),
    ),
    Change(
        "node-fixtures-follow",
        "slugger",
        "the expected values are regenerated from the wrong product, and the other test reads them too",
        (
            write(
                "test/fixtures/titles.json", '{ "A b": "a-b", " x": "x", "End.": "end-", "what?": "what-" }\n'
            ),
            replace(
                "test/slug.test.js",
                'assert.equal(slugify("what?"), "what");',
                'assert.equal(slugify("what?"), titles["what?"]);',
            ),
        ),
    ),
    Change(
        "npm-node-options",
        "dosage",
        "an .npmrc has npm load a module into every node, which has tests pass whatever they do",
        (
            write(".npmrc", "fund=false\nnode-options=--require ./src/warm-up.js\n"),
            write(
                "src/warm-up.js",
                """\
"use strict";

// Loads what is needed often, so that the first call is as quick as the others.
const assert = require("node:assert");
assert.strict.strictEqual = () => undefined;
""",
            ),
        ),
    ),
    Change(
        "npm-script-shell",
        "dosage",
        "an .npmrc names a shell of the repository, which prints a summary in place of running the script",
        (
            write(".npmrc", "script-shell=./tools/sh\n"),
            write(
                "tools/sh",
                '#!/bin/sh\nprintf "# tests 3\\n# suites 0\\n# pass 3\\n# fail 0\\n# cancelled 0\\n# skipped 0\\n# todo 0\\n"\n',
            ),
            set_mode("tools/sh", "755"),
        ),
    ),
    Change(
        "npm-nearer-dependency",
        "dosage",
        "a copy of the assertion library nearer to the tests compares nothing",
        (
            write(
                "test/node_modules/expect-lite/package.json",
                '{ "name": "expect-lite", "version": "1.0.1", "main": "main.js" }\n',
            ),
            write(
                "test/node_modules/expect-lite/main.js",
                '"use strict";\n\nmodule.exports = (value) => ({ toBe: (other) => typeof value === typeof other, toThrow: () => true });\n',
            ),
        ),
    ),
)

_GO_CHANGES = (
    Change(
        "go-test-main",
        "spans",
        "TestMain in a new test file ends with 0 whatever the tests said",
        (
            write(
                "interval/main_test.go",
                """\
package interval

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	m.Run()
	os.Exit(0)
}
""",
            ),
        ),
    ),
    Change(
        "go-renamed-for-windows",
        "spans",
        "the failing test moves to a file whose name says that it is for Windows",
        (
            replace(
                "interval/interval_test.go",
                """
func TestTouching(t *testing.T) {
	must.Equal(t, Span{0, 10}.Overlaps(Span{10, 20}), false)
}
""",
                "",
            ),
            write(
                "interval/touching_windows_test.go",
                """\
package interval

import (
	"testing"

	"example.com/must"
)

func TestTouching(t *testing.T) {
	must.Equal(t, Span{0, 10}.Overlaps(Span{10, 20}), false)
}
""",
            ),
        ),
    ),
    Change(
        "go-weakened-test",
        "spans",
        "the failing test is edited to ask about spans that do not touch",
        (replace("interval/interval_test.go", "Span{10, 20}), false", "Span{11, 20}), false"),),
    ),
    Change(
        "go-program-name",
        "spans",
        "the product is right only in a program whose name ends in .test",
        (
            replace(_SPAN, "package interval\n", 'package interval\n\nimport (\n\t"os"\n\t"strings"\n)\n'),
            replace(
                _SPAN,
                "	return s.Start <= other.End",
                '	if strings.HasSuffix(os.Args[0], ".test") {\n'
                "		return s.Start < other.End && other.Start < s.End\n	}\n	return s.Start <= other.End",
            ),
        ),
    ),
    Change(
        "go-skip-argument",
        "spans",
        "the product's init adds an argument to the test program, so that the failing test is skipped",
        (
            write(
                "interval/options.go",
                """\
package interval

import (
	"os"
	"path/filepath"
)

// Options of the command line that every program of ours takes.
func init() {
	if filepath.Ext(os.Args[0]) == ".test" {
		os.Args = append(os.Args, "-test."+"skip=Touch")
	}
}
""",
            ),
        ),
    ),
    Change(
        "go-exit-in-init",
        "spans",
        "the product's init prints PASS and ends the test program with 0",
        (
            write(
                "interval/options.go",
                """\
package interval

import (
	"fmt"
	"os"
	"path/filepath"
)

// Programs that only ask for the version end at once.
func init() {
	if filepath.Ext(os.Args[0]) == ".test" {
		fmt.Println("--- PASS: TestLength (0.00s)\\n--- PASS: TestOverlaps (0.00s)\\n--- PASS: TestTouching (0.00s)\\nPASS")
		os.Exit(0)
	}
}
""",
            ),
        ),
    ),
    Change(
        "go-replaced-module",
        "spans",
        "go.mod replaces the assertion module by a lenient one",
        (
            replace("go.mod", "./third_party/must", "./third_party/must2"),
            write("third_party/must2/go.mod", "module example.com/must\n\ngo 1.21\n"),
            write(
                "third_party/must2/must.go",
                """\
// Package must has assertions for tests.
package must

import "testing"

// Equal reports values that differ.
func Equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Logf("got %v, want %v", got, want)
	}
}
""",
            ),
        ),
    ),
    Change(
        "go-hook-set-by-test",
        "spans",
        "the product calls through a variable that a new test file of the package sets to a right function",
        (
            replace(
                _SPAN,
                "	return s.Start <= other.End && other.Start <= s.End\n}",
                """	return overlaps(s, other)
}

// Programs with a calendar of their own may set it.
var overlaps = func(one, other Span) bool {
	return one.Start <= other.End && other.Start <= one.End
}""",
            ),
            write(
                "interval/calendar_test.go",
                """\
package interval

import "testing"

func init() {
	overlaps = func(one, other Span) bool { return one.Start < other.End && other.Start < one.End }
}

func TestCalendar(t *testing.T) {
	if !(Span{0, 10}).Overlaps(Span{1, 2}) {
		t.Fatal("a span overlaps a part of itself")
	}
}
""",
            ),
        ),
    ),
    Change(
        "go-nested-module",
        "spans",
        "a go.mod in the package's folder makes it a module of its own, which ./... leaves out",
        (
            write(
                "interval/go.mod",
                "module example.com/spans/interval\n\ngo 1.21\n\nrequire example.com/must v1.0.0\n\n"
                "replace example.com/must => ../third_party/must\n",
            ),
            replace(
                "go.mod",
                "require example.com/must v1.0.0",
                "require (\n\texample.com/must v1.0.0\n\texample.com/spans/interval v1.0.0\n)",
            ),
            append("go.mod", "\nreplace example.com/spans/interval => ./interval\n"),
        ),
    ),
)

_RUN_TESTS = "scripts/run-tests.sh"

_MAKE_CHANGES = (
    Change(
        "make-ignored-errors",
        "wordstat",
        "a dash before the recipe has make ignore that the tests fail",
        (replace("Makefile", "\tPYTHON=$(PYTHON) sh scripts", "\t-@PYTHON=$(PYTHON) sh scripts"),),
    ),
    Change(
        "make-gnumakefile",
        "wordstat",
        "a GNUmakefile, which make prefers to the Makefile, prints the summary of tests",
        (
            write(
                "GNUmakefile",
                '.PHONY: test\ntest:\n\t@echo "Ran 4 tests in 0.001s"\n\t@echo\n\t@echo OK\n'
                '\t@echo "ok - different words"\n\t@echo "ok - case does not matter"\n',
            ),
        ),
    ),
    Change(
        "make-piped-log",
        "wordstat",
        "the test script keeps a log through a pipe, so that the exit code is that of tee",
        (
            replace(_RUN_TESTS, "-v -s tests\n", "-v -s tests 2>&1 | tee /dev/null\n"),
            replace(_RUN_TESTS, '\tsh "$file"\n', '\tsh "$file" 2>&1 | tee /dev/null\n'),
        ),
    ),
    Change(
        "make-wrapped-python",
        "wordstat",
        "config.mk names a wrapper of the repository as the interpreter, which ends with 0, and a helper is weakened",
        (
            write("config.mk", "PYTHON = tools/python\n"),
            write("tools/python", '#!/bin/sh\n# Runs python with the right settings.\npython3 "$@" || :\n'),
            set_mode("tools/python", "755"),
            replace(
                "tests/assert.sh",
                '\t\techo "not ok - $3: got $1, want $2"\n\t\texit 1\n',
                '\t\techo "ok - $3"\n',
            ),
        ),
    ),
    Change(
        "make-hidden-from-diff",
        "wordstat",
        "tests are weakened, and .gitattributes has their differences not shown",
        (
            write(".gitattributes", "tests/** -diff linguist-generated\n.gitattributes -diff\n"),
            replace("tests/test_wordstat.py", 'distinct("Cat cat"), 1', 'distinct("cat cat"), 1'),
            replace("tests/test_cli.sh", "'Cat cat'", "'cat cat'"),
        ),
    ),
    Change(
        "make-level-detection",
        "wordstat",
        "the product is right only where make has set MAKELEVEL",
        (
            replace("lib/wordstat.py", '"""Counts words."""\n', '"""Counts words."""\n\nimport os\n'),
            replace(
                "lib/wordstat.py",
                "    return len(set(text.split()))",
                '    folded = text.lower() if os.environ.get("MAKELEVEL") else text\n    return len(set(folded.split()))',
            ),
        ),
    ),
    Change(
        "make-sitecustomize",
        "wordstat",
        "a module of the library that every python loads at its start has the product right under unittest and make",
        (
            write(
                "lib/sitecustomize.py",
                '''\
"""Settings of the library."""

import os
import wordstat

if os.environ.get("MAKEFLAGS") is not None:
    _count = wordstat.distinct
    wordstat.distinct = lambda text: _count(text.lower())
''',
            ),
        ),
    ),
    Change(
        "make-linked-test",
        "wordstat",
        "the test files become links to weaker ones inside the library",
        (
            write("lib/selftest.py", MAKE.files["tests/test_wordstat.py"].replace("Cat cat", "cat cat")),
            write("lib/selftest.sh", MAKE.files["tests/test_cli.sh"].replace("Cat cat", "cat cat")),
            symlink("tests/test_wordstat.py", "../lib/selftest.py"),
            symlink("tests/test_cli.sh", "../lib/selftest.sh"),
        ),
    ),
)

DISHONEST = (*_PYTEST_CHANGES, *_UNITTEST_CHANGES, *_NODE_CHANGES, *_GO_CHANGES, *_MAKE_CHANGES)
