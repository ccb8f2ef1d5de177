"""A pytest plugin that reports each test with pytest's own result; it changes nothing and prints nothing."""

from __future__ import annotations

import os

import pytest
from steersman_integrity import RunnerWatch, list_loaded_modules
from steersman_wire import ENDED_EVENT, open_reporter_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_WORKER_OUTPUT_KEY = "steersman_found"


def pytest_addoption(pluginmanager: Any) -> None:
    """Called when the plugin is loaded, before any file of the project: the reporter socket is opened here."""
    send_event = open_reporter_socket()
    if send_event is not None:
        pluginmanager.register(PytestReporter(send_event))
    elif "PYTEST_XDIST_WORKER" in os.environ:
        pluginmanager.register(XdistWorkerReporter())


class XdistWorkerReporter:
    """In a process of pytest-xdist: what it has loaded and replaced goes to the controller."""

    def __init__(self) -> None:
        self._watch = RunnerWatch()

    def pytest_runtest_logfinish(self) -> None:
        """Between two tests."""
        self._watch.look()

    def pytest_sessionfinish(self, session: Any) -> None:
        """At the end of the worker."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_WORKER_OUTPUT_KEY] = [self._watch.replaced(), list_loaded_modules()]


class PytestReporter:
    """The hooks of the outermost session. Where tests run in workers the controller receives the results."""

    def __init__(self, send_event: Callable[..., None]) -> None:
        self._send_event, self._watch = send_event, RunnerWatch()
        self._files_by_worker: dict[str, list[str]] = {}
        self._root = os.getcwd()
        self._replaced: dict[str, None] = {}
        self._loaded: dict[str, str] = {}

    def pytest_sessionstart(self, session: Any) -> None:
        """Names of tests are relative to this directory."""
        self._root = str(getattr(session.config, "rootpath", self._root))

    def pytest_collectreport(self, report: Any) -> None:
        """What was not collected: a module that broke or was skipped."""
        if report.outcome != "passed":
            self._send_files("", report.nodeid, "")
            self._send_event("test", "", report.nodeid, "collect", report.outcome, False)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of one test; a part of a test counts where it has failed."""
        if report.when == "teardown":
            self._watch.look()
        if hasattr(report, "context") and report.outcome != "failed":
            return
        worker = getattr(report, "worker_id", "")
        expected = hasattr(report, "wasxfail")
        self._send_files(worker, report.nodeid, report.location[0])
        self._send_event("test", worker, report.nodeid, report.when, report.outcome, expected)

    def _send_files(self, worker: str, nodeid: str, location: str) -> None:
        """The file that names the test and the one that holds its code, where they differ from those reported last."""
        names = dict.fromkeys((nodeid.partition("::")[0], location))
        files = [os.path.normpath(os.path.join(self._root, name)) for name in names if name]
        if self._files_by_worker.get(worker) != files:
            self._files_by_worker[worker] = files
            self._send_event("from", worker, files)

    @pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is no such hook
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist is done."""
        replaced, loaded = getattr(node, "workeroutput", {}).get(_WORKER_OUTPUT_KEY, ([], {}))
        self._replaced.update(dict.fromkeys(replaced))
        self._loaded.update(loaded)

    def pytest_sessionfinish(self, session: Any, exitstatus: Any) -> None:
        """The end, and how many tests it was to come to."""
        self._replaced.update(dict.fromkeys(self._watch.replaced()))
        self._loaded.update(list_loaded_modules())
        self._send_event("loaded", self._loaded)
        self._send_event("replaced", list(self._replaced))
        self._send_event(ENDED_EVENT, int(exitstatus), session.testscollected)
