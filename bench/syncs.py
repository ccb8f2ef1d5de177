"""Counts the syncs of a measurement from outside, so that the count is the same for every contender.

The process is traced with strace where there is one; the syncs between the two marks that the measurement
leaves are counted, which keeps set-up and shut-down out. Tracing slows the work: no time is taken from it.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

# No such file: a sync that syncs nothing, and that a trace shows between the others.
NO_FILE = 1 << 20
CALL = re.compile(r"\b(?:fsync|fdatasync)\((\d+)")


TRACE = ("-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o")


@cache
def strace() -> str | None:
    """Where strace is, if it is here and allowed to trace."""
    found = shutil.which("strace")
    if found is None:
        return None
    tried = subprocess.run(
        [found, *TRACE, os.devnull, sys.executable, "-c", "pass"], capture_output=True, check=False
    )
    return found if tried.returncode == 0 else None


def tracer(log: Path) -> tuple[str, ...]:
    """The command to put before another; empty where nothing can be traced."""
    found = strace()
    return (found, *TRACE, str(log)) if found else ()


def mark() -> None:
    """Leaves a mark in a trace of this process."""
    try:
        os.fsync(NO_FILE)
    except OSError:
        return


def counted(log: Path) -> int:
    """The syncs between the first mark and the last."""
    files = [int(match[1]) for line in log.read_text().splitlines() if (match := CALL.search(line))]
    marks = [index for index, file in enumerate(files) if file == NO_FILE]
    return marks[-1] - marks[0] - 1
