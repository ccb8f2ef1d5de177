"""Whether a run may begin on its base tree: which checks cannot start, which fail, and what of it is acknowledged.

A base without tests is not red: the change may bring the first ones. A check that failed and passed is flaky, and flaky
is judged with the change. **Invariant:** pure; results come in, names and results go out.
"""

from collections.abc import Collection, Sequence

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.judges.evidence.baseline import is_known_failure, judge_check

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
        (result, list_failure_names(result, no_tests))
        for result in results
        if result.name in failing and result.verdict == "failed"
    ]
    names = (name for _, failures in names_by_result for name in failures)
    fresh = (name for name in dict.fromkeys(names) if not is_known_failure(name, known))
    refused = [(result.name, "it cannot start") for result in base.unstarted]
    refused += [
        (result.name, "it did not come to its end") for result in base.red if result.verdict == "timeout"
    ]
    refused += [(result.name, "it may not run here") for result in base.red if result.verdict == "blocked"]
    refused += dict.fromkeys(
        (result.name, UNNAMED_FAILURES_REASON) for result, failures in names_by_result if not failures
    )
    return AcknowledgeableFailures(tuple(fresh), tuple(refused))


def count_known_failures(result: CommandResult, base: Sequence[CommandResult], known: frozenset[str]) -> int:
    """How many failures of a check are acknowledged, where all are; 0 for any other result.

    A check whose failures have no names counts as one.
    """
    before = [
        base_result
        for base_result in base
        if (base_result.cwd, base_result.argv) == (result.cwd, result.argv)
    ]
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
