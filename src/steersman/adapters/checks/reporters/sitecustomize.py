"""Python loads this file when it starts: in a process that runs `unittest`, it reports each test with unittest's result.

It hides a `sitecustomize` that is further down the path, and loads it. In every other process it does only that.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _load_other_sitecustomize() -> None:
    reporter_dir = os.path.dirname(__file__)
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if path != reporter_dir])
    if spec is not None and spec.loader is not None:
        module = sys.modules["sitecustomize"] = module_from_spec(spec)
        spec.loader.exec_module(module)


def _read_process_argv() -> list[str]:
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


# Maps unittest result methods to outcomes: phase, outcome, whether it was expected. Of a subtest only a failure counts.
_UNITTEST_OUTCOMES = {
    "addSuccess": ("call", "passed", False),
    "addError": ("call", "failed", False),
    "addFailure": ("call", "failed", False),
    "addSubTest": ("call", "failed", False),
    "addSkip": ("call", "skipped", False),
    "addExpectedFailure": ("call", "skipped", True),
    "addUnexpectedSuccess": ("call", "failed", False),
    "stopTest": ("teardown", "passed", False),
}


def _report_unittest() -> None:
    from steersman_integrity import RunnerWatch, list_loaded_modules
    from steersman_wire import ENDED_EVENT, open_reporter_socket

    send_event = open_reporter_socket()
    if send_event is None:
        return
    import unittest

    outermost_results: list[Any] = []  # a result that a test makes for itself has nothing to tell
    last_file: list[str] = []  # the file of the test that was reported last
    watches: list[RunnerWatch] = []

    class ReportingResult(unittest.TextTestResult):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            outermost_results.append(self)

    def make_reporting_method(name: str) -> Any:
        original = getattr(unittest.TextTestResult, name)

        def method(self: Any, *args: Any) -> None:
            original(self, *args)
            if self is not outermost_results[0]:
                return
            if name == "stopTestRun":
                send_event("loaded", list_loaded_modules())
                send_event("replaced", watches[0].replaced())
                send_event(ENDED_EVENT, 0, 0)
                return
            if name == "stopTest":
                watches[0].look()
            example = getattr(getattr(args[0], "_dt_test", None), "filename", None)
            module = sys.modules.get(type(args[0]).__module__)
            file = example or getattr(module, "__file__", None)
            if file and last_file != [file]:
                last_file[:] = [file]
                real_path = os.path.realpath(file)
                send_event("from", "", [] if example else [real_path])
                if example:
                    send_event("example", real_path)
            if name != "addSubTest" or args[2] is not None:
                send_event("test", "", args[0].id(), *_UNITTEST_OUTCOMES[name])

        return method

    for name in (*_UNITTEST_OUTCOMES, "stopTestRun"):
        setattr(ReportingResult, name, make_reporting_method(name))
    unittest.TextTestRunner.resultclass = ReportingResult
    watches.append(RunnerWatch())


_load_other_sitecustomize()
if _runs_unittest(_read_process_argv()) or _calls_unittest(_read_process_argv()):
    _report_unittest()
elif os.path.exists(os.path.join(os.path.dirname(__file__), "steersman_witness.py")) and _starts_pytest(
    _read_process_argv()
):
    os.environ["PYTEST_ADDOPTS"] = f"-p steersman_witness {os.environ.get('PYTEST_ADDOPTS', '')}".strip()
