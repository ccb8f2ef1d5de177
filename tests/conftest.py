"""What every suite stands on: the interpreter that runs the tests is also the `python3` that checks find.

A version manager's stand-in for `python3` starts some thirty shells per call; that would be half of the suite's time.
So would the imports of every command, which a fork server has made already; STEERSMAN_TEST_STARTS=1 starts each one afresh.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.branch_coverage import PLUGIN  # imported before steersman: its definitions count as well
from tests.support.command_launcher import Launcher
from tests.support.sample_project import Project

# How long an example takes says something about the machine, nothing about the code.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
os.environ["PATH"] = f"{Path(sys.executable).resolve().parent}{os.pathsep}{os.environ['PATH']}"

# Thousands of small repositories cost a fifth of the system's time on a disk. What the crash proofs say about disks is in
# proofs/; passing tests leave nothing here (pyproject.toml). The real CLIs stay on the disk: codex's own sandbox has a
# /dev of its own, so a worktree below /dev/shm does not exist in it.
MEMORY = Path("/dev/shm")  # noqa: S108  a folder of our own below it
ON_DISK = "TMPDIR" in os.environ or "STEERSMAN_TEST_AGENTS" in os.environ
if not ON_DISK and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    place = MEMORY / f"s{os.getuid()}"  # short: the path of a socket has 108 bytes
    place.mkdir(mode=0o700, exist_ok=True)
    os.environ["TMPDIR"] = tempfile.tempdir = str(place)

# A shell's background job starts with Ctrl-C ignored, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

LAUNCHER = Launcher()
if not os.environ.get("STEERSMAN_TEST_STARTS"):
    Project.launcher = staticmethod(LAUNCHER.launch)

TOP = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_here() -> Iterator[None]:
    """No test leaves a file at the top of the repository, but for what git ignores there."""
    before = set(os.listdir(TOP))
    yield
    ignored = [line.strip("/") for line in (TOP / ".gitignore").read_text(encoding="utf-8").split()]
    new = set(os.listdir(TOP)) - before
    assert [name for name in new if not any(fnmatch(name, pattern) for pattern in ignored)] == []


def pytest_configure(config: pytest.Config) -> None:
    """Counts branches, where that is asked for."""
    if PLUGIN is not None:
        config.pluginmanager.register(PLUGIN, "branch-coverage")


def pytest_unconfigure(config: pytest.Config) -> None:
    """No process of the suite outlives it."""
    LAUNCHER.close()
