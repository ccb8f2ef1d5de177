"""What a check means beside the same check on the base tree: known failures, vanished tests, flakiness.

A failure is known where a person has acknowledged it by name and it was there before any change; everything else that
fails has failed. What differs between two runs on the same tree is flaky: told, never averaged.
**Invariant:** absence of evidence is failure; nothing here turns a failure nobody acknowledged into a pass.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from steersman.contracts.commands import CommandResult, Report, full_output
from steersman.judges.holders import silent
from steersman.judges.summaries import count_failures, failures_told

Verdict = Literal["passed", "failed", "blocked", "timeout", "no_tests", "known", "flaky"]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One check on one tree, all its runs together."""

    name: str
    verdict: Verdict
    tests: int = (
        0  # that passed, or ran where nobody tells them apart; 1 where the exit code is enough by choice
    )
    vanished: tuple[
        str, ...
    ] = ()  # names of tests that ran on the base tree, are gone now, and were not replaced
    skipped: tuple[str, ...] = ()  # names of tests that ran on the base tree and are skipped now
    missing: int = 0  # how many tests are gone or skipped, also where they have no names
    silent: tuple[
        str, ...
    ] = ()  # what broke on the base tree and is not answered for by a test that passes now
    doubt: str = ""  # what else a person should look at before it counts
    tampered: tuple[str, ...] = ()  # what is done to the runner that was not done on the base tree, in words


def sound(result: CommandResult) -> Verdict:
    """The recorded verdict, unless the record itself contradicts a pass."""
    if result.verdict == "passed" and result.exit_code not in (None, 0):
        return "failed"
    if result.verdict == "passed" and result.tests == 0:
        return "no_tests"
    return result.verdict


def judge_check(
    runs: Sequence[CommandResult], base: Sequence[CommandResult] | None, known: frozenset[str] = frozenset()
) -> Judged:
    """One check from its runs on this tree and on the base tree (None: it was not run there)."""
    verdict = _verdict(runs, base or (), known)
    vanished, skipped, missing = _missing(runs, base or ())
    fewer = most_tests(base or ()) - most_tests(runs)
    return Judged(
        name=runs[0].name,
        verdict=verdict,
        tests=_tests(runs, verdict),
        vanished=vanished,
        skipped=skipped,
        missing=missing if has_names(base or ()) and has_names(runs) else max(0, fewer),
        silent=silent(reports_of(runs), reports_of(base or ()))
        if has_names(base or ()) and has_names(runs)
        else (),
        doubt=_doubt(runs, base, verdict),
        tampered=_tampered(reports_of(runs), reports_of(base or ())),
    )


def _verdict(runs: Sequence[CommandResult], base: Sequence[CommandResult], known: frozenset[str]) -> Verdict:
    found = [sound(r) for r in runs]
    if "failed" not in found:
        return found[0]
    if _acknowledged(runs, base, known):
        return "known"
    return "flaky" if set(found) == {"passed", "failed"} else "failed"


def _acknowledged(
    runs: Sequence[CommandResult], base: Sequence[CommandResult], known: frozenset[str]
) -> bool:
    """Every failure is one that a person has named and that the base tree had too, ended in the same way."""
    failing, before = _failing(runs), _failing(base)
    if not before or any(sound(r) not in ("failed", "passed") for r in runs):
        return False
    if not {r.exit_code for r in failing} <= {r.exit_code for r in before}:
        return False
    names, old = _failures(failing), _failures(before)
    whole = runs[0].name in known
    if names is None or old is None:
        return whole and names is old and (_counts_nothing((*runs, *base)) or fails_no_worse(runs, base))
    return names <= old and (whole or all(is_known(n, known) for n in names))


def _counts_nothing(results: Sequence[CommandResult]) -> bool:
    """Whether no test was ever counted, as of a linter: then it speaks for nothing."""
    return all(r.tests is None for r in results)


def fails_no_worse(runs: Sequence[CommandResult], base: Sequence[CommandResult]) -> bool:
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
    printed = max(count_failures(full_output(r)) for r in results)
    return min(passed for passed, _ in counted), max(failed for _, failed in counted), printed


def acknowledged_as_whole(runs: Sequence[CommandResult], judged: Judged) -> bool:
    """Whether a check is known to fail by its own name alone, so that its tests speak by their number."""
    return judged.verdict == "known" and judged.tests > 0 and _failures(_failing(runs)) is None


def _failing(results: Sequence[CommandResult]) -> list[CommandResult]:
    return [r for r in results if sound(r) == "failed"]


def _failures(failing: Sequence[CommandResult]) -> set[str] | None:
    """The names of what failed; None where a failure has no name."""
    names: set[str] = set()
    for r in failing:
        if r.report is None or r.report.cut or not r.report.failed:
            return None
        names.update(r.report.failed)
    return names


