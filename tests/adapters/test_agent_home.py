"""The home of a call: made for it, gone after it, also when the call was killed."""

import os
import signal
import subprocess
import sys

import pytest

from steersman.adapters.agents.call_home import link_credential, open_call_home

HOLD = (
    "import sys, time, pathlib; from steersman.adapters.agents.call_home import open_call_home\n"
    "with open_call_home(pathlib.Path(sys.argv[1])) as home: print(home.root, flush=True); time.sleep(60)"
)


def test_a_home_is_there_for_its_call_and_gone_after(tmp_path):
    """Three directories for nobody else, and nothing of them afterwards, whatever was put into them."""
    with open_call_home(tmp_path) as home:
        (home.config / "left.json").write_text("{}")
        (home.home / "link").symlink_to("/etc")
        modes = {os.stat(part).st_mode & 0o777 for part in (home.root, home.home, home.config, home.tmp)}
        assert modes == {0o700}
    assert not home.root.exists()
    assert os.path.isdir("/etc")
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_home_is_gone_when_the_call_fails(tmp_path):
    """An exception or a cancellation leaves nothing either."""
    with pytest.raises(KeyError), open_call_home(tmp_path):
        raise KeyError
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_everything_a_program_looks_at_is_in_its_home(tmp_path):
    """HOME, TMPDIR and the XDG directories all lie below the home, and the configuration is not among temporary files."""
    with open_call_home(tmp_path) as home:
        assert all(value.startswith(str(home.root)) for value in home.environment().values())
        assert not home.config.is_relative_to(home.tmp)


def test_the_home_of_a_killed_call_is_removed_by_the_next(tmp_path):
    """What a killed steersman left is swept; the home of a call that lives, and what else is there, is not."""
    (tmp_path / "sessions").mkdir()
    held = [
        subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        dead, living = (child.stdout.readline().strip() for child in held)
        held[0].send_signal(signal.SIGKILL)
        held[0].wait()
        with open_call_home(tmp_path):
            assert not os.path.exists(dead)
            assert os.path.isdir(living)
            assert (tmp_path / "sessions").is_dir()
    finally:
        for child in held:
            child.kill()
            child.wait()
            child.stdout.close()


def test_a_credential_is_lent_and_not_copied(tmp_path):
    """A credential is a link to where it lies; a user without one is lent nothing."""
    credential = tmp_path / "auth.json"
    with open_call_home(tmp_path / "homes") as home:
        assert link_credential(credential, home, "auth.json") is None
        credential.write_text("secret")
        assert link_credential(credential, home, "auth.json") == credential
        assert (home.config / "auth.json").is_symlink()
    assert credential.read_text() == "secret"
