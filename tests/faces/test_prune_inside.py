"""`steersman audit prune` is a person's word."""

import subprocess

import pytest

from steersman.judges.config.limits import digest_setting_lines
from steersman.wiring import load_limited_config, open_journal, run_steersman

CREW = "version: 1\n" + "".join(f"{role}: [{{say: yes}}]\n" for role in ("coder", "reviewer", "tester"))
ROLES = "".join(
    f'[roles.{role}]\nagent = "scripted"\nscript = "crew.yaml"\n' for role in ("coder", "reviewer", "tester")
)


@pytest.fixture
def over(tmp_path, monkeypatch):
    """A project with a run that is over: its folder, and the run's id."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("STEERSMAN_PERSON", "ann")
    project = tmp_path / "project"
    project.mkdir()
    (project / "crew.yaml").write_text(CREW)
    (project / "steersman.toml").write_text(f"version = 1\n{ROLES}")
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")
    for argv in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "base")):
        subprocess.run(["git", *argv], cwd=project, check=True)
    digest = digest_setting_lines(load_limited_config(project).powerful)
    assert run_steersman(["trust", "--digest", digest, "--project", str(project)]) == 0
    assert run_steersman(["run", "a task", "--project", str(project)]) == 3
    run = open_journal(str(project), reading=True).heads()[0].run
    assert run_steersman(["reject", run, "--project", str(project)]) == 0
    return str(project), run


def test_nothing_inside_a_run_drops_texts(over, monkeypatch, capsys):
    """From inside a run's process tree pruning is refused, on tape, and nothing is gone; a person may."""
    project, run = over
    monkeypatch.setenv("STEERSMAN_EFFECT", f"{run}:2:1")
    assert run_steersman(["audit", "prune", run, "--yes", "--project", project]) == 4
    assert "inside the run, and an agent never speaks for a person" in capsys.readouterr().err
    assert open_journal(project, reading=True).key(run) is not None
    monkeypatch.delenv("STEERSMAN_EFFECT")
    assert run_steersman(["audit", "prune", run, "--yes", "--project", project]) == 0
    assert open_journal(project, reading=True).key(run) is None
