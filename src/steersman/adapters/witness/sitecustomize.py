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


def _witness() -> None:
    from steersman_wire import ENDED, taken

    tell = taken()
    if tell is None:
        return
    import unittest

    wire = [tell]

    class Witnessed(unittest.TextTestResult):
        """The result of the outermost run; one that a test makes for itself has nothing to tell."""

        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._told = wire.pop() if wire else lambda *_: None

        def _say(self, test: Any, outcome: str, phase: str = "call", expected: bool = False) -> None:
            self._told("test", "", test.id(), phase, outcome, expected)

        def addSuccess(self, test: Any) -> None:  # noqa: N802
            super().addSuccess(test)
            self._say(test, "passed")

        def addError(self, test: Any, err: Any) -> None:  # noqa: N802
            super().addError(test, err)
            self._say(test, "failed")

        def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
            super().addFailure(test, err)
            self._say(test, "failed")

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
            super().addSubTest(test, subtest, err)
            if err is not None:
                self._say(test, "failed")

        def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
            super().addSkip(test, reason)
            self._say(test, "skipped")

        def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
            super().addExpectedFailure(test, err)
            self._say(test, "skipped", expected=True)

        def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
            super().addUnexpectedSuccess(test)
            self._say(test, "failed")

        def stopTest(self, test: Any) -> None:  # noqa: N802
            super().stopTest(test)
            self._say(test, "passed", "teardown")

        def stopTestRun(self) -> None:  # noqa: N802
            super().stopTestRun()
            self._told(ENDED, 0, 0)

    unittest.TextTestRunner.resultclass = Witnessed


_load_the_other()
if _runs_unittest(_words()):
    _witness()
