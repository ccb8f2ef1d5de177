"""Who uses a file, by imports and by names; what tests hold."""

import pytest

from steersman.contracts.workspace import Text
from steersman.judges.suites import holds_none, holds_tests, nearest, uses

USED = [
    ("a/test_x.py", "from helpers import same", "helpers.py", True),
    ("a/test_x.py", "import os, helpers as h", "helpers.py", True),
    ("a/b/test_x.py", "import helpers", "a/helpers.py", True),
    ("a/test_x.py", "import helpers", "src/helpers.py", True),
    ("a/test_x.py", "import helpers", "other/helpers.py", False),
    ("a/test_x.py", "import b.helpers", "a/helpers.py", False),
    ("a/test_x.py", "import helpers", "helpers.js", False),
    ("a/test_x.py", "from support import (\n    one,\n    helpers,\n)", "support/helpers.py", True),
    ("a/test_x.py", "from support import x", "support/__init__.py", True),
    ("a/test_x.py", "from . import helpers", "a/helpers.py", True),
    ("a/test_x.py", "from .. import helpers", "helpers.py", True),
    ("test_x.py", "from .helpers import x", "helpers.py", True),
    ("a/test_x.py", "from .helpers import x", "helpers.py", False),
    ("a/test_x.py", "open('expected.json')", "data/expected.json", True),
    ("a/test_x.py", "open('more/expected.json')", "data/expected.json", False),
    ("a/test_x.py", "open('expected.json')", "tests/data/expected.json", False),
    ("a/test_x.py", "open('tests/data/expected.json')", "tests/data/expected.json", True),
    ("a/test_x.js", "require('../same')", "same.js", True),
    ("a/test_x.js", "require('./same')", "same.js", False),
    ("a/test_x.js", "import same from '../same'", "same/index.ts", True),
    ("a/test_x.js", "import same from '@/same'", "src/same.ts", True),
    ("a/test_x.js", "import same from '@/same'", "other/same.ts", False),
    ("a/test_x.js", "import same from '@/near/same'", "src/same.ts", False),
    ("a/main.go", 'import "example.org/x/spec"', "spec/a.go", True),
    ("a/main.go", 'import "example.org/x/spec"', "other/spec/a.go", False),
    ("a/main.py", 'open("data/")', "data/prices.json", True),
    ("a/main.py", 'open("data/")', "data/expected.json", False),
    ("helpers.py", "import helpers", "helpers.py", False),
]


@pytest.mark.parametrize(("speaker", "text", "path", "meant"), USED)
def test_who_uses_a_file(speaker, text, path, meant):
    """An import is followed from the places it may begin from; a quoted path from its speaker, the top, or its end."""
    assert uses({speaker: Text(speaker, text)}, [path], folders=True) == ({path: speaker} if meant else {})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "class A(unittest.TestCase):\n    pass\n"),
        ("a.py", "def test_a():\n    x = 1\n\n    assert x\n"),
        ("a.js", "it.only('adds', () => {})"),
        ("A.kt", "class A : StringSpec({ })"),
        ("A.groovy", "class A extends Specification {}"),
        ("a.rb", "Given(/two/) do\nend"),
        ("a.cs", "    [Fact]\n    public void A() {}"),
        ("a.php", "class A extends TestCase {}"),
        ("a.exs", "  use ExUnit.Case"),
        ("a.swift", "class A: XCTestCase {}"),
        ("a.cc", "TEST(Calc, Adds) {}"),
        ("a.pl", "use Test::More;"),
        ("a.lua", "describe('add', f)"),
        ("a.dart", "import 'package:test/test.dart';"),
        ("a.hs", "import Test.Hspec"),
        ("a.clj", "(deftest adds)"),
    ],
)
def test_tests_are_known_by_what_they_say(path, text):
    """In each language there are words that only tests have."""
    assert holds_tests(path, text)
    assert not holds_tests("a.txt", text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "def test_client():\n    return 1\n"),
        ("a.js", "const it = (x) => x;\nit(1)"),
        ("a.rb", "def describe\nend"),
    ],
)
def test_a_product_with_such_words_is_none(path, text):
    """A function that is called like a test and checks nothing is the product's."""
    assert not holds_tests(path, text)


def test_a_program_without_any_word_of_a_test():
    """Only of Python, and only where there is something to read."""
    assert holds_none("test_a.py", "X = 1")
    assert not any(holds_none(*a) for a in (("test_a.py", ""), ("test_a.js", "x"), ("a.py", "assert x")))


def test_the_nearest_are_read_first():
    """Those beside what was changed, then those below the same top."""
    assert nearest(["z/t.py", "a/x/t.py", "a/b/t.py"], ["a/b/c.py"]) == ["a/b/t.py", "a/x/t.py", "z/t.py"]
