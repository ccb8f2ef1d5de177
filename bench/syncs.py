"""Counts the syncs of a measurement from outside, so that the count is the same for every contender.

The process is traced with strace where there is one; the syncs between the two marks that the measurement
leaves are counted, which keeps set-up and shut-down out. Tracing slows the work: no time is taken from it.
"""

import os
import re
import shutil
from pathlib import Path

# No such file: a sync that syncs nothing, and that a trace shows between the others.
NO_FILE = 1 << 20
CALL = re.compile(r"\b(?:fsync|fdatasync)\((\d+)")


def tracer(log: Path) -> list[str] | None:
    """The command to put before another, or nothing where it cannot be traced."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    return [strace, "-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o", str(log)]


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
