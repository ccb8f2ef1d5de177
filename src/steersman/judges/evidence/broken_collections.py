"""Collections of tests that broke on the base tree: which passing tests have to answer for them now.

A package that did not build, a module that could not be imported and a class that could not be set up are not tests, so
they cannot vanish as tests. But they must not stay silent, and tests in them must not be skipped for the first time.
**Invariant:** pure. Only a passing test of a broken collection answers for it.
"""

import re
from collections import Counter
from collections.abc import Sequence

from steersman.contracts.commands import RunnerReport
from steersman.judges.evidence.test_reporter import find_failed_collection

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
