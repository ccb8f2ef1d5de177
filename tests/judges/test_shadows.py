"""New modules in front of others."""

import sys

import pytest

from steersman.contracts.workspace import Touched
from steersman.judges.infrastructure import MODULES, changes_test_infrastructure
from steersman.judges.shadows import stand_ins

BASE = (
    "calc.py",
    "src/shop/__init__.py",
    "src/shop/cart.py",
    "tests/test_calc.py",
    "tools/go.py",
    "deep/a/b.py",
    "notes/x.md",
)


def found(*paths, base=BASE, gone=()):
    touched = [Touched(p, "", "b2") for p in paths] + [Touched(p, "a1", "") for p in gone]
    return stand_ins(touched, base, ["tools/go.py"])


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("tests/calc.py", "it stands in for calc.py"),
        ("tests/calc/__init__.py", "it stands in for calc.py"),
        ("src/calc.py", "it stands in for calc.py"),
        ("shop.py", "it stands in for src/shop/__init__.py"),
        ("fakes/calc.py", "it stands in for calc.py"),
        ("tools/calc.py", "it stands in for calc.py"),
        ("tools/json.py", "it stands in for a module that a check's script imports"),
    ],
)
def test_a_new_module_in_front_of_another(path, why):
    """At the top, beside tests, beside a check's script, in a folder of its own: found first, it hides the other."""
    assert found(path) == {path: why}


@pytest.mark.parametrize(
    "path",
    ["more.py", "deep/calc.py", "src/shop/calc.py", "tests/test_more.py", "calc.js", "tools/helper.py"],
)
def test_an_ordinary_new_module(path):
    """A new name, a place that nothing is imported from, or another language hides nothing."""
    assert found(path) == {}


def test_what_is_moved_hides_nothing():
    """The module that was there before is gone with the same change."""
    assert found("src/calc.py", gone=("calc.py",)) == {}


@pytest.mark.parametrize(
    "path",
    [*(f"{name}.py" for name in sorted(sys.stdlib_module_names)), "pygments.py", "py.py", "exceptiongroup/__init__.py",
     "tomli.py", "colorama.py", "attr/__init__.py", "attrs/__init__.py", "typing_extensions.py", "anyio.py",
     "pytest_asyncio.py", "src/pytest_x/__init__.py", "_pytest/x.py", "unittest/case.py", "src/pluggy/_hooks.py",
     "tests/_pytest/deep/er.py", "json/decoder.py", "lib/hypothesis/core.py"],
)  # fmt: skip
def test_names_that_a_runner_imports(path):
    """Every module of the standard library, what pytest and its plugins import, and files below such a package."""
    assert changes_test_infrastructure(path) == "it stands in for a module that the test run imports"


def test_the_list_does_not_depend_on_the_interpreter_alone():
    """What another version of Python had is hidden as well."""
    assert {"distutils", "imp", "asyncore"} <= MODULES
