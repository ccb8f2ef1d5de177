"""Reads what the test reporter inside pytest or unittest has sent, event by event.

Each event is a line: the word of this execution, a running number, and the event. The sender is a process that ran
hostile code, so one line out of order, or after the end, makes the whole report worthless.
**Invariant:** pure. A report without its end counts for nothing.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import RunnerReport
from steersman.judges.evidence.runner_reports import (
    MAX_KEPT_TEST_NAMES,
    MAX_REPORT_BYTES,
    MAX_REPORT_CASES,
    MAX_TEST_NAME_CHARACTERS,
    UnreadableReport,
    build_runner_report,
    find_path_in_tree,
    list_tests_by_tree_file,
    strip_tree_paths,
)
from steersman.judges.text import clip_text

# A name that unittest gives to what holds tests, when it could not be loaded or set up.
_UNITTEST_COLLECTION = re.compile(
    r"unittest\.loader\._FailedTest\.(.+)|(?:setUp|tearDown)(?:Class|Module) \((.+)\)"
)


def find_failed_collection(name: str) -> str:
    """The module or class that unittest speaks of under a name of its own; nothing for a test."""
    match = _UNITTEST_COLLECTION.fullmatch(name)
    return (match[1] or match[2]) if match else ""


def read_reporter_events(
    form: Literal["pytest", "unittest"], data: bytes, word: str, trees: Sequence[str] = ()
) -> RunnerReport | UnreadableReport:
    """The report from the events of a test reporter, or why there is none."""
    if not data:
        return UnreadableReport(
            "it told nothing: it never came to its tests, or could not load steersman's witness"
        )
    if len(data) > MAX_REPORT_BYTES:
        return UnreadableReport(f"what it told is longer than {MAX_REPORT_BYTES} bytes")
    session = _ReporterSession()
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if session.ended or not session.take(
            _decode_reporter_event(line, f"{word} {number} ".encode("ascii"))
        ):
            return UnreadableReport("something else than the runner spoke on its wire")
    if rest or not session.ended:
        return UnreadableReport("it ended before its tests had come to their end")
    return session.report(form, trees)


def _decode_reporter_event(line: bytes, head: bytes) -> object:
    try:
        return json.loads(line[len(head) :]) if line.startswith(head) else None
    except (ValueError, RecursionError):
        return None


def _classify_pytest_node(name: str) -> Literal["test", "example", "lint"]:
    """What a pytest node is: `calc.py::calc.add` is an example in a docstring, `calc.py::ruff` a linter's verdict."""
    file, _, rest = name.partition("::")
    node_name = rest.partition("::")[0].partition("[")[0]
    if _LINTER_NODE.fullmatch(node_name):
        return "lint"
    parts = file.removesuffix(".py").split("/")
    tails = [".".join(parts[index:]) for index in range(len(parts))]
    is_example = node_name == file.rpartition("/")[2] or any(
        node_name == tail or node_name.startswith(f"{tail}.") for tail in tails
    )
    return "example" if is_example else "test"


_FAILED_RESULTS = ("failed", "broken")
_LINTER_NODE = re.compile(
    r"(?:ruff|mypy|mypy-status|flake8|black|isort|pylint|pycodestyle|pydocstyle)\b.*", re.IGNORECASE
)


class _ReporterSession:
    """The tests of one session, as they are told."""

    def __init__(self) -> None:
        self.ended = False
        self._exit, self._collected = 0, 0
        self._open: dict[tuple[str, str], str] = {}
        self._cases: list[tuple[str, str]] = []
        self._from: dict[str, list[str]] = {}  # by worker: the files of the test that is told next
        self._files: dict[str, dict[str, None]] = {}
        self._examples: dict[str, None] = {}
        self._loaded: dict[str, str] = {}
        self._replaced: list[str] = []

    def take(self, event: object) -> bool:
        """Whether it is an event."""
        match event:
            case ["test", str(worker), str(name), str(phase), str(outcome), bool(expected)]:
                self._test((worker, name), phase, outcome, expected=expected)
                for file in self._from.get(worker, ()):
                    self._files.setdefault(file, {})[name] = None
                return len(self._cases) <= MAX_REPORT_CASES
            case ["from", str(worker), list(files)]:
                self._from[worker] = [file for file in files if isinstance(file, str)]
                return True
            case ["example", str(file)]:
                self._examples[file] = None
                return True
            case ["loaded", dict(modules)]:
                self._loaded = {module: path for module, path in modules.items() if isinstance(path, str)}
                return True
            case ["replaced", list(names)]:
                self._replaced = [
                    clip_text(module, MAX_TEST_NAME_CHARACTERS) for module in names if isinstance(module, str)
                ]
                return True
            case ["ended", int(code), int(collected)]:
                self._exit, self._collected, self.ended = code, collected, True
                return True
            case _:
                return False

    def _test(self, test: tuple[str, str], phase: str, outcome: str, *, expected: bool) -> None:
        """A failure in any phase is one; only the call can pass; what was told last closes the test."""
        result = self._open.get(test, "")
        if outcome == "failed" or result in _FAILED_RESULTS:
            result = "broken" if phase == "collect" or find_failed_collection(test[1]) else "failed"
        elif outcome == "skipped":
            result = "expected" if expected else "skipped"
        elif outcome == "passed" and phase == "call":
            result = result or "passed"
        self._open[test] = result
        if phase not in ("setup", "call"):
            self._close(test)

    def _tests(self, form: str) -> dict[str, list[str]]:
        """The files that hold tests: neither examples nor a linter's verdict make a file one."""
        tests_by_file: dict[str, list[str]] = {}
        for file, names in self._files.items():
            kinds = {name: _classify_pytest_node(name) if form == "pytest" else "test" for name in names}
            self._examples.update({file: None} if "example" in kinds.values() else {})
            tests = [name for name, kind in kinds.items() if kind == "test"]
            tests_by_file.update({file: tests} if tests else {})
        return tests_by_file

    def _close(self, test: tuple[str, str]) -> None:
        if result := self._open.pop(test):
            self._cases.append((test[1], result))

    def report(
        self, form: Literal["pytest", "unittest"], trees: Sequence[str]
    ) -> RunnerReport | UnreadableReport:
        for test in tuple(self._open):
            self._close(test)
        if self._exit == 0 and len(self._cases) < self._collected:
            return UnreadableReport(f"it ended after {len(self._cases)} of {self._collected} tests")
        expected = sum(result == "expected" for _, result in self._cases)
        cases = [
            (strip_tree_paths(name, trees), "skipped" if result == "expected" else result)
            for name, result in self._cases
        ]
        report = build_runner_report(form, cases, expected)
        return msgspec.structs.replace(
            report,
            files=list_tests_by_tree_file(self._tests(form), trees),
            examples=tuple(sorted(filter(None, (find_path_in_tree(file, trees) for file in self._examples)))),
            modules={module: find_path_in_tree(path, trees) or path for module, path in self._loaded.items()},
            replaced=tuple(sorted(set(self._replaced))[:MAX_KEPT_TEST_NAMES]),
        )
