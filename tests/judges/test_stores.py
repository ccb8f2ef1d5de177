"""Tests that leave the product changed, and tests that do not."""

import pytest

from steersman.contracts.workspace import Text
from steersman.judges.stores import go_stores, reopened, script_stores

CALC = "const calc = require('../calc');\n"
SCRIPTS = [
    CALC + "before(() => {\n  calc.add = (a, b) => a + b;\n});",
    CALC + "before(() => { saved = calc.add; calc.add = f; });\nafter(() => { calc.add = saved; });",
    CALC + "describe('x', () => {\n  it('y', () => {\n    calc.add = f;\n  });\n});",
    CALC + "calc.PRICES.apple = 5;",
    CALC + "calc['add'] ||= f;",
    CALC + "Object.assign(calc, { add });",
    CALC + "delete calc.add;",
    CALC + "beforeEach(() => { sinon.stub(calc, 'add').returns(5); });\nafterEach(() => sinon.restore());",
    CALC + "describe('x', () => { it('y', () => { sinon.stub(calc, 'add').returns(5); }); });",
    "require('../calc').add = (a, b) => a + b;",
    "import { vi } from 'vitest';\nrequire('../calc').add = f;",
    "const { PRICES: prices } = require('../calc');\nprices.apple = 5;",
    "import calc, { PRICES } from '../calc.js';\nit('x', () => { PRICES.apple = 5; });",
    "import * as calc from '../calc.js';\n  calc.x.y = 5;",
    "import fs from 'fs';\nfs.readFileSync = f;",
]  # fmt: skip
ORDINARY_SCRIPTS = [
    CALC + "describe('x', () => {\n  let saved;\n  before(() => { saved = calc.add; calc.add = f; });\n  after(() => { calc.add = saved; });\n});",
    CALC + "it('x', () => {\n  const saved = calc.add;\n  try { calc.add = f; } finally { calc.add = saved; }\n});",
    CALC + "describe('x', () => {\n  afterEach(() => sinon.restore());\n  it('y', () => { sinon.stub(calc, 'add'); });\n});",
    CALC + "it('x', () => { calc.add = jest.fn(); jest.spyOn(calc, 'add'); assert(calc.add == 1); });",
    CALC + "const c = new calc.Calc();\nc.x = 1;\nconst f = (calc) => calc.x;",
    "import { vi } from 'vitest';\nimport config from '../config';\nbeforeEach(() => { config.rate = 5; });",
    "jest.mock('../api');\n" + CALC + "beforeEach(() => { calc.rate = 5; });",
    "import axios from 'axios';\nit('x', () => { axios.defaults.timeout = 1; });\naxios.get = jest.fn();",
    "it('x', () => { global.rate = 5; });",
]  # fmt: skip
HEAD = 'package x\n\nimport (\n\t"testing"\n\t"a/b/calc"\n\tc2 "a/b/other"\n\t"os"\n)\n\n'  # fmt: skip
GO = [
    "func TestA(t *testing.T) {\n\trate = 5\n}",
    "func TestA(t *testing.T) { rate = 5 }",
    "var _ = func() int { rate = 5; return 0 }()",
    "func setUp() {\n\told := rate\n\trate += 5\n\t_ = old\n}",
    'func TestA(t *testing.T) {\n\ttable["a"] = 5\n}',
    "func TestA(t *testing.T) {\n\tlimit, err = 5, nil\n}",
    "func TestA(t *testing.T) {\n\thits++\n}",
    "func TestA(t *testing.T) {\n\tcalc.Rate = 5\n}",
    "func TestA(t *testing.T) {\n\tc2.Rate = 5\n}",
    'func TestA(t *testing.T) {\n\tt.Run("rate", func(t *testing.T) {\n\t\trate = 5\n\t})\n}',
    "rate = 5",
]  # fmt: skip
ORDINARY_GO = [
    "func TestA(t *testing.T) {\n\told := rate\n\tdefer func() { rate = old }()\n\trate = 5\n}",
    "func TestA(t *testing.T) {\n\told := calc.Rate\n\tt.Cleanup(func() {\n\t\tcalc.Rate = old\n\t})\n\tcalc.Rate = 5\n}",
    "func with(v int) func() {\n\told := rate\n\trate = v\n\treturn func() { rate = old }\n}",
    "func TestA(t *testing.T) {\n\trate := 4\n\trate = 5\n}",
    "func TestA(t *testing.T) {\n\tvar rate int\n\trate = 5\n}",
    "func set(rate int) {\n\trate = 5\n}",
    "func TestA(t *testing.T) {\n\tcalc := calc.New()\n\tcalc.Rate = 5\n}",
    'func TestA(t *testing.T) {\n\tos.Args = []string{"x"}\n\tif rate == 5 || rate <= 6 {\n\t}\n\tx := Config{rate: 5}\n\tother = 1\n}',
]  # fmt: skip
PACKAGE = {
    "p/calc.go": "package x\n\nvar rate = 3\n\nvar (\n\ttable = map[string]int{}\n\tlimit, err int\n\t_ = 1\n)\n\nvar hits int\n",
    "p/more_test.go": "package x\n\nvar other = 1\n",
    "q/calc.go": "package x\n\nvar other = 1\n",
}


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_script_that_changes_what_it_imports_is_told(text):
    """Mocha runs every file in one process: what one leaves there, the others find."""
    assert [what for _, what in script_stores(text)] == ["changes it for everybody"] * len(
        script_stores(text)
    )
    assert script_stores(text)


