"""What a witness inside pytest or unittest has told, event by event.

Each event is a line: the word of this one execution, a running number, and what happened. It was told by a process
that ran hostile code, so a line that is not in its order, or that follows the end, makes the whole of it worthless.
**Invariant:** pure; without its end nothing that was told counts.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal

from steersman.contracts.commands import Report
from steersman.judges.reports import MOST_BYTES, MOST_CASES, Unreadable, report_of, within

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


_FAILED = ("failed", "broken")


class _Told:
    """The tests of one session, as they are told."""

    def __init__(self) -> None:
        self.ended = False
        self._exit, self._collected = 0, 0
        self._open: dict[tuple[str, str], str] = {}
        self._cases: list[tuple[str, str]] = []

    def take(self, event: object) -> bool:
        """Whether it is an event."""
        match event:
            case ["test", str(worker), str(name), str(phase), str(outcome), bool(expected)]:
                self._test((worker, name), phase, outcome, expected=expected)
                return len(self._cases) <= MOST_CASES
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
        return report_of(form, cases, expected)
