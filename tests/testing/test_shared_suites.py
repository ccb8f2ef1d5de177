"""The conformance suites leave out nothing of their ports."""

import ast
import inspect
from pathlib import Path

import pytest

from steersman import testing
from steersman.ports.artifacts import Artifacts
from steersman.ports.chat import Chats
from steersman.ports.journal import Journal
from steersman.ports.memory import Memories
from steersman.ports.workspace import Workspace

HERE = Path(testing.__file__).parent
SUITES = {
    Workspace: ("workspace", "conformance_workspace", "conformance_workspace_moved"),
    Artifacts: ("artifacts", "conformance_artifacts"),
    Journal: ("journal", "conformance_journal", "conformance_journal_lists"),
    Memories: ("memories", "conformance_memory"),
    Chats: ("chats", "conformance_chat"),
}


def called(module: str, name: str) -> set[str]:
    """The methods that a suite calls on its adapter, which it calls by this name."""
    tree = ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8"))
    return {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (getattr(node.func.value, "id", "") == name or getattr(node.func.value, "attr", "") == name)
    }


@pytest.mark.parametrize("port", SUITES, ids=lambda port: port.__name__)
def test_every_method_of_a_port_is_tried(port):
    """What a port promises is asked of each of its adapters by the suite that they share."""
    name, *modules = SUITES[port]
    methods = {n for n, f in vars(port).items() if inspect.isfunction(f) and not n.startswith("_")}
    assert methods
    assert methods <= set().union(*(called(module, name) for module in modules))
