"""Watches a Python test runner from inside: which of its functions are replaced, and where modules came from.

**Invariant:** nothing here changes the runner; what it finds is reported when a test or the run is over.
"""

from __future__ import annotations

import builtins
import os
import sys
from types import FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# The parts of the runners that call tests, compare values and make reports.
_RUNNER_MODULES = ("unittest", "pytest", "_pytest.runner", "_pytest.python", "_pytest.python_api", "_pytest.raises", "_pytest.outcomes", "_pytest.assertion", "_pytest.reports")  # fmt: skip
_WATCHED_BUILTINS = (
    "AssertionError BaseException Exception abs all any bool dict float int isinstance issubclass len list max min repr "
    "round set sorted str sum tuple type"
)
_REPORTER_DIRECTORY = os.path.dirname(os.path.realpath(__file__))
_WATCHED_TYPES = (FunctionType, type, staticmethod, classmethod, property)


class RunnerWatch:
    """Remembers the functions of the runner as they are now."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._entries = list(_list_runner_entries())
        self._classes = [(label, vars(value), set(vars(value))) for label, _, _, value, _ in self._entries if isinstance(value, type) and label.startswith("unittest.case")]  # fmt: skip

    def look(self) -> None:
        """Notes what is not as it was."""
        for label, space, key, value, code in self._entries:
            current = space.get(key)
            if current is not value or (code is not None and getattr(current, "__code__", None) is not code):
                self._found[label] = None
        for label, space, keys in self._classes:
            new = [key for key in space if key not in keys and isinstance(space[key], FunctionType)]
            self._found.update(dict.fromkeys(f"{label}.{key}" for key in new))

    def replaced(self) -> list[str]:
        """Everything that was found replaced at any check."""
        self.look()
        return list(self._found)


def _list_runner_entries() -> Iterator[tuple[str, Mapping[str, Any], str, Any, Any]]:
    """Each function and class with its name, where it is kept, under which key, and its code."""
    for key in _WATCHED_BUILTINS.split():
        yield f"builtins.{key}", vars(builtins), key, vars(builtins)[key], None
    for name, module in list(sys.modules.items()):
        if not f"{name}.".startswith(tuple(f"{runner}." for runner in _RUNNER_MODULES)):
            continue
        for key, value in list(vars(module).items()):
            spaces: list[tuple[str, Mapping[str, Any], str, Any]] = [
                (f"{name}.{key}", vars(module), key, value)
            ]
            if isinstance(value, type) and value.__module__ == name:
                spaces += [(f"{name}.{key}.{k}", vars(value), k, v) for k, v in list(vars(value).items())]
            for label, space, inner, candidate in spaces:
                if isinstance(candidate, _WATCHED_TYPES):
                    yield label, space, inner, candidate, getattr(candidate, "__code__", None)


def list_loaded_modules() -> dict[str, str]:
    """Modules by name with their files; nothing for a file of the standard library. Only the first of a package."""
    library = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
    files: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        parent = sys.modules.get(name.rpartition(".")[0])
        if "." in name and getattr(parent, "__file__", None):
            continue
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and name != "__main__":
            real_path = os.path.realpath(path)
            if os.path.dirname(real_path) == _REPORTER_DIRECTORY:
                continue
            is_stdlib = real_path.startswith(library) and "-packages" not in real_path
            files[name] = "" if is_stdlib else real_path
    return files
