"""What a witness inside pytest or unittest has told, event by event.

Each event is a line: the word of this one execution, a running number, and what happened. It was told by a process
that ran hostile code, so a line that is not in its order, or that follows the end, makes the whole of it worthless.
**Invariant:** pure; without its end nothing that was told counts.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import Report
from steersman.judges.reports import (
    KEPT,
    LONGEST,
    MOST_BYTES,
    MOST_CASES,
    Unreadable,
    files_within,
    inside,
    report_of,
    within,
)
from steersman.judges.text import clip

# A name that unittest gives to what holds tests, when it could not be loaded or set up.
_HOLDER = re.compile(r"unittest\.loader\._FailedTest\.(.+)|(?:setUp|tearDown)(?:Class|Module) \((.+)\)")


def holder(name: str) -> str:
    """The module or class that unittest speaks of under a name of its own; nothing for a test."""
    found = _HOLDER.fullmatch(name)
    return (found[1] or found[2]) if found else ""


def read_told(
    form: Literal["pytest", "unittest"], data: bytes, word: str, trees: Sequence[str] = ()
) -> Report | Unreadable:
    """The report that a witness has told, or why it is none."""
    if not data:
        return Unreadable(
            "it told nothing: it never came to its tests, or could not load steersman's witness"
        )
    if len(data) > MOST_BYTES:
        return Unreadable(f"what it told is longer than {MOST_BYTES} bytes")
    told = _Told()
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if told.ended or not told.take(_event(line, f"{word} {number} ".encode("ascii"))):
            return Unreadable("something else than the runner spoke on its wire")
    if rest or not told.ended:
        return Unreadable("it ended before its tests had come to their end")
    return told.report(form, trees)


def _event(line: bytes, head: bytes) -> object:
    try:
        return json.loads(line[len(head) :]) if line.startswith(head) else None
    except (ValueError, RecursionError):
        return None


def _kind(name: str) -> Literal["test", "example", "lint"]:
    """What a pytest node is: `calc.py::calc.add` is an example in a docstring, `calc.py::ruff` a linter's verdict."""
    file, _, rest = name.partition("::")
    first = rest.partition("::")[0].partition("[")[0]
    if _LINTS.fullmatch(first):
        return "lint"
    parts = file.removesuffix(".py").split("/")
    tails = [".".join(parts[n:]) for n in range(len(parts))]
    shown = first == file.rpartition("/")[2] or any(first == t or first.startswith(f"{t}.") for t in tails)
    return "example" if shown else "test"


_FAILED = ("failed", "broken")
_LINTS = re.compile(
    r"(?:ruff|mypy|mypy-status|flake8|black|isort|pylint|pycodestyle|pydocstyle)\b.*", re.IGNORECASE
)


class _Told:
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
                return len(self._cases) <= MOST_CASES
            case ["from", str(worker), list(files)]:
                self._from[worker] = [file for file in files if isinstance(file, str)]
                return True
            case ["example", str(file)]:
                self._examples[file] = None
                return True
            case ["loaded", dict(modules)]:
                self._loaded = {n: p for n, p in modules.items() if isinstance(p, str)}
                return True
            case ["replaced", list(names)]:
                self._replaced = [clip(n, LONGEST) for n in names if isinstance(n, str)]
                return True
            case ["ended", int(code), int(collected)]:
                self._exit, self._collected, self.ended = code, collected, True
                return True
            case _:
                return False

    def _test(self, test: tuple[str, str], phase: str, outcome: str, *, expected: bool) -> None:
        """A failure in any phase is one; only the call can pass; what was told last closes the test."""
        found = self._open.get(test, "")
        if outcome == "failed" or found in _FAILED:
            found = "broken" if phase == "collect" or holder(test[1]) else "failed"
        elif outcome == "skipped":
            found = "expected" if expected else "skipped"
        elif outcome == "passed" and phase == "call":
            found = found or "passed"
        self._open[test] = found
        if phase not in ("setup", "call"):
            self._close(test)

    def _tests(self, form: str) -> dict[str, list[str]]:
        """The files that hold tests: neither examples nor a linter's verdict make a file one."""
        found: dict[str, list[str]] = {}
        for file, names in self._files.items():
            kinds = {name: _kind(name) if form == "pytest" else "test" for name in names}
            self._examples.update({file: None} if "example" in kinds.values() else {})
            tests = [name for name, kind in kinds.items() if kind == "test"]
            found.update({file: tests} if tests else {})
        return found

    def _close(self, test: tuple[str, str]) -> None:
        if result := self._open.pop(test):
            self._cases.append((test[1], result))

    def report(self, form: Literal["pytest", "unittest"], trees: Sequence[str]) -> Report | Unreadable:
        for test in tuple(self._open):
            self._close(test)
        if self._exit == 0 and len(self._cases) < self._collected:
            return Unreadable(f"it ended after {len(self._cases)} of {self._collected} tests")
        expected = sum(result == "expected" for _, result in self._cases)
        cases = [
            (within(name, trees), "skipped" if result == "expected" else result)
            for name, result in self._cases
        ]
        report = report_of(form, cases, expected)
        return msgspec.structs.replace(
            report,
            files=files_within(self._tests(form), trees),
            examples=tuple(sorted(filter(None, (inside(file, trees) for file in self._examples)))),
            modules={n: inside(p, trees) or p for n, p in self._loaded.items()},
            replaced=tuple(sorted(set(self._replaced))[:KEPT]),
        )
