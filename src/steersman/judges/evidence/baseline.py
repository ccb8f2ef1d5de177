"""What a check means beside the same check on the base tree: known failures, vanished tests, flakiness.

A failure is known where a person has acknowledged it by name and it was there before any change; everything else that
fails has failed. What differs between two runs on the same tree is flaky: told, never averaged.
**Invariant:** absence of evidence is failure; nothing here turns an unacknowledged failure into a pass.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import CommandResult, RunnerReport, full_output
from steersman.judges.evidence.runner_reports import find_failed_collection
from steersman.judges.evidence.runners import count_printed_failures, find_failure_lines

# ── broken collections ──────────────────────────────────────────────────────────────────────────────────────────────────

# Collections of tests that broke on the base tree: which passing tests have to answer for them now.
#
# A package that did not build, a module that could not be imported and a class that could not be set up are not tests, so
# they cannot vanish as tests. But they must not stay silent, and tests in them must not be skipped for the first time.
# **Invariant:** pure. Only a passing test of a broken collection answers for it.


_UNBUILT_PACKAGE = re.compile(r" \[(?:build|setup) failed\]$")  # what go says behind the name of a package


def find_silent_collections(now: Sequence[RunnerReport], base: Sequence[RunnerReport]) -> tuple[str, ...]:
    """What broke on the base tree and has no test now that passes, and the tests in it that are skipped now."""
    ran = (
        _count_report_names(base, "passed")
        + _count_report_names(base, "failed")
        - _count_report_names(base, "broken")
    )
    failing_now = _count_report_names(now, "failed")
    broken = [
        name
        for name in _count_report_names(base, "broken")
        if name not in failing_now and not _find_tests_inside(name, ran)
    ]
    passed = _count_report_names(now, "passed")
    skipped = _count_report_names(now, "skipped") - _count_report_names(base, "skipped")
    if any(report.form == "junit" for report in now):
        return _find_unanswered_files(broken, _count_report_names(now, "empty"), passed - ran, skipped)
    empty_packages = _count_empty_go_packages(now)
    unanswered = [
        name
        for name in broken
        if not _find_tests_inside(name, passed) and _UNBUILT_PACKAGE.sub("", name) not in empty_packages
    ]
    return tuple(
        sorted({*unanswered, *(test for name in broken for test in _find_tests_inside(name, skipped))})
    )


def _find_unanswered_files(
    broken: list[str], empty: Counter[str], new_tests: Counter[str], skipped: Counter[str]
) -> tuple[str, ...]:
    """node does not say which file a test is in, so each broken file needs one of the new tests."""
    if not broken:
        return ()
    unanswered = broken if new_tests.total() < len(broken) else [name for name in broken if name in empty]
    return tuple(sorted({*unanswered, *skipped}))


def _count_empty_go_packages(now: Sequence[RunnerReport]) -> Counter[str]:
    """go knows by the names of its files that a package has no tests."""
    return _count_report_names([report for report in now if report.form == "go"], "empty")


def _find_tests_inside(name: str, tests: Counter[str]) -> list[str]:
    """The tests of what has this name, as its runner names both."""
    if collection := find_failed_collection(name):
        return [test for test in tests if f".{collection}." in f".{test}."]
    collection = _UNBUILT_PACKAGE.sub("", name).removesuffix("__init__.py").rstrip("/")
    return [
        test for test in tests if not collection or test.startswith((f"{collection}::", f"{collection}/"))
    ]


def _count_report_names(reports: Sequence[RunnerReport], result: str) -> Counter[str]:
    names: Counter[str] = Counter()
    for report in reports:
        names |= Counter(getattr(report, result))
    return names


# ── baseline ────────────────────────────────────────────────────────────────────────────────


CheckVerdict = Literal["passed", "failed", "blocked", "timeout", "no_tests", "known", "flaky"]


class CheckJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """One check on one tree, all its runs together."""

    name: str
    verdict: CheckVerdict
    tests: int = 0  # that passed, or ran where the runner does not tell them apart; 1 where the exit code is enough by choice
    # Names of tests that ran on the base tree, are gone now, and were not replaced.
    vanished: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()  # names of tests that ran on the base tree and are skipped now
    missing: int = 0  # how many tests are gone or skipped, also where they have no names
    # What broke on the base tree and is not answered for by a test that passes now.
    silent: tuple[str, ...] = ()
    doubt: str = ""  # what else a person should look at before it counts
    tampered: tuple[str, ...] = ()  # what is done to the runner that was not done on the base tree, in words


def sound_verdict(result: CommandResult) -> CheckVerdict:
    """The recorded verdict, unless the record itself contradicts a pass."""
    if result.verdict == "passed" and result.exit_code not in (None, 0):
        return "failed"
    if result.verdict == "passed" and result.tests == 0:
        return "no_tests"
    return result.verdict


def judge_check(
    runs: Sequence[CommandResult], base: Sequence[CommandResult] | None, known: frozenset[str] = frozenset()
) -> CheckJudgement:
    """One check from its runs on this tree and on the base tree (None: it was not run there)."""
    verdict = _judge_runs_verdict(runs, base or (), known)
    vanished, skipped, missing = _find_missing_tests(runs, base or ())
    fewer = max_test_count(base or ()) - max_test_count(runs)
    return CheckJudgement(
        name=runs[0].name,
        verdict=verdict,
        tests=_count_supporting_tests(runs, verdict),
        vanished=vanished,
        skipped=skipped,
        missing=missing if has_named_tests(base or ()) and has_named_tests(runs) else max(0, fewer),
        silent=find_silent_collections(list_result_reports(runs), list_result_reports(base or ()))
        if has_named_tests(base or ()) and has_named_tests(runs)
        else (),
        doubt=_find_check_doubt(runs, base, verdict),
        tampered=_find_runner_tampering(list_result_reports(runs), list_result_reports(base or ())),
    )


def _judge_runs_verdict(
    runs: Sequence[CommandResult], base: Sequence[CommandResult], known: frozenset[str]
) -> CheckVerdict:
    verdicts = [sound_verdict(result) for result in runs]
    if "failed" not in verdicts:
        return verdicts[0]
    if _has_only_known_failures(runs, base, known):
        return "known"
    return "flaky" if set(verdicts) == {"passed", "failed"} else "failed"


def _has_only_known_failures(
    runs: Sequence[CommandResult], base: Sequence[CommandResult], known: frozenset[str]
) -> bool:
    """Every failure is one that a person has named and that the base tree had too, ended in the same way."""
    failing, failing_before = _list_failing_results(runs), _list_failing_results(base)
    if not failing_before or any(sound_verdict(result) not in ("failed", "passed") for result in runs):
        return False
    if not {result.exit_code for result in failing} <= {result.exit_code for result in failing_before}:
        return False
    names, names_before = _find_named_failures(failing), _find_named_failures(failing_before)
    check_known = runs[0].name in known
    if names is None or names_before is None:
        return (
            check_known
            and names is names_before
            and (_has_no_counted_tests((*runs, *base)) or is_no_worse_than_base(runs, base))
        )
    return names <= names_before and (check_known or all(is_known_failure(name, known) for name in names))


def _has_no_counted_tests(results: Sequence[CommandResult]) -> bool:
    """Whether no test was ever counted, as of a linter: then it speaks for nothing."""
    return all(result.tests is None for result in results)


def is_no_worse_than_base(runs: Sequence[CommandResult], base: Sequence[CommandResult]) -> bool:
    """Whether as many tests pass as on the base tree, and no more of anything fails; never without a count."""
    now, before = _count_outcomes(runs), _count_outcomes(base)
    if now is None or before is None or before[0] == 0:
        return False
    return now[0] >= before[0] and now[1] <= before[1] and now[2] <= before[2]


def _count_outcomes(results: Sequence[CommandResult]) -> tuple[int, int, int] | None:
    """The fewest tests that passed, the most that failed, and the most failures that were printed."""
    counted = [(r.passed, (r.tests or 0) - r.passed) for r in results if r.passed is not None]
    if not counted or len(counted) < len(results):
        return None
    printed = max(count_printed_failures(full_output(result)) for result in results)
    return min(passed for passed, _ in counted), max(failed for _, failed in counted), printed


def is_acknowledged_as_whole(runs: Sequence[CommandResult], judgement: CheckJudgement) -> bool:
    """Whether a check is known to fail by its own name alone, so that its tests speak by their number."""
    return (
        judgement.verdict == "known"
        and judgement.tests > 0
        and _find_named_failures(_list_failing_results(runs)) is None
    )


def _list_failing_results(results: Sequence[CommandResult]) -> list[CommandResult]:
    return [result for result in results if sound_verdict(result) == "failed"]


def _find_named_failures(failing: Sequence[CommandResult]) -> set[str] | None:
    """The names of what failed; None where a failure has no name."""
    names: set[str] = set()
    for result in failing:
        if result.report is None or result.report.cut or not result.report.failed:
            return None
        names.update(result.report.failed)
    return names


def is_known_failure(name: str, known: Iterable[str]) -> bool:
    """Whether a test is acknowledged, as its runner names it or as `path/test_x.py::test_y`."""
    wanted = normalize_test_name(name)
    return any(normalize_test_name(known_name) == wanted for known_name in known)


def normalize_test_name(name: str) -> str:
    """One spelling for the names of a test: dots for slashes in its module, no `.py`, dots for `::`."""
    module, _, rest = name.partition("::")
    return ".".join(filter(None, (module.removesuffix(".py").replace("/", "."), rest.replace("::", "."))))


def find_stale_known_failures(known: Iterable[str], base: Sequence[CommandResult]) -> tuple[str, ...]:
    """Acknowledged names that did not fail on the base tree: they can be taken out."""
    failing = _list_failing_results(base)
    names = {
        normalize_test_name(failed_name)
        for result in failing
        for failed_name in (result.name, *(result.report.failed if result.report else ()))
    }
    return tuple(sorted(known_name for known_name in known if normalize_test_name(known_name) not in names))


def _count_supporting_tests(runs: Sequence[CommandResult], verdict: CheckVerdict) -> int:
    """How many tests speak for a pass; what failed does not."""
    if verdict == "known":
        return min(r.report.ran - r.report.failures if r.report else r.passed or 0 for r in runs)
    counted = [
        r.tests or int(r.exit_code_only) for r in runs if verdict != "flaky" or sound_verdict(r) == "passed"
    ]
    return min(counted)


def has_named_tests(results: Sequence[CommandResult]) -> bool:
    """Whether the runner told its tests by name, all of them."""
    return any(result.report is not None and not result.report.cut for result in results)


def _find_missing_tests(
    runs: Sequence[CommandResult], base: Sequence[CommandResult]
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Tests that are gone and tests that are skipped now, and how many count as missing.

    A new test that passes makes up for one that is gone: it may be the same under another name. A skipped one has
    kept its name, so that nothing makes up for it.
    """
    if not has_named_tests(runs) or not has_named_tests(base):
        return (), (), 0
    skipped_now = {name for entry in list_result_reports(runs) for name in entry.skipped}
    lost = sorted((count_ran_tests(base) - count_ran_tests(runs)).elements())
    skipped = tuple(name for name in lost if name in skipped_now)
    gone = tuple(name for name in lost if name not in skipped_now)
    passed: Counter[str] = Counter()
    for entry in list_result_reports(runs):
        passed |= Counter(entry.passed)
    net = max(0, len(gone) - (passed - count_ran_tests(base)).total())
    return gone if net else (), skipped, net + len(skipped)


