"""Runs measurements in fresh processes of this one parent, interleaved: each repetition turns the order.

Drift of the machine (a busy neighbour, a filling disk cache) then falls on every contender alike, and the
ratios within a repetition hold where the absolute figures do not.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sizes import Sizes
from syncs import counted, tracer

MEASURE = Path(__file__).parent / "measure.py"
TIMEOUT = 900

Figures = dict[str, Any]
Samples = dict[str, list[Figures]]


@dataclass(frozen=True)
class Failure:
    section: str
    contender: str
    reason: str


class MeasurementError(Exception):
    """A contender could not be measured; the message is the end of what it said."""


@dataclass
class Session:
    """Where the data lies, how much is done, and what went wrong."""

    data: Path
    sizes: Sizes
    failures: list[Failure] = field(default_factory=list)

    @contextmanager
    def folder(self, label: str) -> Iterator[Path]:
        """An empty folder, removed afterwards."""
        folder = self.data / label
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def measure(self, contender: str, what: str, folder: Path, before: tuple[str, ...] = ()) -> Figures:
        """The figures of one measurement in a process of its own."""
        sizes = json.dumps(asdict(self.sizes))
        argv = [*before, sys.executable, str(MEASURE), contender, what, str(folder), sizes]
        try:
            done = subprocess.run(
                argv, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
        except subprocess.TimeoutExpired as late:
            raise MeasurementError(f"no answer within {TIMEOUT} s") from late
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            raise MeasurementError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        figures: Figures = json.loads(done.stdout.strip().splitlines()[-1])
        return figures

    def attempt(self, section: str, contender: str, call: Callable[[], Figures]) -> Figures | None:
        """What the call returns; nothing if the contender failed, which is then on the list."""
        try:
            return call()
        except MeasurementError as error:
            # Results are kept and shown to others: where this checkout lies is no part of them.
            reason = str(error).replace(str(self.data), "data").replace(str(MEASURE.parent), "bench")
            self.failures.append(Failure(section, contender, reason))
            return None

    def interleave(
        self, section: str, contenders: list[str], once: Callable[[str, int], Figures], rounds: int = 1
    ) -> Samples:
        """So many figures of each contender as there are repetitions; none of one that failed."""
        samples: Samples = {contender: [] for contender in contenders}
        for rep in range(self.sizes.reps * rounds):
            turn = rep % max(1, len(contenders))
            for contender in contenders[turn:] + contenders[:turn]:
                if contender in samples:
                    figures = self.attempt(section, contender, partial(once, contender, rep))
                    _keep(samples, contender, figures)
        return samples

    def syncs(self, contender: str, what: str) -> Figures:
        """Syncs per transition, counted from outside; nothing where there is no strace."""
        with self.folder(f"{what}-{contender}-syncs") as folder, self.folder("trace") as log:
            trace = log / "trace"
            before = tracer(trace)
            if not before:
                return {}
            figures = self.measure(contender, what, folder, before)
            return {"syncs": counted(trace) / figures["transitions"]}


def _keep(samples: Samples, contender: str, figures: Figures | None) -> None:
    if figures is None:
        del samples[contender]
    else:
        samples[contender].append(figures)


def cpu_seconds(arguments: list[str], folder: Path) -> float:
    """User and system time of one interpreter with these arguments."""
    process = subprocess.Popen([sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise MeasurementError(f"exit code {process.returncode} of python {' '.join(arguments)}")
    return usage.ru_utime + usage.ru_stime
