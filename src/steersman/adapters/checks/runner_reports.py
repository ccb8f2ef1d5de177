"""Asks a test runner for its own report and reads it while the tests run.

Each execution has a directory of its own, outside the worktree, read-only in a sandbox, and removed afterwards. pytest
and unittest load our reporter (`reporters`), node a reporter and a pipe; go prints its report, and our `-exec` program says
which test binaries did not reach their end. A report also names code of the project that was loaded from outside the
tree: an editable install of another checkout makes tests judge code that is not the change's.
**Invariant:** no file that a test could write is read here; links are looked at, and nothing behind them is opened.
"""

import asyncio
import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec.structs import replace

from steersman.adapters.checks import reporters
from steersman.adapters.process.program_runner import OUTPUT_CAP
from steersman.adapters.sandbox.space_limit import scratch_directory
from steersman.contracts.commands import RunnerReport
from steersman.judges.evidence.runner_reports import (
    MAX_REPORT_BYTES,
    UnreadableReport,
    read_go_report,
    read_node_report,
    read_reporter_events,
)
from steersman.judges.evidence.runners import (
    GO_EXEC_SCRIPT,
    NODE_PRELOAD_FILE,
    NODE_REPORT_PIPE,
    NODE_REPORTER_FILE,
    REPORTER_SOCKET_NAME,
    RunnerForm,
    count_printed_tests,
    find_report_form,
    reporter_environment,
)

# ── reporter socket ─────────────────────────────────────────────────────────────────────────────────────────────────────

# Reads what a runner reports while it runs, as it is sent.
#
# A wire is for one process: the first that connects, and no child of it, for a socket cannot be
# opened again through /proc. A pipe is for a runner that only knows files: its name is removed when its first bytes have come.
# **Invariant:** what was sent cannot be withdrawn; memory is bounded whatever arrives, and the sender never waits for us.


REPORTER_CHUNK_BYTES = 64 * 1024


class ReporterSocket:
    """The listening end; `token` is sent to the one process that connects."""

    def __init__(self, path: str, token: str, limit: int) -> None:
        self._path, self._token = path, token.encode("ascii")
        self._received = _ReceivedBytes(limit)
        self._connection: socket.socket | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Listens as long as it is open; what came is kept."""
        loop = asyncio.get_running_loop()
        try:
            self._listener.bind(self._path)
            self._listener.listen(1)
            self._listener.setblocking(False)
            loop.add_reader(self._listener, self._accept_runner)
            yield
        finally:
            for sock in (self._listener, self._connection):
                if sock is not None:
                    _remove_socket_reader(sock)
                    sock.close()

    @property
    def is_connected(self) -> bool:
        """Whether a runner has connected."""
        self.received_text()
        return self._connection is not None

    def received_text(self) -> bytes:
        """All that came until now."""
        if self._connection is None:
            self._accept_runner()
        if self._connection is not None:
            self._received.take(self._connection.fileno())
        return bytes(self._received.data)

    def _accept_runner(self) -> None:
        try:
            self._connection, _ = self._listener.accept()
        except OSError:
            return
        _remove_socket_reader(self._listener)
        self._listener.close()
        with suppress(OSError):
            os.unlink(self._path)
        self._connection.setblocking(False)
        with suppress(OSError):
            self._connection.send(self._token)
        asyncio.get_running_loop().add_reader(self._connection, self._read_available)

    def _read_available(self) -> None:
        if self._connection is not None and not self._received.take(self._connection.fileno()):
            _remove_socket_reader(self._connection)


class ReporterPipe:
    """A named pipe; both ends are held here, so that a writer finds a reader and an early end is no end."""

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._pipe_fd = path, -1
        self._received = _ReceivedBytes(limit)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Reads as long as it is open; what came is kept."""
        os.mkfifo(self._path, 0o600)
        self._pipe_fd = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pipe_fd, self._read_available)
        try:
            yield
        finally:
            loop.remove_reader(self._pipe_fd)
            os.close(self._pipe_fd)

    def received_text(self) -> bytes:
        """All that came until now."""
        self._read_available()
        return bytes(self._received.data)

    def _read_available(self) -> None:
        self._received.take(self._pipe_fd)
        if self._received.data:
            with suppress(OSError):
                os.unlink(self._path)


