"""Code of the project that was loaded from outside the tree."""

import pytest

from steersman.adapters.checks.runner_reports import add_module_origins, find_linked_packages
from steersman.contracts.commands import RunnerReport


@pytest.fixture
def tree(tmp_path):
    for name in (
        "src/shop/__init__.py",
        "calc.py",
        "packages/a/lib/deep/__init__.py",
        "node_modules/x/hidden.py",
    ):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).touch()
    return tmp_path / "tree"


def test_a_module_of_the_tree_that_came_from_elsewhere_is_named(tree):
    """By its name where imports begin; of a larger repository where it is no plain dependency."""
    modules = {
        "shop": "/other/src/shop/__init__.py", "calc": "/env/site-packages/calc.py",
        "deep": "/other/deep/__init__.py", "hidden": "/other/hidden.py", "far": "/env/site-packages/far.py",
        "here": "here.py", "dep": ".venv/lib/site-packages/dep.py", "random": "",
    }  # fmt: skip
    found = add_module_origins(RunnerReport(form="pytest", modules=modules), str(tree))
    assert found.outside == (
        "calc was loaded from /env/site-packages/calc.py",
        "deep was loaded from /other/deep/__init__.py",
        "shop was loaded from /other/src/shop/__init__.py",
    )
    assert {n: p for n, p in found.modules.items() if p} == {"here": "here.py"}


def test_a_package_that_is_linked_from_elsewhere_is_named(tree, tmp_path):
    """Links inside the tree, such as those of a workspace, are fine."""
    (tmp_path / "elsewhere").mkdir()
    (tree / "node_modules" / "inside").symlink_to(tree / "packages")
    (tree / "node_modules" / "linked").symlink_to(tmp_path / "elsewhere")
    (tree / "node_modules" / "@scope").mkdir()
    (tree / "node_modules" / "@scope" / "more").symlink_to(tmp_path / "elsewhere")
    assert find_linked_packages(str(tree)) == (
        f"@scope/more was loaded from {tmp_path}/elsewhere",
        f"linked was loaded from {tmp_path}/elsewhere",
    )
    assert find_linked_packages(str(tmp_path / "elsewhere")) == ()
