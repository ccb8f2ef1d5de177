"""Folders that boxes leave, and those that killed processes have left."""

import os
import subprocess
import sys
import tempfile
import time

import pytest

from steersman.adapters.sandbox.space_limit import SCRATCH_PREFIX, STALE_SCRATCH_SECONDS, scratch_directory


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where temporary files go, for this process and its children; short, for a socket's path has to fit."""
    with tempfile.TemporaryDirectory(prefix="s") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield folder


def aged(path):
    """The same folder, as old as one that can be swept."""
    then = time.time() - STALE_SCRATCH_SECONDS - 5
    os.utime(path, (then, then))
    return path


def test_a_folder_is_gone_with_its_box(place):
    """It is private while it is there, and nothing of it stays, whatever was done to it."""
    with scratch_directory() as folder:
        assert os.stat(folder).st_mode & 0o777 == 0o700
        os.makedirs(f"{folder}/a/b")
        os.chmod(f"{folder}/a", 0)
    assert os.listdir(place) == []


def test_what_a_killed_process_has_left_is_swept(place):
    """The next box removes it; one that is young, or in use however old, stays."""
    code = "import sys, time\nfrom steersman.adapters.sandbox.space_limit import scratch_directory\nwith scratch_directory() as f: print(f, flush=True); time.sleep(60)"
    processes = [subprocess.Popen((sys.executable, "-c", code), stdout=subprocess.PIPE) for _ in range(3)]
    dead, young, used = (p.stdout.readline().decode().strip() for p in processes)
    try:
        for process in processes[:2]:
            process.kill()
            process.wait()
        aged(dead)
        aged(used)
        with scratch_directory():
            assert sorted(
                f"{place}/{n}" for n in os.listdir(place) if f"{place}/{n}" in (dead, young, used)
            ) == sorted((young, used))
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


def test_a_link_of_the_name_is_left_alone(place, tmp_path):
    """What it leads to is not ours to remove."""
    (tmp_path / "kept").mkdir()
    os.symlink(tmp_path / "kept", f"{place}/{SCRATCH_PREFIX}x")
    with scratch_directory():
        pass
    assert os.listdir(place) == [f"{SCRATCH_PREFIX}x"]
    assert (tmp_path / "kept").is_dir()
