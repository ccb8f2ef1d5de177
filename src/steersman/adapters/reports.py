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

from steersman.adapters import witness
from steersman.adapters.origins import linked_packages, with_origins
from steersman.adapters.processes import OUTPUT_CAP
from steersman.adapters.scratch import scratch
from steersman.adapters.wires import Pipe, Wire
from steersman.contracts.commands import Report
from steersman.judges.reports import MOST_BYTES, Unreadable, read_go, read_node
from steersman.judges.runners import BETWEEN, PIPE, PRELOAD, REPORTER, WIRE, Form, environment, form_of
from steersman.judges.summaries import printed_tests
from steersman.judges.witness import read_told

_FILES = {
    "pytest": ("steersman_wire.py", "steersman_integrity.py", "steersman_witness.py"),
    "unittest": ("steersman_wire.py", "steersman_integrity.py", "sitecustomize.py"),
    "indirect": ("steersman_wire.py", "steersman_integrity.py", "steersman_witness.py", "sitecustomize.py"),
    "node": (REPORTER, PRELOAD),
    "go": (BETWEEN,),
}


class Asked:
    """One execution's report: what to put into the environment, and afterwards what it says."""

    def __init__(self, argv: Sequence[str], form: Form | None, folder: str) -> None:
        self._form, self.folder = form, folder
        self._word = secrets.token_hex(16)
        self.env = environment(argv, form, folder) if form is not None else {}
        self.cap = MOST_BYTES if form == "go" else OUTPUT_CAP  # go's report is what it prints

    @contextmanager
    def listening(self) -> Iterator["Asked"]:
        """Hears what is told as long as this is open."""
        for name in _FILES[self._form] if self._form else ():
            copied = shutil.copy(os.path.join(os.path.dirname(witness.__file__), name), self.folder)
            os.chmod(copied, 0o500)  # an installer may have lost it
        match self._form:
            case "pytest" | "unittest" | "indirect":
                self._source: Wire | Pipe = Wire(os.path.join(self.folder, WIRE), self._word, MOST_BYTES)
            case "node":
                self._source = Pipe(os.path.join(self.folder, PIPE), MOST_BYTES)
            case _:
                yield self
                return
        with self._source.open():
            yield self

    def heard(
        self, output: str, workdir: str = "", *, mounted: str = "", errors: str = ""
    ) -> tuple[Report | Unreadable | None, str]:
        """The report, or why there is none, and the output as people know it; None where none was asked for.

        A name in it that is a place in the working directory is told from there; `mounted` is where a box shows it.
        """
        places = (workdir, os.path.realpath(workdir), mounted) if workdir else ()
        trees = tuple(filter(None, places))
        match self._form:
            case None:
                return None, output
            case "go":
                return read_go(output, trees)
            case "node":
                found = read_node(self._source.heard(), trees)
                if isinstance(found, Report) and workdir:
                    found = replace(found, outside=linked_packages(workdir))
                return found, output
            case "indirect":
                return self._indirect(f"{output}\n{errors}", workdir, trees), output
            case form:
                told = read_told(form, self._source.heard(), self._word, trees)
                return with_origins(told, workdir) if isinstance(told, Report) else told, output

    def _indirect(self, printed: str, workdir: str, trees: Sequence[str]) -> Report | Unreadable | None:
        """The report of a Python runner behind another program, such as make; None where none came.

        It counts where it has as many tests as were printed: else more than one runner was started.
        """
        if not (isinstance(self._source, Wire) and self._source.taken):
            return None
        told = read_told("pytest", self._source.heard(), self._word, trees)
        if not isinstance(told, Report):
            return told
        return with_origins(told, workdir) if told.ran + told.expected == printed_tests(printed) else None


@contextmanager
def asked(argv: Sequence[str]) -> Iterator[Asked]:
    """A fresh place for the report of one execution of this argv."""
    form = form_of(argv) or ("indirect" if argv else None)
    if form is None:
        yield Asked(argv, form, "")
        return
    with scratch() as folder, Asked(argv, form, os.path.realpath(folder)).listening() as told:
        yield told
