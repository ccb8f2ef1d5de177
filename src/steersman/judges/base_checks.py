"""Whether a run may begin on its base tree: which checks cannot start, which fail, and what of it is acknowledged.

A base without tests is not red: the change may bring the first ones. A check that failed and passed is flaky, and flaky
is judged with the change. **Invariant:** pure; results come in, names and results go out.
"""

from collections.abc import Collection, Sequence

import msgspec

from steersman.contracts.commands import CommandResult
from steersman.judges.baseline import is_known, judge_check

NOT_FOUND = 127  # what a shell and the first program in a box say of a program that is not there
NO_NAMES = (
    "its failures have no names, and it does not say how many tests pass: count them with a `summary` pattern in"
    " [checks], put what fails into a check of its own, or, if it runs no tests, name it in `no_tests`"
)
SHOWN = 3  # failing checks that are shown whole


class BaseChecks(msgspec.Struct, frozen=True):
    """The checks of a base tree that stand against beginning, the first failing run of each."""

    unstarted: tuple[CommandResult, ...] = ()
    red: tuple[CommandResult, ...] = ()

    @property
    def shown(self) -> tuple[CommandResult, ...]:
        """Those that are shown whole."""
        return (*self.unstarted, *self.red)[:SHOWN]


class Acknowledgeable(msgspec.Struct, frozen=True):
    """Names for `known_failures`, and the checks that no name can acknowledge, with the reason."""

    names: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()


def judge_base(results: Sequence[CommandResult], known: frozenset[str]) -> BaseChecks:
    """Sorts the results on a base tree; a check that was run twice is judged by both runs."""
    unstarted, red = [], []
    for runs in _runs_by_name(results).values():
        if any(_unstarted(r) for r in runs):
            unstarted.append(runs[0])
        elif judge_check(runs, runs, known).verdict in ("failed", "timeout", "blocked"):
            red.append(runs[0])
    return BaseChecks(tuple(unstarted), tuple(red))


def acknowledgeable(
    results: Sequence[CommandResult], known: frozenset[str], no_tests: Collection[str] = ()
) -> Acknowledgeable:
    """What a person may acknowledge on a base tree: failing tests by name, else the whole check by its own.

    Without names a check has to say how many tests pass, unless it runs none: `no_tests` are those.
    """
    base = judge_base(results, known)
    failing = {r.name for r in base.red if r.verdict == "failed"}
    named = [(r, failure_names(r, no_tests)) for r in results if r.name in failing and r.verdict == "failed"]
    names = (name for _, found in named for name in found)
    fresh = (name for name in dict.fromkeys(names) if not is_known(name, known))
    refused = [(r.name, "it cannot start") for r in base.unstarted]
    refused += [(r.name, "it did not come to its end") for r in base.red if r.verdict == "timeout"]
    refused += [(r.name, "it may not run here") for r in base.red if r.verdict == "blocked"]
    refused += dict.fromkeys((r.name, NO_NAMES) for r, found in named if not found)
    return Acknowledgeable(tuple(fresh), tuple(refused))


def count_known(result: CommandResult, base: Sequence[CommandResult], known: frozenset[str]) -> int:
    """How many failures of a check are acknowledged, where all are; 0 for any other result.

    A check whose failures have no names counts as one.
    """
    before = [r for r in base if (r.cwd, r.argv) == (result.cwd, result.argv)]
    return len(failure_names(result)) or 1 if judge_check([result], before, known).verdict == "known" else 0


def failure_names(result: CommandResult, no_tests: Collection[str] = ()) -> tuple[str, ...]:
    """The names under which a failing check can be acknowledged: of its tests, else its own; none where it tells too little."""
    report = result.report
    if report is not None and report.failed and not report.cut:
        return report.failed
    return (result.name,) if result.passed or result.name in no_tests else ()


def _unstarted(result: CommandResult) -> bool:
    return result.verdict == "failed" and result.exit_code in (None, NOT_FOUND)


def _runs_by_name(results: Sequence[CommandResult]) -> dict[str, list[CommandResult]]:
    runs: dict[str, list[CommandResult]] = {}
    for result in results:
        runs.setdefault(result.name, []).append(result)
    return runs
