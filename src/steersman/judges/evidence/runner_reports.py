"""What a test runner's own report says: events from node and from go; and what a report proves.

What is read here was written by a process that ran hostile code: sizes are bounded, and a report that is missing, unreadable or contradicts the exit code or the printed summary proves nothing.
**Invariant:** pure; a report can take a pass away, never give one.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from steersman.contracts.commands import Argv, CommandOutcome, RunnerReport
from steersman.judges.evidence.runners import judge_exit_code
from steersman.judges.text import clip_text

NO_TEST_COUNT_REASON = (
    "its exit code is 0, but it told no number of tests, and without a test nothing is approved: let it start a runner"
    " that tells how many it ran, or, if it runs none, name it in `no_tests` of steersman.toml and add a check that does"
)
ReportForm = Literal["junit", "go", "pytest", "unittest"]

MAX_REPORT_BYTES = 16 * 1024 * 1024
MAX_REPORT_CASES = 200_000
MAX_KEPT_TEST_NAMES = 20_000  # names of tests that are remembered; beyond them they are only counted
MAX_TEST_NAME_CHARACTERS = 400  # characters of a name


_JAVASCRIPT_FILE = re.compile(r"\S+\.[cm]?[jt]sx?")


class UnreadableReport(ValueError):  # noqa: N818  a value for the caller, never raised out of this module's functions
    """Why a report proves nothing."""


def strip_tree_paths(name: str, trees: Sequence[str]) -> str:
    """A name with every place in the tree told from its root: a tree has another place each time it is checked out."""
    for tree in trees:
        name = name.replace(f"{tree}/", "").replace(tree, ".")
    return name


def find_path_in_tree(path: str, trees: Sequence[str]) -> str:
    """The path of a file from the root of the tree; nothing where it lies elsewhere."""
    return next((path[len(tree) + 1 :] for tree in trees if path.startswith(f"{tree}/")), "")


def list_tests_by_tree_file(
    files: Mapping[str, Iterable[str]], trees: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Files of the tree, each with the names of the tests that ran from it; names are bounded as in a report."""
    tree_paths = {file: find_path_in_tree(file, trees) for file in sorted(files)}
    return {
        tree_paths[file]: tuple(
            sorted(
                {clip_text(strip_tree_paths(name, trees), MAX_TEST_NAME_CHARACTERS) for name in files[file]}
            )[:MAX_KEPT_TEST_NAMES]
        )
        for file in tree_paths
        if tree_paths[file]
    }


def read_node_report(data: bytes, trees: Sequence[str] = ()) -> RunnerReport | UnreadableReport:
    """What our reporter has told from inside node's runner, or why it is no report."""
    if len(data) > MAX_REPORT_BYTES:
        return UnreadableReport(f"its report is longer than {MAX_REPORT_BYTES} bytes")
    reader = _NodeReportReader()
    *lines, rest = data.split(b"\n")
    for line in lines:
        if reader.ended or not reader.take(_decode_node_event(line)):
            return UnreadableReport("something else than the runner wrote its report")
    if rest or not reader.ended:
        return UnreadableReport("it ended before its tests had come to their end")
    return reader.report(trees)


