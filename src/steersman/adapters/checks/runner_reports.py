"""Asks a test runner for its own report in a fresh place of ours, and hears it while it is told.

The place is new for each execution, outside the worktree, read-only in a box (`Asked.folder`), and gone afterwards.
pytest and unittest get a witness of ours beside them (`witness`), node a reporter and a pipe for it; go prints its report, and
what stands between it and its tests tells where they did not come to their end.
**Invariant:** no file that a test could write is read here.
"""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from steersman.adapters.checks import witness
from steersman.adapters.checks.code_origins import add_module_origins, find_linked_packages
from steersman.adapters.checks.reporter_socket import ReporterPipe, ReporterSocket
from steersman.adapters.process.program_runner import OUTPUT_CAP
from steersman.adapters.sandbox.scratch import scratch_directory
from steersman.contracts.commands import RunnerReport
from steersman.judges.evidence.printed_summaries import count_printed_tests
from steersman.judges.evidence.runner_reports import (
    MAX_REPORT_BYTES,
    UnreadableReport,
    read_go_report,
    read_node_report,
)
from steersman.judges.evidence.runners import (
    GO_EXEC_SCRIPT,
    NODE_PRELOAD_FILE,
    NODE_REPORT_PIPE,
    NODE_REPORTER_FILE,
    REPORTER_SOCKET_NAME,
    RunnerForm,
    find_report_form,
    reporter_environment,
)
from steersman.judges.evidence.test_reporter import read_reporter_events

_REPORTER_FILES = {
    "pytest": ("steersman_wire.py", "steersman_integrity.py", "steersman_witness.py"),
    "unittest": ("steersman_wire.py", "steersman_integrity.py", "sitecustomize.py"),
    "indirect": ("steersman_wire.py", "steersman_integrity.py", "steersman_witness.py", "sitecustomize.py"),
    "node": (NODE_REPORTER_FILE, NODE_PRELOAD_FILE),
    "go": (GO_EXEC_SCRIPT,),
}


class ReportRequest:
    """One execution's report: what to put into the environment, and afterwards what it says."""

    def __init__(self, argv: Sequence[str], form: RunnerForm | None, directory: str) -> None:
        self._form, self.folder = form, directory
        self._word = secrets.token_hex(16)
        self.env = reporter_environment(argv, form, directory) if form is not None else {}
        self.cap = MAX_REPORT_BYTES if form == "go" else OUTPUT_CAP  # go's report is what it prints

    @contextmanager
    def listen(self) -> Iterator["ReportRequest"]:
        """Hears what is told as long as this is open."""
        for name in _REPORTER_FILES[self._form] if self._form else ():
            path = shutil.copy(os.path.join(os.path.dirname(witness.__file__), name), self.folder)
            os.chmod(path, 0o500)  # an installer may have lost it
        match self._form:
            case "pytest" | "unittest" | "indirect":
                self._source: ReporterSocket | ReporterPipe = ReporterSocket(
                    os.path.join(self.folder, REPORTER_SOCKET_NAME), self._word, MAX_REPORT_BYTES
                )
            case "node":
                self._source = ReporterPipe(os.path.join(self.folder, NODE_REPORT_PIPE), MAX_REPORT_BYTES)
            case _:
                yield self
                return
        with self._source.open():
            yield self

    def read_report(
        self, output: str, workdir: str = "", *, mounted: str = "", errors: str = ""
    ) -> tuple[RunnerReport | UnreadableReport | None, str]:
        """The report, or why there is none, and the output as people know it; None where none was asked for.

        A name in it that is a place in the working directory is told from there; `mounted` is where a box shows it.
        """
        candidates = (workdir, os.path.realpath(workdir), mounted) if workdir else ()
        trees = tuple(filter(None, candidates))
        match self._form:
            case None:
                return None, output
            case "go":
                return read_go_report(output, trees)
            case "node":
                node_report = read_node_report(self._source.received_text(), trees)
                if isinstance(node_report, RunnerReport) and workdir:
                    node_report = replace(node_report, outside=find_linked_packages(workdir))
                return node_report, output
            case "indirect":
                return self._read_indirect_report(f"{output}\n{errors}", workdir, trees), output
            case form:
                python_report = read_reporter_events(form, self._source.received_text(), self._word, trees)
                return add_module_origins(python_report, workdir) if isinstance(
                    python_report, RunnerReport
                ) else python_report, output

    def _read_indirect_report(
        self, printed: str, workdir: str, trees: Sequence[str]
    ) -> RunnerReport | UnreadableReport | None:
        """The report of a Python runner behind another program, such as make; None where none came.

        It counts where it has as many tests as were printed: else more than one runner was started.
        """
        if not (isinstance(self._source, ReporterSocket) and self._source.is_connected):
            return None
        report = read_reporter_events("pytest", self._source.received_text(), self._word, trees)
        if not isinstance(report, RunnerReport):
            return report
        return (
            add_module_origins(report, workdir)
            if report.ran + report.expected == count_printed_tests(printed)
            else None
        )


@contextmanager
def request_report(argv: Sequence[str]) -> Iterator[ReportRequest]:
    """A fresh place for the report of one execution of this argv."""
    form = find_report_form(argv) or ("indirect" if argv else None)
    if form is None:
        yield ReportRequest(argv, form, "")
        return
    with (
        scratch_directory() as directory,
        ReportRequest(argv, form, os.path.realpath(directory)).listen() as request,
    ):
        yield request
