"""A machine is known by its package alone: outside its folder no code names it, and none asks which machine a run is."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "steersman"
NAMES = {"roundtable", "coordinator", "task"}
UNAMBIGUOUS_NAMES = NAMES - {"task"}  # `task` is also a word for what a person wants
# The modules that may name a machine, and why.
EXCEPTIONS = {
    "contracts/machine_names.py": "the machines that commands of their own start",
    "adapters/installed_machines.py": "the list of the built-in machines",
    "contracts/config.py": "a setting of `task` has the value roundtable",
    "judges/planning/plan_inputs.py": "a field of the frozen plan's document",
    "views/planning/markdown.py": "the same field, shown",
    "adapters/storage/registry_files.py": "the folder of the built-in registry",
}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    paths = (
        path
        for path in SOURCE.rglob("*.py")
        if not {"machines", "testing"} & set(path.relative_to(SOURCE).parts)
    )
    return {str(p.relative_to(SOURCE)): ast.parse(p.read_text(encoding="utf-8")) for p in paths}


def test_no_module_outside_a_machine_names_it(trees: dict[str, ast.Module]):
    """The name of a built-in machine is no string anywhere else, but for a few places that say why."""
    naming = {
        name
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in UNAMBIGUOUS_NAMES
    }
    assert naming == EXCEPTIONS.keys()


def test_no_module_outside_a_machine_asks_which_one_it_is(trees: dict[str, ast.Module]):
    """Nothing compares with a machine's name, and no constant holds one but those of `contracts/machine_names.py`."""
    asking = {
        f"{name}:{node.lineno}"
        for name, tree in trees.items()
        if name not in EXCEPTIONS
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and _mentions_machine(node) and _compared_strings(node) & NAMES
    }
    assert asking == set()


def _mentions_machine(node: ast.AST) -> bool:
    return "machine" in ast.unparse(node).lower()


def _compared_strings(node: ast.AST) -> set[object]:
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}


def test_no_module_outside_a_machine_reads_its_context_by_name(trees: dict[str, ast.Module]):
    """A context is read as a whole, or by `runtime_field` for the few fields that every machine shares."""
    readers = {
        f"{name}:{node.lineno}"
        for name, tree in trees.items()
        if not name.startswith("kernel/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Subscript)
        and ast.unparse(node.value).endswith(("snapshot.context", "context_fields(snapshot.context)"))
    }
    assert readers == set()