class _ReceivedBytes:
    """Bytes up to the limit and one; what is beyond is taken and dropped."""

    def __init__(self, limit: int) -> None:
        self._limit, self.data = limit, bytearray()

    def take(self, fd: int) -> bool:
        """All that is there now; False when nothing will follow."""
        while True:
            try:
                piece = os.read(fd, REPORTER_CHUNK_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not piece:
                return False
            self.data += piece[: self._limit + 1 - len(self.data)]


def _remove_socket_reader(sock: socket.socket) -> None:
    if sock.fileno() >= 0:
        asyncio.get_running_loop().remove_reader(sock)


# ── runner reports ────────────────────────────────────────────────────────────────────────────────


_REPORTER_FILES = {
    "pytest": ("steersman_wire.py", "steersman_integrity.py", "steersman_witness.py"),
    "unittest": ("steersman_wire.py", "steersman_integrity.py", "sitecustomize.py"),
    "indirect": ("steersman_wire.py", "steersman_integrity.py", "steersman_witness.py", "sitecustomize.py"),
    "node": (NODE_REPORTER_FILE, NODE_PRELOAD_FILE),
    "go": (GO_EXEC_SCRIPT,),
}
_IMPORT_ROOTS = ("", "src", "lib", "python")  # folders that imports begin from, as a rule
_MAX_SEARCH_DEPTH = 4  # folders below the tree that are searched for a package of a larger repository
_INSTALL_DIRECTORIES = frozenset({"node_modules", "site-packages", "dist-packages", "build", "dist"})


class ReportRequest:
    """One execution's report: what to put into the environment, and afterwards what it says."""

    def __init__(self, argv: Sequence[str], form: RunnerForm | None, directory: str) -> None:
        self._form, self.folder = form, directory
        self._word = secrets.token_hex(16)
        self.env = reporter_environment(argv, form, directory) if form is not None else {}
        self.cap = MAX_REPORT_BYTES if form == "go" else OUTPUT_CAP  # go's report is what it prints

    @contextmanager
    def listen(self) -> Iterator["ReportRequest"]:
        """Receives the report as long as this is open."""
        for name in _REPORTER_FILES[self._form] if self._form else ():
            path = shutil.copy(os.path.join(os.path.dirname(reporters.__file__), name), self.folder)
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

        Paths below the working directory become relative to it; `mounted` is where a sandbox shows it.
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


def add_module_origins(report: RunnerReport, workdir: str) -> RunnerReport:
    """The report with the project's modules that came from outside the tree; other places are left out of it."""
    outside = {
        module: origin
        for module, origin in report.modules.items()
        if os.path.isabs(origin) and _is_project_module(module, origin, workdir)
    }
    inside = {
        module: "" if os.path.isabs(origin) or _is_installed_path(origin) else origin
        for module, origin in report.modules.items()
    }
    messages = tuple(f"{name} was loaded from {path}" for name, path in sorted(outside.items()))
    return replace(report, modules=inside, outside=messages)


def find_linked_packages(workdir: str) -> tuple[str, ...]:
    """Packages in the tree's `node_modules` that are links to a place outside the tree."""
    installed = os.path.join(workdir, "node_modules")
    paths = (os.path.realpath(workdir), os.path.realpath(installed))
    return tuple(
        f"{os.path.relpath(link, installed)} was loaded from {real}"
        for link in sorted(_find_package_links(installed))
        if not (real := os.path.realpath(link)).startswith(tuple(f"{own_path}{os.sep}" for own_path in paths))
    )


def _find_package_links(directory: str) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.name.startswith("@"):
                    yield from _find_package_links(entry.path)
    except OSError:
        return


def _is_installed_path(path: str) -> bool:
    return not _INSTALL_DIRECTORIES.isdisjoint(path.split("/"))


def _is_project_module(name: str, path: str, workdir: str) -> bool:
    """Whether the tree has a module of this name; a plain dependency is looked for where imports begin alone."""
    module = name.replace(".", "/")
    if any(_is_python_module(os.path.join(workdir, root, module)) for root in _IMPORT_ROOTS):
        return True
    return not _is_installed_path(path) and any(
        _is_python_module(f"{directory}/{module}") for directory in _walk_search_directories(workdir)
    )


def _is_python_module(path: str) -> bool:
    return os.path.isfile(f"{path}.py") or os.path.isfile(f"{path}/__init__.py")


def _walk_search_directories(workdir: str) -> Iterator[str]:
    """The folders of the tree down to a bound, without what is installed or hidden."""
    for directory, subdirectories, _ in os.walk(workdir):
        yield directory
        is_deepest = os.path.relpath(directory, workdir).count(os.sep) + 1 >= _MAX_SEARCH_DEPTH
        subdirectories[:] = (
            ()
            if is_deepest
            else [n for n in subdirectories if not n.startswith(".") and n not in _INSTALL_DIRECTORIES]
        )
