"""A command from the fork server is the command from a fresh start, as far as anybody can tell."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.cases import for_each_case
from tests.support.command_launcher import (
    CAN_FORK,
    FIXED_ENVIRONMENT,
    CommandCall,
    Launcher,
    run_fresh_command,
)
from tests.support.sample_project import Project, roundtable_story

TOP = Path(__file__).resolve().parents[2]
SUPPORT = TOP / "tests" / "support"
pytestmark = pytest.mark.skipif(not CAN_FORK, reason="every start is a fresh one on this system")


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    """A fork server for the probe."""
    made = Launcher("process_probe")
    yield made
    made.close()


def order(*words: str, feed: bytes | None = None, timeout: float = 60, **env: str) -> CommandCall:
    home = {**FIXED_ENVIRONMENT, "PATH": os.environ["PATH"], "HOME": "/nowhere"}
    return CommandCall(words, SUPPORT, home | env, feed, timeout, "process_probe")


@pytest.mark.parametrize("feed", [None, b"", b"word"], ids=str)
def test_nothing_tells_it_from_a_fresh_start(launcher: Launcher, feed: bytes | None) -> None:
    """Words, paths, environment, streams, descriptors, signals, limits: what a process can know of itself is the same."""
    ours, fresh = (
        json.loads(run(order("facts", feed=feed)).stdout) for run in (launcher.launch, run_fresh_command)
    )
    assert ours.keys() == fresh.keys()
    assert {name: ours[name] for name in ours if ours[name] != fresh[name]} == {}


ENDS = ("exit 0", "exit 3", "exit 255", "say word", "signal SIGTERM", "signal SIGINT", "signal SIGKILL", "thread", "at exit", "much", "hard", "read")  # fmt: skip


@pytest.mark.parametrize("words", ENDS)
def test_it_ends_as_a_fresh_start_does(launcher: Launcher, words: str) -> None:
    """The same exit code or signal, the same words, whatever is said late or at length."""
    asked = order(*words.split(maxsplit=1), feed=b"x" * 300_000)
    ours, fresh = launcher.launch(asked), run_fresh_command(asked)
    if words != "signal SIGINT":  # its traceback names one more caller
        assert ours.stderr == fresh.stderr
    assert (ours.returncode, ours.stdout) == (fresh.returncode, fresh.stdout)


def test_an_error_that_nobody_expected(launcher: Launcher) -> None:
    """A traceback, and exit code 1."""
    ours, fresh = launcher.launch(order("raise")), run_fresh_command(order("raise"))
    assert (ours.returncode, ours.stderr.splitlines()[-1]) == (1, b"ValueError: raised")
    assert (fresh.returncode, fresh.stderr.splitlines()[-1]) == (1, b"ValueError: raised")


def test_nothing_of_one_call_is_there_in_another(launcher: Launcher) -> None:
    """What a call does to itself ends with it."""
    before = launcher.launch(order("facts")).stdout
    assert launcher.launch(order("keep")).returncode == 0
    assert launcher.launch(order("facts")).stdout == before


def test_whoever_takes_too_long_is_killed(launcher: Launcher, tmp_path: Path) -> None:
    """The time is up: the process is gone when that is told."""
    file = tmp_path / "pid"
    file.touch()
    for seconds in (1, 5, 25):  # it has to get as far as to say who it is
        with pytest.raises(subprocess.TimeoutExpired):
            launcher.launch(order("sleep", str(file), timeout=seconds))
        if file.read_text():
            break
    assert file.read_text()
    assert not Path("/proc", file.read_text().strip()).exists()
    assert launcher.launch(order("exit", "0")).returncode == 0


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "LC_ALL", "TZ", "LD_PRELOAD"])
def test_what_is_read_at_the_start_makes_a_fresh_one(launcher: Launcher, name: str) -> None:
    """The parent of such a command is whoever asked for it."""
    assert int(launcher.launch(order("parent", **{name: ""})).stdout) == os.getpid()
    assert int(launcher.launch(order("parent")).stdout) != os.getpid()


HOLDER = """
import sys
sys.path.append("tests/journeys")
from tests.support.command_launcher import Launcher
from test_fork_server import order
launcher = Launcher("process_probe")
print(int(launcher.launch(order("parent")).stdout), flush=True)
launcher.launch(order("sleep", sys.argv[1]))
"""


def test_nothing_outlives_whoever_holds_it(tmp_path: Path) -> None:
    """When the holder is killed, the fork server ends and takes what it has launched with it."""
    file = tmp_path / "pid"
    argv = [sys.executable, "-c", HOLDER, str(file)]
    holder = subprocess.Popen(argv, cwd=TOP, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    pids = [holder.stdout.readline().decode().strip()]
    until(lambda: file.exists() and file.read_text().endswith("\n"))
    pids.append(file.read_text().strip())
    assert all(Path("/proc", pid).exists() for pid in pids)
    holder.send_signal(signal.SIGKILL)
    holder.communicate(timeout=60)
    until(lambda: not any(alive(pid) for pid in pids))


def alive(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(done: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def finished(projects) -> tuple[Project, str]:
    """A project with an approved run, made from fresh starts alone."""
    project: Project = projects()
    project.prepare(roundtable_story())
    result = project.call("run", "Fix add", "--mode", "implementation", "--json", fresh=True)
    assert result.code == 0, result
    return project, result.json()["run"]


COMMANDS = (
    "--help", "nonsense", "show RUN --json", "report RUN", "audit verify RUN", "audit replay RUN --json", "registry list",
    "chat threads", "check command pytest", "doctor --json",
)  # fmt: skip


@for_each_case("words", COMMANDS)
def test_every_kind_of_command_from_a_fresh_start(finished: tuple[Project, str], words: str) -> None:
    """What each needs is found where nothing was imported before it, and it says the same."""
    project, run = finished
    asked = words.replace("RUN", run).split()
    fresh, ours = project.call(*asked, fresh=True), project.call(*asked)
    assert ours.code == fresh.code
    assert re.sub(r"\d+ MB free", "", ours.out) == re.sub(r"\d+ MB free", "", fresh.out)
    assert ours.err == fresh.err