def count_ran_tests(results: Sequence[CommandResult]) -> Counter[str]:
    """The tests that ran, by name, without what only holds tests."""
    ran: Counter[str] = Counter()
    for report in list_result_reports(results):
        ran |= Counter((*report.passed, *report.failed)) - Counter(report.broken)
    return ran


def list_result_reports(results: Sequence[CommandResult]) -> list[RunnerReport]:
    """The reports of those that have one."""
    return [result.report for result in results if result.report is not None]


def max_test_count(results: Sequence[CommandResult]) -> int:
    """The highest count of tests, without what only holds tests."""
    return max(
        ((result.tests or 0) - _count_broken_collections(result.report) for result in results), default=0
    )


def _count_broken_collections(report: RunnerReport | None) -> int:
    """How many of those that were counted only hold tests; go's packages are not counted."""
    return len(report.broken) if report is not None and report.form != "go" else 0


def _find_runner_tampering(now: Sequence[RunnerReport], base: Sequence[RunnerReport]) -> tuple[str, ...]:
    """Functions of the runner that are replaced now, and modules that a file of the tree stands in for now.

    Without a report on the base there is nothing to compare with: honest plugins replace functions too.
    """
    if not base:
        return ()
    before = {name for report in base for name in report.replaced}
    replaced = {name for report in now for name in report.replaced} - before
    elsewhere = {name for report in base for name, path in report.modules.items() if not path}
    hidden = {
        (module, module_path)
        for report in now
        for module, module_path in report.modules.items()
        if module_path and module in elsewhere
    }
    return (
        *(f"the change replaces {name} while tests run" for name in sorted(replaced)),
        *(
            f"the module {module} now comes from {module_path}, which hides the one that was there before"
            for module, module_path in sorted(hidden)
        ),
    )