def _decode_node_event(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


class _NodeReportReader:
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
                full_name = "::".join([*(str(suite) for suite in above), name])
                is_file = not above and _JAVASCRIPT_FILE.fullmatch(name)
                result = {"passed": "empty", "failed": "broken"}.get(outcome, outcome) if is_file else outcome
                self._cases.append((full_name, result))
                if result != "empty":
                    self._from.setdefault(file, {})[full_name] = None
                return len(self._cases) <= MAX_REPORT_CASES
            case ["replaced", str(name)]:
                self._replaced[clip_text(name, MAX_TEST_NAME_CHARACTERS)] = None
                return True
            case ["ended"]:
                self.ended = True
                return True
            case _:
                return False

    def report(self, trees: Sequence[str]) -> RunnerReport:
        files = sum(result == "empty" for _, result in self._cases)  # node calls them tests that passed
        cases = [(strip_tree_paths(name, trees), result) for name, result in self._cases]
        return msgspec.structs.replace(
            build_runner_report("junit", cases, files),
            files=list_tests_by_tree_file(self._from, trees),
            replaced=tuple(sorted(self._replaced)[:MAX_KEPT_TEST_NAMES]),
        )


# As what stands between go and its tests says it.
LEFT_EARLY_LINE = "steersman: it left before its tests had ended"


def read_go_report(output: str, trees: Sequence[str] = ()) -> tuple[RunnerReport | UnreadableReport, str]:
    """The events of `go test -json`, and the output as people know it.

    The tool makes them of what a test binary prints, so they count only where the binary came to the end of its tests.
    """
    reader = _GoReportReader()
    for line in output.splitlines(keepends=True):
        reader.take(line)
    return reader.report(trees), reader.shown_output()


class _GoReportReader:
    """Collects the results of packages and their tests as the runner reports them."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], str] = {}  # by package and test; a package itself has no test
        self._left: set[str] = set()
        self._unbuilt: dict[str, str] = {}  # packages that did not come to a test binary, with go's words
        self._printed: list[tuple[tuple[str, str], str]] = []

    def take(self, line: str) -> None:
        """One line of output."""
        event = _decode_go_event(line)
        if event is None:
            self._printed.append((("", ""), line))
            return
        package, test, shown = event["Package"], event.get("Test"), str(event.get("Output", ""))
        if shown.strip() == LEFT_EARLY_LINE:
            self._left.add(package)
        if shown.strip() in (f"FAIL\t{package} [{kind} failed]" for kind in ("build", "setup")):
            self._unbuilt[package] = shown.strip().removeprefix("FAIL\t")
        name = (package, test if isinstance(test, str) else "")
        result = _GO_RESULT_BY_ACTION.get(str(event.get("Action")))
        if result is not None and self._results.get(name) != "failed":
            self._results[name] = result
        self._printed.append((name, shown))

    def shown_output(self) -> str:
        """What people see: as without -json, tests that passed and lines about their progress are left out."""
        return "".join(
            text
            for name, text in self._printed
            if not (name[1] and (self._results.get(name) == "passed" or text.startswith(_GO_PROGRESS_LINES)))
        )

    def report(self, trees: Sequence[str]) -> RunnerReport | UnreadableReport:
        """What began and did not end has failed; a package is reported if it has no tests, or none says why it failed.

        A package is no test: it is not counted as one.
        """
        if not self._results:
            return UnreadableReport("it told no event")
        if any(test and package in self._left for package, test in self._results):
            return UnreadableReport("it ended before its tests had come to their end")
        ran = {package for package, test in self._results if test}
        explained = {p for (p, test), result in self._results.items() if test and result in ("failed", "run")}
        cases = []
        for (package, test), result in self._results.items():
            if test:
                cases.append(
                    (strip_tree_paths(f"{package}::{test}", trees), _GO_TEST_RESULTS.get(result, result))
                )
            elif result in _GO_PACKAGE_RESULTS and package not in self._left | explained:
                name = package if package in ran else self._unbuilt.get(package, package)
                cases.append((name, _GO_PACKAGE_RESULTS[result]))
        report, broken = build_runner_report("go", cases, 0), sum(result == "broken" for _, result in cases)
        return msgspec.structs.replace(report, ran=report.ran - broken, failures=report.failures - broken)


def _decode_go_event(line: str) -> dict[str, Any] | None:
    """An event of the tool, about a package or about its build; None for a line that is none, such as one of a linker."""
    if not line.startswith('{"'):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if isinstance(event, dict) and event.get("Action") in _GO_BUILD_ACTIONS:
        return {"Package": "", "Output": event.get("Output", "")}
    return event if isinstance(event, dict) and isinstance(event.get("Package"), str) else None


_GO_BUILD_ACTIONS = ("build-output", "build-fail")
_GO_PROGRESS_LINES = ("=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ")
_GO_RESULT_BY_ACTION = {"run": "run", "start": "run", "pass": "passed", "fail": "failed", "skip": "skipped"}
_GO_TEST_RESULTS = {"run": "failed"}
_GO_PACKAGE_RESULTS = {"run": "broken", "failed": "broken", "skipped": "empty"}


def build_runner_report(form: ReportForm, cases: Sequence[tuple[str, str]], expected: int) -> RunnerReport:
    """Names by result, each list sorted and bounded; what is broken has failed too."""
    names_by_result: dict[str, list[str]] = {
        "passed": [],
        "failed": [],
        "skipped": [],
        "broken": [],
        "empty": [],
    }
    for name, result in cases:
        names_by_result[result].append(clip_text(name, MAX_TEST_NAME_CHARACTERS))
    names_by_result["failed"] += names_by_result["broken"]
    counts = {result: len(names) for result, names in names_by_result.items()}
    kept_names = {result: tuple(sorted(n)[:MAX_KEPT_TEST_NAMES]) for result, n in names_by_result.items()}
    return RunnerReport(
        form=form,
        ran=counts["passed"] + counts["failed"],
        failures=counts["failed"],
        expected=expected,
        cut=any(counts[each] > len(kept_names[each]) for each in kept_names),
        passed=kept_names["passed"],
        failed=kept_names["failed"],
        skipped=kept_names["skipped"],
        broken=kept_names["broken"],
        empty=kept_names["empty"],
    )


_SUMMARY_PRINTING_FORMS = ("junit", "unittest")  # these always print one; pytest can be told not to
_MATCHING_COUNT_FORMS = ("junit", "pytest")  # these count as their report does


def judge_command_report(
    argv: Argv, exit_code: int, report: RunnerReport | UnreadableReport | None, printed: int | None
) -> tuple[CommandOutcome, int | None, str]:
    """The verdict on a command that ended by itself, how many tests it ran, and why it is no pass."""
    match report:
        case None:
            return _judge_without_report(argv, exit_code, printed)
        case UnreadableReport():
            return (
                "no_tests" if exit_code == 0 else judge_exit_code(argv, exit_code, printed),
                None,
                str(report),
            )
        case _:
            contradiction = _find_report_contradiction(report, exit_code, printed)
            return (
                "failed" if contradiction else judge_exit_code(argv, exit_code, report.ran),
                report.ran,
                contradiction,
            )


def _judge_without_report(
    argv: Argv, exit_code: int, printed: int | None
) -> tuple[CommandOutcome, int | None, str]:
    verdict = judge_exit_code(argv, exit_code, printed)
    return verdict, printed, NO_TEST_COUNT_REASON if verdict == "no_tests" and printed is None else ""


def _find_report_contradiction(report: RunnerReport, exit_code: int, printed: int | None) -> str:
    if exit_code == 0 and report.outside:
        return f"its tests did not test this tree: {'; '.join(clip_text(problem, MAX_TEST_NAME_CHARACTERS) for problem in report.outside[:5])}"
    if exit_code == 0 and (failure_count := report.failures or len(report.broken)):
        return f"its report has {failure_count} failures, its exit code is 0"
    if exit_code == 0 and printed is None and report.form in _SUMMARY_PRINTING_FORMS:
        return "it left a report without coming to its summary"
    # Of what a class skips unittest counts one and says that none of it ran; go prints tests inside tests.
    if (
        exit_code == 0
        and report.form in _MATCHING_COUNT_FORMS
        and printed not in (None, report.ran + report.expected)
    ):
        return f"its report has {report.ran + report.expected} tests, its summary {printed}"
    return ""


# ── test reporter ───────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads what the test reporter inside pytest or unittest has sent, event by event.
#
# Each event is a line: the word of this execution, a running number, and the event. The sender is a process that ran
# hostile code, so one line out of order, or after the end, makes the whole report worthless.
# **Invariant:** pure. A report without its end counts for nothing.


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
            "it reported nothing: it did not reach its tests, or could not load steersman's test reporter"
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
        self._from: dict[str, list[str]] = {}  # by worker: the files of the test that is reported next
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
                self._replaced = [clip_text(m, MAX_TEST_NAME_CHARACTERS) for m in names if isinstance(m, str)]
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
