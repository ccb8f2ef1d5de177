"""What a test runner's own report says: events from node and from go; and what a report proves.

What is read here was written by a process that ran hostile code: sizes are bounded, and a report that is missing, unreadable or contradicts the exit code or the printed summary proves nothing.
**Invariant:** pure; a report can take a pass away, never give one.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from steersman.contracts.commands import Argv, Report
from steersman.judges.runners import Outcome, outcome
from steersman.judges.text import clip

NOT_TOLD = (
    "its exit code is 0, but it told no number of tests, and without a test nothing is approved: let it start a runner"
    " that tells how many it ran, or, if it runs none, name it in `no_tests` of steersman.toml and add a check that does"
)
Told = Literal["junit", "go", "pytest", "unittest"]

MOST_BYTES = 16 * 1024 * 1024
MOST_CASES = 200_000
KEPT = 20_000  # names of tests that are remembered; beyond them they are only counted
LONGEST = 400  # characters of a name


_FILE = re.compile(r"\S+\.[cm]?[jt]sx?")


class Unreadable(ValueError):  # noqa: N818  a value for the caller, never raised out of this module's functions
    """Why a report proves nothing."""


def within(name: str, trees: Sequence[str]) -> str:
    """A name with every place in the tree told from its root: a tree has another place each time it is checked out."""
    for tree in trees:
        name = name.replace(f"{tree}/", "").replace(tree, ".")
    return name


def inside(path: str, trees: Sequence[str]) -> str:
    """The path of a file from the root of the tree; nothing where it lies elsewhere."""
    return next((path[len(tree) + 1 :] for tree in trees if path.startswith(f"{tree}/")), "")


def files_within(files: Mapping[str, Iterable[str]], trees: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Files of the tree, each with the names of the tests that ran from it; names are bounded as in a report."""
    told = {file: inside(file, trees) for file in sorted(files)}
    return {
        told[file]: tuple(sorted({clip(within(n, trees), LONGEST) for n in files[file]})[:KEPT])
        for file in told
        if told[file]
    }


def read_node(data: bytes, trees: Sequence[str] = ()) -> Report | Unreadable:
    """What our reporter has told from inside node's runner, or why it is no report."""
    if len(data) > MOST_BYTES:
        return Unreadable(f"its report is longer than {MOST_BYTES} bytes")
    told = _NodeTests()
    *lines, rest = data.split(b"\n")
    for line in lines:
        if told.ended or not told.take(_decoded(line)):
            return Unreadable("something else than the runner wrote its report")
    if rest or not told.ended:
        return Unreadable("it ended before its tests had come to their end")
    return told.report(trees)