def _find_check_doubt(
    runs: Sequence[CommandResult], base: Sequence[CommandResult] | None, verdict: CheckVerdict
) -> str:
    if verdict == "flaky":
        return "it failed and passed on the same tree"
    if runs[0].source == "project" and base is None:
        return "it was not run on the base tree"
    before: Counter[str] = Counter()
    for result in base or ():
        before |= _count_other_failure_lines(result)
    speaks_of_failures = any(
        Counter(find_failure_lines(full_output(r))) - before for r in runs if sound_verdict(r) == "passed"
    )
    return "its exit code is 0, its words speak of failures" if speaks_of_failures else ""


def _count_other_failure_lines(result: CommandResult) -> Counter[str]:
    """Closing lines of failure that are not the check's own: of a check that failed the last one is."""
    lines = find_failure_lines(full_output(result))
    return Counter(lines if sound_verdict(result) == "passed" else lines[:-1])


# ── base checks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Whether a run may begin on its base tree: which checks cannot start, which fail, and what of it is acknowledged.
#
# A base without tests is not red: the change may bring the first ones. A check that failed and passed is flaky, and flaky
# is judged with the change. **Invariant:** pure; results come in, names and results go out.


# The exit code of a shell, and of the first program in a sandbox, for a missing program.
PROGRAM_NOT_FOUND_EXIT = 127
UNNAMED_FAILURES_REASON = (
    "its failures have no names, and it does not say how many tests pass: count them with a `summary` pattern in"
    " [checks], put what fails into a check of its own, or, if it runs no tests, name it in `no_tests`"
)
MAX_SHOWN_BASE_CHECKS = 3  # failing checks that are shown whole


