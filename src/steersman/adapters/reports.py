"""Asks a test runner for its own report in a fresh place of ours, and reads what it left there.

The place is new for each execution, outside the worktree, and gone afterwards; a box that runs the command has to let
it write there (`Asked.folder`).
**Invariant:** links are not followed, and never more is read than the limit and one byte.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from steersman.adapters.processes import OUTPUT_CAP
from steersman.contracts.commands import Report
from steersman.judges.reports import MOST_BYTES, Form, Unreadable, environment, form_of, read_go, read_junit

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Asked:
    """One execution's report: what to put into the environment, and afterwards what it says."""

    def __init__(self, form: Form | None, folder: str) -> None:
        self._form, self.folder = form, folder
        self._path = os.path.join(folder, "report.xml")
        self.env = environment(form, self._path) if form is not None else {}
        self.cap = MOST_BYTES if form == "go" else OUTPUT_CAP  # go's report is what it prints

    def heard(self, output: str) -> tuple[Report | Unreadable | None, str]:
        """The report, or why there is none, and the output as people know it; None where none was asked for."""
        match self._form:
            case None:
                return None, output
            case "go":
                return read_go(output)
            case _:
                return self._read(), output

    def _read(self) -> Report | Unreadable:
        try:
            with open(os.open(self._path, _READ), "rb") as file:
                return read_junit(file.read(MOST_BYTES + 1))
        except OSError as error:
            return Unreadable(f"it left no report: {error.strerror}")


@contextmanager
def asked(argv: Sequence[str]) -> Iterator[Asked]:
    """A fresh place for the report of one execution of this argv."""
    form = form_of(argv)
    if form in (None, "go"):
        yield Asked(form, "")
        return
    with tempfile.TemporaryDirectory(prefix="report-", ignore_cleanup_errors=True) as folder:
        yield Asked(form, os.path.realpath(folder))