def _decoded(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


class _NodeTests:
    """The tests of one run of node, as they are told; a suite is no test."""

    def __init__(self) -> None:
        self.ended = False
        self._cases: list[tuple[str, str]] = []
        self._from: dict[str, dict[str, None]] = {}
        self._replaced: dict[str, None] = {}

    def take(self, event: object) -> bool:
        """Whether it is an event."""
        match event:
            case ["suite", list(), str(), str(), str()]:
                return True
            case ["test", list(above), str(name), "passed" | "failed" | "skipped" as outcome, str(file)]:
                whole = "::".join([*(str(one) for one in above), name])
                held = not above and _FILE.fullmatch(name)
                result = {"passed": "empty", "failed": "broken"}.get(outcome, outcome) if held else outcome
                self._cases.append((whole, result))
                if result != "empty":
                    self._from.setdefault(file, {})[whole] = None
                return len(self._cases) <= MOST_CASES
            case ["replaced", str(name)]:
                self._replaced[clip(name, LONGEST)] = None
                return True
            case ["ended"]:
                self.ended = True
                return True
            case _:
                return False

    def report(self, trees: Sequence[str]) -> Report:
        files = sum(result == "empty" for _, result in self._cases)  # node calls them tests that passed
        cases = [(within(name, trees), result) for name, result in self._cases]
        return msgspec.structs.replace(
            report_of("junit", cases, files),
            files=files_within(self._from, trees),
            replaced=tuple(sorted(self._replaced)[:KEPT]),
        )


LEFT = "steersman: it left before its tests had ended"  # as what stands between go and its tests says it


def read_go(output: str, trees: Sequence[str] = ()) -> tuple[Report | Unreadable, str]:
    """The events of `go test -json`, and the output as people know it.

    The tool makes them of what a test binary prints, so they count only where the binary came to the end of its tests.
    """
    events = _Events()
    for line in output.splitlines(keepends=True):
        events.take(line)
    return events.report(trees), events.shown_output()


class _Events:
    """What became of each package, and of each test in it, as it is told."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], str] = {}  # by package and test; a package itself has no test
        self._left: set[str] = set()
        self._unbuilt: dict[str, str] = {}  # packages that did not come to a test binary, with go's words
        self._printed: list[tuple[tuple[str, str], str]] = []

    def take(self, line: str) -> None:
        """One line of output."""
        event = _event(line)
        if event is None:
            self._printed.append((("", ""), line))
            return
        package, test, shown = event["Package"], event.get("Test"), str(event.get("Output", ""))
        if shown.strip() == LEFT:
            self._left.add(package)
        if shown.strip() in (f"FAIL\t{package} [{kind} failed]" for kind in ("build", "setup")):
            self._unbuilt[package] = shown.strip().removeprefix("FAIL\t")
        name = (package, test if isinstance(test, str) else "")
        result = _ENDS.get(str(event.get("Action")))
        if result is not None and self._results.get(name) != "failed":
            self._results[name] = result
        self._printed.append((name, shown))

    def shown_output(self) -> str:
        """What people see: as without -json, tests that passed and lines about their progress are left out."""
        return "".join(
            text
            for name, text in self._printed
            if not (name[1] and (self._results.get(name) == "passed" or text.startswith(_PROGRESS)))
        )

    def report(self, trees: Sequence[str]) -> Report | Unreadable:
        """What began and did not end has failed; a package is told of where it has no tests, or none says why it failed.

        A package is no test: it is not counted as one.
        """
        if not self._results:
            return Unreadable("it told no event")
        if any(test and package in self._left for package, test in self._results):
            return Unreadable("it ended before its tests had come to their end")
        ran = {package for package, test in self._results if test}
        explained = {p for (p, test), result in self._results.items() if test and result in ("failed", "run")}
        cases = []
        for (package, test), result in self._results.items():
            if test:
                cases.append((within(f"{package}::{test}", trees), _TEST.get(result, result)))
            elif result in _PACKAGE and package not in self._left | explained:
                name = package if package in ran else self._unbuilt.get(package, package)
                cases.append((name, _PACKAGE[result]))
        report, broken = report_of("go", cases, 0), sum(result == "broken" for _, result in cases)
        return msgspec.structs.replace(report, ran=report.ran - broken, failures=report.failures - broken)


def _event(line: str) -> dict[str, Any] | None:
    """An event of the tool, about a package or about its build; None for a line that is none, such as one of a linker."""
    if not line.startswith('{"'):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if isinstance(event, dict) and event.get("Action") in _BUILD:
        return {"Package": "", "Output": event.get("Output", "")}
    return event if isinstance(event, dict) and isinstance(event.get("Package"), str) else None


_BUILD = ("build-output", "build-fail")
_PROGRESS = ("=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ")
_ENDS = {"run": "run", "start": "run", "pass": "passed", "fail": "failed", "skip": "skipped"}
_TEST = {"run": "failed"}
_PACKAGE = {"run": "broken", "failed": "broken", "skipped": "empty"}


def report_of(form: Told, cases: Sequence[tuple[str, str]], expected: int) -> Report:
    """Names by result, each list sorted and bounded; what is broken has failed too."""
    by: dict[str, list[str]] = {"passed": [], "failed": [], "skipped": [], "broken": [], "empty": []}
    for name, result in cases:
        by[result].append(clip(name, LONGEST))
    by["failed"] += by["broken"]
    counts = {result: len(names) for result, names in by.items()}
    kept = {result: tuple(sorted(names)[:KEPT]) for result, names in by.items()}
    return Report(
        form=form,
        ran=counts["passed"] + counts["failed"],
        failures=counts["failed"],
        expected=expected,
        cut=any(counts[r] > len(kept[r]) for r in kept),
        passed=kept["passed"],
        failed=kept["failed"],
        skipped=kept["skipped"],
        broken=kept["broken"],
        empty=kept["empty"],
    )


_SUMMED = ("junit", "unittest")  # these always print one; pytest can be told not to
_COUNTED = ("junit", "pytest")  # these count as their report does


def proven(
    argv: Argv, exit_code: int, report: Report | Unreadable | None, printed: int | None
) -> tuple[Outcome, int | None, str]:
    """The verdict on a command that ended by itself, how many tests it ran, and why it is no pass."""
    match report:
        case None:
            return _without_a_report(argv, exit_code, printed)
        case Unreadable():
            return "no_tests" if exit_code == 0 else outcome(argv, exit_code, printed), None, str(report)
        case _:
            wrong = _contradiction(report, exit_code, printed)
            return "failed" if wrong else outcome(argv, exit_code, report.ran), report.ran, wrong


def _without_a_report(argv: Argv, exit_code: int, printed: int | None) -> tuple[Outcome, int | None, str]:
    verdict = outcome(argv, exit_code, printed)
    return verdict, printed, NOT_TOLD if verdict == "no_tests" and printed is None else ""


def _contradiction(report: Report, exit_code: int, printed: int | None) -> str:
    if exit_code == 0 and report.outside:
        return f"its tests did not test this tree: {'; '.join(clip(told, LONGEST) for told in report.outside[:5])}"
    if exit_code == 0 and (bad := report.failures or len(report.broken)):
        return f"its report has {bad} failures, its exit code is 0"
    if exit_code == 0 and printed is None and report.form in _SUMMED:
        return "it left a report without coming to its summary"
    # Of what a class skips unittest counts one and says that none of it ran; go prints tests inside tests.
    if exit_code == 0 and report.form in _COUNTED and printed not in (None, report.ran + report.expected):
        return f"its report has {report.ran + report.expected} tests, its summary {printed}"
    return ""