def is_known(name: str, known: Iterable[str]) -> bool:
    """Whether a test is acknowledged, as its runner names it or as `path/test_x.py::test_y`."""
    wanted = spelled(name)
    return any(spelled(k) == wanted for k in known)


def spelled(name: str) -> str:
    """One spelling for the names of a test: dots for slashes in its module, no `.py`, dots for `::`."""
    module, _, rest = name.partition("::")
    return ".".join(filter(None, (module.removesuffix(".py").replace("/", "."), rest.replace("::", "."))))


def stale(known: Iterable[str], base: Sequence[CommandResult]) -> tuple[str, ...]:
    """Acknowledged names that did not fail on the base tree: they can be taken out."""
    failing = _failing(base)
    names = {spelled(n) for r in failing for n in (r.name, *(r.report.failed if r.report else ()))}
    return tuple(sorted(k for k in known if spelled(k) not in names))


def _tests(runs: Sequence[CommandResult], verdict: Verdict) -> int:
    """How many tests speak for a pass; what failed does not."""
    if verdict == "known":
        return min(r.report.ran - r.report.failures if r.report else r.passed or 0 for r in runs)
    counted = [r.tests or int(r.exit_code_only) for r in runs if verdict != "flaky" or sound(r) == "passed"]
    return min(counted)


def has_names(results: Sequence[CommandResult]) -> bool:
    """Whether the runner told its tests by name, all of them."""
    return any(r.report is not None and not r.report.cut for r in results)


def _missing(
    runs: Sequence[CommandResult], base: Sequence[CommandResult]
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Tests that are gone and tests that are skipped now, and how many count as missing.

    A new test that passes makes up for one that is gone: it may be the same under another name. A skipped one has
    kept its name, so that nothing makes up for it.
    """
    if not has_names(runs) or not has_names(base):
        return (), (), 0
    now = {name for r in reports_of(runs) for name in r.skipped}
    lost = sorted((ran_tests(base) - ran_tests(runs)).elements())
    skipped = tuple(name for name in lost if name in now)
    gone = tuple(name for name in lost if name not in now)
    passed: Counter[str] = Counter()
    for r in reports_of(runs):
        passed |= Counter(r.passed)
    net = max(0, len(gone) - (passed - ran_tests(base)).total())
    return gone if net else (), skipped, net + len(skipped)


def ran_tests(results: Sequence[CommandResult]) -> Counter[str]:
    """The tests that ran, by name, without what only holds tests."""
    ran: Counter[str] = Counter()
    for r in reports_of(results):
        ran |= Counter((*r.passed, *r.failed)) - Counter(r.broken)
    return ran


def reports_of(results: Sequence[CommandResult]) -> list[Report]:
    """The reports of those that have one."""
    return [r.report for r in results if r.report is not None]


def most_tests(results: Sequence[CommandResult]) -> int:
    """The highest count of tests, without what only holds tests."""
    return max(((r.tests or 0) - _counted_holders(r.report) for r in results), default=0)


def _counted_holders(report: Report | None) -> int:
    """How many of those that were counted only hold tests; go's packages are not counted."""
    return len(report.broken) if report is not None and report.form != "go" else 0


def _tampered(now: Sequence[Report], base: Sequence[Report]) -> tuple[str, ...]:
    """Functions of the runner that are replaced now, and modules that a file of the tree stands in for now.

    Without a report on the base there is nothing to compare with: honest plugins replace functions too.
    """
    if not base:
        return ()
    before = {name for report in base for name in report.replaced}
    replaced = {name for report in now for name in report.replaced} - before
    elsewhere = {name for report in base for name, path in report.modules.items() if not path}
    hidden = {(n, p) for report in now for n, p in report.modules.items() if p and n in elsewhere}
    return (
        *(f"the change replaces {name} while tests run" for name in sorted(replaced)),
        *(
            f"the module {n} now comes from {p}, which hides the one that was there before"
            for n, p in sorted(hidden)
        ),
    )


def _doubt(runs: Sequence[CommandResult], base: Sequence[CommandResult] | None, verdict: Verdict) -> str:
    if verdict == "flaky":
        return "it failed and passed on the same tree"
    if runs[0].source == "project" and base is None:
        return "it was not run on the base tree"
    before: Counter[str] = Counter()
    for r in base or ():
        before |= _other_words(r)
    spoke = any(Counter(failures_told(full_output(r))) - before for r in runs if sound(r) == "passed")
    return "its exit code is 0, its words speak of failures" if spoke else ""


def _other_words(result: CommandResult) -> Counter[str]:
    """Closing lines of failure that are not the check's own: of a check that failed the last one is."""
    told = failures_told(full_output(result))
    return Counter(told if sound(result) == "passed" else told[:-1])