@pytest.mark.parametrize("text", ORDINARY_SCRIPTS)
def test_stubs_and_what_is_put_back_are_ordinary(text):
    """Also where the runner loads the product again for each file."""
    assert script_stores(text) == []


def in_go(text):
    texts = {path: Text(path, content) for path, content in PACKAGE.items()}
    return go_stores("p/new_test.go", HEAD + text, texts)


@pytest.mark.parametrize("text", GO)
def test_a_test_of_go_that_sets_its_package_is_told(text):
    """The package's variables are known from its other files; another package's by their capital letter."""
    assert len(in_go(text)) == 1
    assert in_go(text)[0][1].endswith("for everybody")


@pytest.mark.parametrize("text", ORDINARY_GO)
def test_a_test_of_go_that_puts_back_is_ordinary(text):
    """A deferred restore, a name of the test's own, fields."""
    assert in_go(text) == []


def test_without_imports_and_other_files_nothing_is_known():
    """A test alone changes nobody."""
    assert go_stores("new_test.go", "package x\n\nfunc TestA() {\n\trate = 5\n}\n", {}) == []


BASE = frozenset({"lib/shop/line_item.rb", "lib/shop.rb", "test/fake.rb", "lib/shop/calc.ex"})


@pytest.mark.parametrize(
    ("language", "text", "what"),
    [
        ("ruby", "class LineItem\n  def total = 5\nend", ["opens LineItem again"]),
        ("ruby", "class Shop::LineItem; def total = 5; end", ["opens LineItem again"]),
        ("ruby", "module Shop\n\n  class LineItem\n    prepend Mine\n  end\nend", ["opens LineItem again"]),
        ("ruby", "module Shop\n  class LineItemTest < Minitest::Test\n    def test_x = 1\n  end\nend", []),
        ("ruby", "class Fake\n  def x = 1\nend\nclass LineItemTest\n  def x = 1\nend", []),
        ("beam", "defmodule Shop.Calc do\n  def add(a, b), do: 5\nend", ["opens Calc again"]),
        ("beam", "defmodule Shop.CalcTest do\n  use ExUnit.Case\nend", []),
    ],
)
def test_a_class_of_the_product_that_is_opened_again(language, text, what):
    """Known by the file that has its name; a namespace around tests is ordinary."""
    assert [told for _, told in reopened(language, text, BASE)] == what
