"""Who speaks at the command line."""

import subprocess

import pytest

from steersman.faces.cli.context import find_person_name


@pytest.mark.parametrize("given", ["", "  ", "\u200b", "\u3164\u2060"], ids=ascii)
def test_a_name_can_be_seen(given, tmp_path, monkeypatch):
    """A name that nobody can see is none: git's is taken, else that of the login."""
    monkeypatch.setenv("STEERSMAN_PERSON", given)
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("HOME", str(tmp_path))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, told in ((given, "ann"), ("Ben  Bee", "Ben Bee")):
        subprocess.run(["git", "config", "user.name", name], cwd=tmp_path, check=True)
        assert find_person_name(tmp_path) == told
    monkeypatch.setenv("STEERSMAN_PERSON", " kim ")
    assert find_person_name(tmp_path) == "kim"
