"""Rings between processes."""

import os
import select
import subprocess
import sys

from steersman.adapters.process.run_locks import WakeupSockets

RINGER = "import sys; from pathlib import Path; from steersman.adapters.process.run_locks import WakeupSockets; WakeupSockets(Path(sys.argv[1])).notify()"


def heard(sock, seconds=5.0):
    return bool(select.select([sock], [], [], seconds)[0])


def test_another_process_is_heard(tmp_path):
    """A ring from outside makes every listener's socket readable."""
    bell = WakeupSockets(tmp_path / "bell")
    ears = [bell.listen(), bell.listen()]
    assert not heard(ears[0], 0)
    subprocess.run([sys.executable, "-c", RINGER, str(tmp_path / "bell")], check=True)
    assert all(heard(ear) for ear in ears)
    for ear in ears:
        bell.stop_listening(ear)
    assert os.listdir(tmp_path / "bell") == []


def test_ringing_for_nobody_is_nothing(tmp_path):
    """No folder, no listener, a full listener: the ringer goes on."""
    bell = WakeupSockets(tmp_path / "bell")
    bell.notify()
    ear = bell.listen()
    for _ in range(2_000):
        bell.notify()
    assert heard(ear, 0)
    bell.stop_listening(ear)
    bell.stop_listening(bell.listen())
    bell.notify()


def test_who_died_is_forgotten(tmp_path):
    """The socket of a process that was killed is removed by the next ring."""
    code = "import os, sys; from pathlib import Path; from steersman.adapters.process.run_locks import WakeupSockets; e = WakeupSockets(Path(sys.argv[1])).listen(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "bell")], check=False)
    assert len(os.listdir(tmp_path / "bell")) == 1
    WakeupSockets(tmp_path / "bell").notify()
    assert os.listdir(tmp_path / "bell") == []


def test_a_path_too_long_for_a_socket(tmp_path):
    """Then there is no bell; drivers poll."""
    folder = tmp_path / ("x" * 120)
    bell = WakeupSockets(folder)
    assert bell.listen() is None
    bell.notify()
    assert os.listdir(folder) == []
