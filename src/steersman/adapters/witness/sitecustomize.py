"""Loaded when an interpreter starts: where it is to run `unittest`, each test is told as unittest tells it to itself.

It stands before a `sitecustomize` that was there already, and loads it. In every other process it does only that.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _load_the_other() -> None:
    here = os.path.dirname(__file__)
    found = PathFinder.find_spec("sitecustomize", [path for path in sys.path if path != here])
    if found is not None and found.loader is not None:
        other = sys.modules["sitecustomize"] = module_from_spec(found)
        found.loader.exec_module(other)


def _words() -> list[str]:
    if hasattr(sys, "orig_argv"):  # since Python 3.10
        return list(sys.orig_argv)
    try:
        with open("/proc/self/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")[:-1]
    except OSError:
        return []


def _runs_unittest(words: list[str]) -> bool:
    """Whether this interpreter itself, or `coverage` in it, is to run the module; a launcher of one is not."""
    while len(words) > 1 and words[1].startswith("-") and words[1] != "-m":
        del words[1 : 3 if words[1] in ("-X", "-W") else 2]
    if len(words) > 1 and os.path.basename(words[1]) == "coverage":
        return "-m" in words and words[words.index("-m") + 1 :][:1] == ["unittest"]
    return words[1:3] == ["-m", "unittest"]


def _starts_pytest(words: list[str]) -> bool:
    return words[1:3] == ["-m", "pytest"] or os.path.basename("".join(words[1:2])) in ("pytest", "py.test")


def _calls_unittest(words: list[str]) -> bool:
    """Whether this is a script that runs its own tests."""
    if len(words) < 2 or not words[1].endswith(".py"):
        return False
    try:
        with open(words[1], encoding="utf-8", errors="replace") as file:
            return "unittest.main" in file.read(1 << 20)
    except OSError:
        return False


# What unittest calls its result with, as an outcome in a phase; of a part of a test only its failure counts.
_OUTCOMES = {
    "addSuccess": ("call", "passed", False),
    "addError": ("call", "failed", False),
    "addFailure": ("call", "failed", False),
    "addSubTest": ("call", "failed", False),
    "addSkip": ("call", "skipped", False),
    "addExpectedFailure": ("call", "skipped", True),
    "addUnexpectedSuccess": ("call", "failed", False),
    "stopTest": ("teardown", "passed", False),
}


def _witness() -> None:
    from steersman_integrity import RunnerWatch, loaded_modules
    from steersman_wire import ENDED, taken

    tell = taken()
    if tell is None:
        return
    import unittest

    outermost: list[Any] = []  # a result that a test makes for itself has nothing to tell
    held: list[str] = []  # the file of the test that was told last
    watch: list[RunnerWatch] = []

    class Witnessed(unittest.TextTestResult):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            outermost.append(self)

    def telling(name: str) -> Any:
        plain = getattr(unittest.TextTestResult, name)

        def method(self: Any, *given: Any) -> None:
            plain(self, *given)
            if self is not outermost[0]:
                return
            if name == "stopTestRun":
                tell("loaded", loaded_modules())
                tell("replaced", watch[0].replaced())
                tell(ENDED, 0, 0)
                return
            if name == "stopTest":
                watch[0].look()
            example = getattr(getattr(given[0], "_dt_test", None), "filename", None)
            module = sys.modules.get(type(given[0]).__module__)
            file = example or getattr(module, "__file__", None)
            if file and held != [file]:
                held[:] = [file]
                told = os.path.realpath(file)
                tell("from", "", [] if example else [told])
                if example:
                    tell("example", told)
            if name != "addSubTest" or given[2] is not None:
                tell("test", "", given[0].id(), *_OUTCOMES[name])

        return method

    for name in (*_OUTCOMES, "stopTestRun"):
        setattr(Witnessed, name, telling(name))
    unittest.TextTestRunner.resultclass = Witnessed
    watch.append(RunnerWatch())


_load_the_other()
if _runs_unittest(_words()) or _calls_unittest(_words()):
    _witness()
elif os.path.exists(os.path.join(os.path.dirname(__file__), "steersman_witness.py")) and _starts_pytest(
    _words()
):
    os.environ["PYTEST_ADDOPTS"] = f"-p steersman_witness {os.environ.get('PYTEST_ADDOPTS', '')}".strip()
