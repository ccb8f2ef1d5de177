"""What held tests on the base tree and broke there, so that nobody knows which: what has to speak for it now.

A package that did not build, a module that could not be imported, a class that could not be set up is no test, and
cannot vanish as one. But it cannot stay silent either, nor be the place where tests are skipped for the first time.
**Invariant:** pure; what broke is answered only by a test of it that passes now.
"""

import re
from collections import Counter
from collections.abc import Sequence

from steersman.contracts.commands import Report
from steersman.judges.witness import holder

_UNBUILT = re.compile(r" \[(?:build|setup) failed\]$")  # what go says behind the name of a package


def silent(now: Sequence[Report], base: Sequence[Report]) -> tuple[str, ...]:
    """What broke on the base tree and has no test now that passes, and the tests in it that are skipped now."""
    ran = _names(base, "passed") + _names(base, "failed") - _names(base, "broken")
    still = _names(now, "failed")
    broken = [name for name in _names(base, "broken") if name not in still and not _inside(name, ran)]
    passed, skipped = _names(now, "passed"), _names(now, "skipped") - _names(base, "skipped")
    if any(r.form == "junit" for r in now):
        return _files(broken, _names(now, "empty"), passed - ran, skipped)
    told = _empty(now)
    found = [name for name in broken if not _inside(name, passed) and _UNBUILT.sub("", name) not in told]
    return tuple(sorted({*found, *(test for name in broken for test in _inside(name, skipped))}))


def _files(
    broken: list[str], empty: Counter[str], new: Counter[str], skipped: Counter[str]
) -> tuple[str, ...]:
    """node does not say which file a test is in: each file that broke needs one of the tests that nobody knew."""
    if not broken:
        return ()
    unanswered = broken if new.total() < len(broken) else [name for name in broken if name in empty]
    return tuple(sorted({*unanswered, *skipped}))


def _empty(now: Sequence[Report]) -> Counter[str]:
    """go knows by the names of its files that a package has no tests."""
    return _names([r for r in now if r.form == "go"], "empty")


def _inside(name: str, tests: Counter[str]) -> list[str]:
    """The tests of what has this name, as its runner names both."""
    if held := holder(name):
        return [test for test in tests if f".{held}." in f".{test}."]
    held = _UNBUILT.sub("", name).removesuffix("__init__.py").rstrip("/")
    return [test for test in tests if not held or test.startswith((f"{held}::", f"{held}/"))]


def _names(reports: Sequence[Report], result: str) -> Counter[str]:
    names: Counter[str] = Counter()
    for report in reports:
        names |= Counter(getattr(report, result))
    return names
