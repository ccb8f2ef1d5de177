"""What a command writes is bounded, and nothing of it is there afterwards."""

import os
import tempfile
import time
from pathlib import Path

import pytest
from test_setup_layers import Bench

from steersman.adapters.checks.setup_layers import SANDBOX_HOME
from steersman.adapters.sandbox.bubblewrap import probe_sandbox
from steersman.adapters.sandbox.space_limit import FILE_TIME_CLOCK, SpaceLimit

# Takes a third of a GiB at a time, without writing it, until there is no more; then stays.
FILL = """
import os, signal, sys, time
for number in range({times}):
    file = os.open("{place}/junk%d" % number, os.O_CREAT | os.O_WRONLY)
    try:
        os.posix_fallocate(file, 0, {size} << 20)
    except OSError as error:
        break
print("filled", flush=True)
signal.pause()
"""


@pytest.fixture
def disk_path():
    """A directory on a disk: the other tests keep their files in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="steersman-") as path:
        yield Path(path)


@pytest.fixture
def bench(disk_path, monkeypatch):
    """Commands in a box with a GiB of memory and a GiB of disk."""
    monkeypatch.setenv("XDG_STATE_HOME", str(disk_path / "state"))
    made = Bench(disk_path, "auto")
    if not made.sandbox.isolated:
        pytest.skip(f"NOT SHOWN, no sandbox on this machine: {made.sandbox.why}")
    made.sandbox = probe_sandbox("auto", memory_gb=1, disk_gb=1)
    return made


@pytest.mark.parametrize(
    ("place", "size", "reason"),
    [
        ("/dev/shm", 32, "it filled /dev/shm of its sandbox: 256 MiB, a part of [sandbox] memory_gb"),  # noqa: S108
        ("/tmp", 64, "it filled /tmp of its sandbox: 512 MiB, a part of [sandbox] memory_gb"),  # noqa: S108
        ("..", 350, "it wrote more than 1 GiB to disk: [sandbox] disk_gb"),
        (SANDBOX_HOME, 350, "it wrote more than 1 GiB to disk: [sandbox] disk_gb"),
    ],
)
def test_a_check_that_fills_a_place_is_ended_and_leaves_nothing(bench, place, size, reason):
    """It ends soon after with the reason; memory, trees, copies and the project's home are as they were before."""
    tree = bench.tree()
    bench.set_up(tree)
    place = "." if place == ".." else place
    before = disk_use(bench.state)
    began = time.monotonic()
    result = bench.run(tree, FILL.format(place=place, size=size, times=40 if size < 350 else 4))
    assert result.reason == f"stopped with all it had started: {reason}"
    assert (result.verdict, result.output) == ("failed", "filled\n")
    assert time.monotonic() - began < 30
    assert not [*bench.state.rglob("junk*"), *Path("/dev/shm").glob("junk*")]  # noqa: S108
    assert disk_use(bench.state) - before < 1 << 20


def disk_use(top):
    return sum(path.lstat().st_blocks * 512 for path in top.rglob("*"))


def test_what_a_check_leaves_in_its_tree_is_deleted(bench):
    """Files, directories and a dependency it changed its mind about: the next check finds the tree as it was set up."""
    tree = bench.tree()
    bench.set_up(tree)
    code = "import os; os.makedirs('left/deep'); open('left/deep/a', 'w'); open('tests/b.log', 'w'); open('c', 'w')"
    assert bench.run(tree, code).verdict == "passed"
    found = bench.run(tree, "import os; print(sorted(os.listdir('.')), os.listdir('tests'))").output
    assert (
        found == "['.git', '.gitignore', '.venv', 'calc.py', 'requirements.txt', 'tests'] ['test_calc.py']\n"
    )


def test_a_program_that_ended_before_it_was_measured_is_told_too(bench):
    """The space is measured once more when a program has ended."""
    tree = bench.tree()
    result = bench.run(tree, FILL.format(place=".", size=350, times=4).replace("signal.pause()", ""))
    assert "it wrote more than 1 GiB to disk" in result.reason
    assert not list(Path(tree.path).glob("junk*"))


def test_files_that_others_write_do_not_count(tmp_path):
    """When the disk fills from elsewhere, only a program that has written itself is ended."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        folder.mkdir()
    old = ours / "old"
    old.write_bytes(b"x" * (1 << 20))
    while old.stat().st_ctime_ns >= time.clock_gettime_ns(FILE_TIME_CLOCK):
        pass  # a tick of the clock that dates files
    limit = SpaceLimit((str(ours), str(tmp_path / "none")), 8 << 20, every=0)
    for folder, reason in ((theirs, ""), (ours, "it wrote more than 8 MiB to disk: [sandbox] disk_gb")):
        file = os.open(folder / "new", os.O_CREAT | os.O_WRONLY)
        os.posix_fallocate(file, 0, 64 << 20)
        os.close(file)
        assert limit.find_excess() == reason
    limit.delete_written()
    assert os.listdir(ours) == ["old"]
