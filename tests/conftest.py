"""What every suite stands on: checks find a `python3` that starts fast, and a fork server runs the commands.

A version manager's stand-in for `python3` starts some thirty shells per call, and packages that a machine's Python imports
at its start cost several times the start itself. STEERSMAN_TEST_STARTS=1 starts each command afresh.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
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
TOP = Path(__file__).resolve().parent.parent


def make_bare_python(place: Path) -> Path:
    """Makes the `bin` of the interpreter that runs the tests, without any installed package."""
    real = Path(sys.executable).resolve()
    packages = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True, exist_ok=True)
    (place / "bin").mkdir(exist_ok=True)
    (place / "pyvenv.cfg").write_text(f"home = {real.parent}\ninclude-system-site-packages = false\n")
    for name in ("python", "python3"):
        with suppress(FileExistsError):  # another worker has made it
            (place / "bin" / name).symlink_to(real)
    return place / "bin"


BARE_PYTHON = make_bare_python(TOP / ".cache" / f"python-{sys.hexversion:x}")
# A sandbox shows what each folder of PATH needs, so a folder stands there once and a version manager's stand-ins do not.
FOLDERS = (
    str(BARE_PYTHON), str(Path(sys.executable).resolve().parent), *os.environ["PATH"].split(os.pathsep),
)  # fmt: skip
os.environ["PATH"] = os.pathsep.join(
    folder for folder in dict.fromkeys(FOLDERS) if os.path.isdir(folder) and not folder.endswith("/shims")
)

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
