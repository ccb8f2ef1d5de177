"""One lock a run, between processes, however they end."""

import fcntl
import os
import signal
import subprocess
import sys
import threading

import pytest

from steersman.adapters.process.run_locks import FileLocks

HOLDER = """
import sys, time
from pathlib import Path
from steersman.adapters.process.run_locks import FileLocks
lock = FileLocks(Path(sys.argv[1]), "server").acquire("run")
print("held" if lock else "busy", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has the lock."""
    child = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "held\n"
    yield child
    child.send_signal(signal.SIGCONT)
    child.kill()
    child.wait()
    child.stdout.close()


def test_one_owner(tmp_path):
    """While one has it nobody else gets it, also not in the same process; other runs are free; released is free."""
    locks = FileLocks(tmp_path, "command")
    lock = locks.acquire("run")
    assert locks.acquire("run") is None
    assert FileLocks(tmp_path).acquire("run") is None
    assert locks.owner("run") == f"command (process {os.getpid()})"
    other = locks.acquire("other")
    assert other is not None
    lock.release()
    lock.release()
    assert locks.owner("run") is None
    assert locks.acquire("run") is not None


def test_a_run_nobody_drove_has_no_owner(tmp_path):
    """Asking makes nothing."""
    assert FileLocks(tmp_path / "locks").owner("run") is None
    assert not (tmp_path / "locks").exists()


def test_the_owner_is_named(tmp_path, holder):
    """Another process is told by kind and number."""
    locks = FileLocks(tmp_path)
    assert locks.acquire("run") is None
    assert locks.owner("run") == f"server (process {holder.pid})"


def test_a_killed_owner_has_lost_it(tmp_path, holder):
    """The lock dies with its process."""
    holder.kill()
    holder.wait()
    locks = FileLocks(tmp_path)
    assert locks.owner("run") is None
    assert locks.acquire("run") is not None


def test_a_stopped_owner_is_taken_over(tmp_path, holder):
    """Only when asked for; afterwards the new one counts, also when the old one wakes up and ends."""
    holder.send_signal(signal.SIGSTOP)
    locks = FileLocks(tmp_path, "command")
    assert locks.acquire("run") is None
    lock = locks.acquire("run", take_over=True)
    assert lock is not None
    holder.send_signal(signal.SIGCONT)
    holder.kill()
    holder.wait()
    assert locks.owner("run") == f"command (process {os.getpid()})"
    assert FileLocks(tmp_path).acquire("run") is None


def test_children_do_not_inherit_it(tmp_path):
    """A program that an owner started does not keep the run when the owner has let go."""
    locks = FileLocks(tmp_path)
    lock = locks.acquire("run")
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    lock.release()
    again = locks.acquire("run")
    child.kill()
    child.wait()
    assert again is not None


def test_looking_takes_nothing_away(tmp_path):
    """However many ask who the owner is, whoever wants a free run gets it."""
    locks, done = FileLocks(tmp_path), threading.Event()
    locks.acquire("run").release()

    def look():
        while not done.is_set():
            locks.owner("run")

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    got = []
    for _ in range(100):
        lock = locks.acquire("run")
        got.append(lock is not None)
        if lock is not None:
            lock.release()
    done.set()
    for looker in lookers:
        looker.join()
    assert all(got)


def test_a_long_look_takes_nothing_away(tmp_path):
    """Whoever was looking at the owner when the machine had something else to do is waited for."""
    locks = FileLocks(tmp_path)
    locks.acquire("run").release()
    looker = os.open(tmp_path / "run.lock", os.O_RDONLY)
    fcntl.flock(looker, fcntl.LOCK_SH)
    threading.Timer(0.3, os.close, (looker,)).start()
    assert locks.acquire("run") is not None


def test_of_many_one_gets_it(tmp_path):
    """Threads that want the same run at once: at any moment one has it."""
    held, most, turns = [], [], []

    def want():
        for _ in range(50):
            lock = FileLocks(tmp_path).acquire("run")
            if lock is not None:
                held.append(1)
                most.append(len(held))
                turns.append(1)
                held.pop()
                lock.release()

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(turns) > 10
