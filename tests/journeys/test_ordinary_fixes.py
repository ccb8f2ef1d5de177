"""Ordinary fixes, through whole runs: what was broken before runs now, and nobody is asked; beside each, who hides in it."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from test_injection import InjectedRun, Story
from tests.support.sample_project import PYTEST_CHECK, RIGHT_CODE, WRONG_CODE

SHOP = "def total(prices):\n    return sum(prices)\n"
UNITTESTS = """import unittest

import calc


class Locks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sum = calc.checked(2, 3)

    def test_sum(self):
        \"\"\"locks after 2 failed attempts\"\"\"
        self.assertEqual(self.sum, 5)
        for n in (1, 2):
            with self.subTest(n=n):
                self.assertEqual(calc.add(n, 1), n + 1)
"""
CHECKED = (
    "\n\ndef checked(a, b):\n    if add(a, b) < a:\n        raise ValueError(a, b)\n    return add(a, b)\n"
)
UNITTEST = {
    "calc.py": WRONG_CODE + CHECKED,
    "test_calc.py": UNITTESTS,
    "test_shop.py": "import unittest\n\nimport shop\n\n\nclass Shop(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(shop.total([1, 2]), 3)\n",
}
PYTESTS = {
    "shop.py": "X = 1\n",
    "test_calc.py": "def test_nothing():\n    assert True\n",
    "test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
}
WARNS = (
    "import warnings\n\nREADY = False\n\n\n"
    "def total(prices):\n    warnings.warn('2 failed attempts')\n    return sum(prices)\n"
)
HIDES = (
    "import pytest\n\nfrom shop import READY, total\n\n\n@pytest.mark.skipif(not READY, reason='later')\n"
    "def test_total():\n    assert total([1, 2]) == 3\n\n\ndef test_ready():\n    assert READY in (True, False)\n"
)
GO = {
    "go.mod": "module x\n\ngo 1.18\n",
    "calc.go": "package x\n\nfunc Add(a, b int) int { return a - b }\n",
    "calc_test.go": 'package x\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
    '\tif Add(2, 3) != 5 {\n\t\tt.Fatal("no")\n\t}\n}\n',
    "shop/shop.go": "package shop\n\nconst Rate = rate\n",
    "shop/shop_test.go": 'package shop\n\nimport "testing"\n\nfunc TestRate(t *testing.T) {\n'
    "\tif Rate != 3 {\n\t\tt.Fatal(Rate)\n\t}\n}\n",
}
UNBOXED = '[sandbox]\nmode = "off"\n'  # in a box go builds its whole library anew
RATE = {"shop/shop.go": "package shop\n\nconst Rate = 3\n"}
STORIES = {
    "unittest": Story(
        "approved", UNITTEST, {"calc.py": RIGHT_CODE + CHECKED, "shop.py": SHOP},
        checks={"unit": ["python3", "-m", "unittest", "-v"]},
    ),
    "pytest, and a test hides": Story(
        "gate evidence", {**PYTESTS, "test_shop.py": HIDES}, {"shop.py": WARNS},
        checks={"unit": PYTEST_CHECK}, holds="test_shop.py::test_total",
    ),
}  # fmt: skip
if shutil.which("go"):
    CHECK = {"unit": ["go", "test", "./..."]}
    right = GO["calc.go"].replace("-", "+")
    STORIES["go"] = Story("approved", GO, {"calc.go": right, **RATE}, checks=CHECK, more=UNBOXED)


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")


@pytest.mark.parametrize("told", STORIES.values(), ids=STORIES)
def test_an_ordinary_fix_is_approved_and_what_hides_in_one_is_not(told: Story, tmp_path: Path) -> None:
    """Tests that could not even be loaded before run now: no gate, unless one of them is skipped or never ran."""
    injected = InjectedRun(tmp_path, told)
    ended = injected.run()
    live = injected.bridge.live(injected.name)
    context = live.snapshot.context
    refs = (context.questions_ref, context.infrastructure_ref, context.results_ref)
    assert ended == told.ends, "\n".join(live.payloads.get(ref) for ref in refs)
    assert told.holds in live.payloads.get(context.questions_ref)
