"""A pytest plugin that tells each test as pytest tells it to itself; it changes nothing and prints nothing."""

from __future__ import annotations

from steersman_wire import ENDED, taken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def pytest_addoption(pluginmanager: Any) -> None:
    """Called when the plugin is loaded, before any file of the project: the wire is taken here."""
    tell = taken()
    if tell is not None:
        pluginmanager.register(Witness(tell))


class Witness:
    """The hooks of the outermost session. Where tests run in workers it is the controller that hears of them."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self._tell = tell

    def pytest_collectreport(self, report: Any) -> None:
        """What was not collected: a module that broke or was skipped."""
        if report.outcome != "passed":
            self._tell("test", "", report.nodeid, "collect", report.outcome, False)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of one test; a part of a test counts where it has failed."""
        if hasattr(report, "context") and report.outcome != "failed":
            return
        worker = getattr(report, "worker_id", "")
        expected = hasattr(report, "wasxfail")
        self._tell("test", worker, report.nodeid, report.when, report.outcome, expected)

    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> None:
        """The end, and how many tests it was to come to."""
        self._tell(ENDED, int(exitstatus), session.testscollected)
