"""Branch coverage of kernel, machines and judges, in the one run of all tests; importing this starts it.

Tracing doubles what a test costs, so it is on only while modules are imported and while the tests of those rooms run.
Random and repeating tests (`untraced`) run without it: what counts is the same in every run.
"""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage

TESTS = Path(__file__).resolve().parents[1]
TRACED = tuple(TESTS / room for room in ("kernel", "machines", "judges"))
PACKAGES = tuple(f"steersman.{room.name}." for room in TRACED)
WANTED = "STEERSMAN_TEST_COVERAGE" in os.environ and "PYTEST_XDIST_WORKER" in os.environ


class BranchCoverage:
    """A pytest plugin that writes one data file per worker, for `coverage combine`."""

    def __init__(self) -> None:
        top = TESTS.parent
        self._coverage = Coverage(
            str(top / ".coverage"), data_suffix=True, config_file=str(top / "pyproject.toml")
        )
        self._coverage.start()
        self._tracing = True

    def _trace(self, *, wanted: bool) -> None:
        if wanted and not self._tracing:
            clear_caches()  # or what a test without tracing has made runs no line in the next one
            self._coverage.start()
        elif self._tracing and not wanted:
            self._coverage.stop()
        self._tracing = wanted

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Traces the tests of the three rooms."""
        self._trace(wanted=is_traced(item))
        return (yield)

    def pytest_collection_finish(self) -> None:
        """All modules are imported."""
        self._trace(wanted=False)

    def pytest_unconfigure(self) -> None:
        """Writes the data."""
        self._trace(wanted=False)
        self._coverage.save()


def is_traced(item: pytest.Item) -> bool:
    """Whether a test counts for coverage."""
    repeats = item.get_closest_marker("untraced") or getattr(
        getattr(item, "obj", None), "is_hypothesis_test", False
    )
    return not repeats and any(room in item.path.parents for room in TRACED)


def clear_caches() -> None:
    """Forgets what functions of the three rooms have kept."""
    for name, module in [*sys.modules.items()]:
        if name.startswith(PACKAGES):
            for value in vars(module).values():
                if clear := getattr(value, "cache_clear", None):
                    clear()


PLUGIN = BranchCoverage() if WANTED else None