class BaseChecks(msgspec.Struct, frozen=True):
    """The checks of a base tree that stand against beginning, the first failing run of each."""

    unstarted: tuple[CommandResult, ...] = ()
    red: tuple[CommandResult, ...] = ()

    @property
    def shown(self) -> tuple[CommandResult, ...]:
        """Those that are shown whole."""
        return (*self.unstarted, *self.red)[:MAX_SHOWN_BASE_CHECKS]


class AcknowledgeableFailures(msgspec.Struct, frozen=True):
    """Names for `known_failures`, and the checks that no name can acknowledge, with the reason."""

    names: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


def judge_base_checks(results: Sequence[CommandResult], known: frozenset[str]) -> BaseChecks:
    """Sorts the results on a base tree; a check that was run twice is judged by both runs."""
    unstarted, red = [], []
    for runs in _group_runs_by_name(results).values():
        if any(_is_unstarted_check(result) for result in runs):
            unstarted.append(runs[0])
        elif judge_check(runs, runs, known).verdict in ("failed", "timeout", "blocked"):
            red.append(runs[0])
    return BaseChecks(tuple(unstarted), tuple(red))


def find_acknowledgeable_failures(
    results: Sequence[CommandResult], known: frozenset[str], no_tests: Collection[str] = ()
) -> AcknowledgeableFailures:
    """What a person may acknowledge on a base tree: failing tests by name, else the whole check by its own.

    Without names a check has to say how many tests pass, unless it runs none: `no_tests` are those.
    """
    base = judge_base_checks(results, known)
    failing = {result.name for result in base.red if result.verdict == "failed"}
    names_by_result = [
        (r, list_failure_names(r, no_tests)) for r in results if r.name in failing and r.verdict == "failed"
    ]
    names = (name for _, failures in names_by_result for name in failures)
    fresh = (name for name in dict.fromkeys(names) if not is_known_failure(name, known))
    refused = [(result.name, "it cannot start") for result in base.unstarted]
    refused += [(r.name, "it did not come to its end") for r in base.red if r.verdict == "timeout"]
    refused += [(result.name, "it may not run here") for result in base.red if result.verdict == "blocked"]
    refused += dict.fromkeys((result.name, UNNAMED_FAILURES_REASON) for result, f in names_by_result if not f)
    return AcknowledgeableFailures(tuple(fresh), tuple(refused))


def count_known_failures(result: CommandResult, base: Sequence[CommandResult], known: frozenset[str]) -> int:
    """How many failures of a check are acknowledged, where all are; 0 for any other result.

    A check whose failures have no names counts as one.
    """
    before = [r for r in base if (r.cwd, r.argv) == (result.cwd, result.argv)]
    return (
        len(list_failure_names(result)) or 1 if judge_check([result], before, known).verdict == "known" else 0
    )


def list_failure_names(result: CommandResult, no_tests: Collection[str] = ()) -> tuple[str, ...]:
    """The names under which a failing check can be acknowledged: of its tests, else its own; none where it tells too little."""
    report = result.report
    if report is not None and report.failed and not report.cut:
        return report.failed
    return (result.name,) if result.passed or result.name in no_tests else ()


def _is_unstarted_check(result: CommandResult) -> bool:
    return result.verdict == "failed" and result.exit_code in (None, PROGRAM_NOT_FOUND_EXIT)


def _group_runs_by_name(results: Sequence[CommandResult]) -> dict[str, list[CommandResult]]:
    runs: dict[str, list[CommandResult]] = {}
    for result in results:
        runs.setdefault(result.name, []).append(result)
    return runs
