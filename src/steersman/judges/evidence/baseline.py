"""What a check means beside the same check on the base tree: known failures, vanished tests, flakiness.

A failure is known where a person has acknowledged it by name and it was there before any change; everything else that
fails has failed. What differs between two runs on the same tree is flaky: told, never averaged.
**Invariant:** absence of evidence is failure; nothing here turns a failure nobody acknowledged into a pass.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import CommandResult, RunnerReport, full_output
from steersman.judges.evidence.broken_collections import find_silent_collections
from steersman.judges.evidence.printed_summaries import count_printed_failures, find_failure_lines

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
    counted = [
        (result.passed, (result.tests or 0) - result.passed)
        for result in results
        if result.passed is not None
    ]
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
        return min(
            result.report.ran - result.report.failures if result.report else result.passed or 0
            for result in runs
        )
    counted = [
        result.tests or int(result.exit_code_only)
        for result in runs
        if verdict != "flaky" or sound_verdict(result) == "passed"
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
        Counter(find_failure_lines(full_output(result))) - before
        for result in runs
        if sound_verdict(result) == "passed"
    )
    return "its exit code is 0, its words speak of failures" if speaks_of_failures else ""


def _count_other_failure_lines(result: CommandResult) -> Counter[str]:
    """Closing lines of failure that are not the check's own: of a check that failed the last one is."""
    lines = find_failure_lines(full_output(result))
    return Counter(lines if sound_verdict(result) == "passed" else lines[:-1])
