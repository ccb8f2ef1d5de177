"""What a person is told about the box: before a run, at its start, at its gate, in its report."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import sample_project
from tests.support.sample_project import Project

from steersman.adapters.sandbox.bubblewrap import probe_sandbox

REACH = """import os, urllib.request
try:
    urllib.request.urlopen("http://elsewhere.example/x", timeout=10)
except Exception as error:
    print(type(error).__name__, getattr(error, "code", ""))
with open("calc.py", "w") as out:
    out.write("def add(a, b):\\n    return a + b\\n")
"""


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A PATH without bubblewrap, and with all that a run needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(shutil.which("git") or "")
    (folder / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "python3").chmod(0o755)
    return str(folder)


def boxed(project: Project, mode: str) -> None:
    """A project with a [sandbox] of this mode."""
    project.prepare(sample_project.roundtable_story())
    with (project.repo / "steersman.toml").open("a", encoding="utf-8") as file:
        file.write(f'[sandbox]\nmode = "{mode}"\n')
    project.allow('[sandbox]\nmode = "off"\n')
    project.git("commit", "-qam", "box")


def test_without_bubblewrap_a_required_box_starts_nothing(project, bare):
    """run, run --dry and doctor say what is missing and what to do; no run is made."""
    boxed(project, "required")
    result = project.call("run", "Fix add", PATH=bare)
    assert result.code == 2, result
    assert '[sandbox] mode = "required", but bubblewrap is not installed: install the package' in result.err
    assert project.call("runs", "--json").json() == []
    assert "would not start: " in project.call("run", "Fix add", "--dry", PATH=bare).out
    alone = project.call("run", "Fix add", "--unattended", PATH=bare)
    assert (alone.code, "bubblewrap is not installed" in alone.err) == (4, True)
    doctor = project.call("doctor", PATH=bare)
    assert doctor.code == 1
    assert "FIX  sandbox: " in doctor.out


def test_without_bubblewrap_auto_goes_on_and_says_so(project, bare):
    """The run ends as it would in a box; tape, lines, report, state.json and doctor say that approval is not isolated."""
    boxed(project, "auto")
    result = project.call("run", "Fix add", "--mode", "implementation", PATH=bare)
    assert result.code == 0, result
    told = "approval not isolated: bubblewrap is not installed"
    run = project.only_run()
    assert told in result.out
    assert project.entries(run)[0]["why"] == told
    assert told in project.call("show", run).out
    assert "| approval | not isolated: bubblewrap is not installed |" in project.call("report", run).out
    state = json.loads((project.repo / ".steersman" / "runs" / run / "state.json").read_text())
    assert state["not_isolated"] == "bubblewrap is not installed"
    assert told in project.call("doctor", PATH=bare).out


def test_the_question_itself_says_it(project):
    """Whoever is asked for an answer reads at the gate that it is not isolated, when it parks and later; programs too."""
    boxed(project, "off")
    result = project.call("run", "Fix add")
    assert result.code == 3, result
    told = "approval not isolated: switched off. An agent of this run could change the stored answer."
    assert told in result.out
    assert told in project.call("gates").out
    assert [g["not_isolated"] for g in project.call("gates", "--json").json()] == ["switched off"]


def test_who_drives_it_on_without_a_box_says_so_too(project, bare):
    """A run that began in a box and goes on without one says so from then on."""
    if not probe_sandbox("auto").isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {probe_sandbox('auto').why}")
    boxed(project, "auto")
    assert project.call("run", "Fix add").code == 3
    run = project.only_run()
    assert "not isolated" not in project.call("show", run).out
    assert project.call("approve", run, PATH=bare).code == 0
    claims = [e for e in project.entries(run) if e["kind"] == "claimed"]
    assert claims[-1]["why"].endswith("approval not isolated: bubblewrap is not installed")
    assert "approval not isolated" in project.call("show", run).out


def test_in_a_box_nothing_is_said(project):
    """Where agents and checks are in a box, no word of it is anywhere."""
    if not probe_sandbox("auto").isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {probe_sandbox('auto').why}")
    boxed(project, "required")
    result = project.call("run", "Fix add", "--mode", "implementation")
    assert result.code == 0, result
    run = project.only_run()
    shown = (result.out, project.call("show", run).out, project.call("report", run).out)
    assert not [words for words in shown if "isolated" in words]
    assert "ok   sandbox: agents and checks run in a sandbox" in project.call("doctor").out


@pytest.mark.parametrize("uid", [0, 1000])
def test_doctor_says_which_limit_does_not_bind_for_root(project, uid):
    """The kernel does not count root's processes; for anybody else nothing is said."""
    if not probe_sandbox("auto").isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {probe_sandbox('auto').why}")
    code = (
        f"import os; os.geteuid = lambda: {uid}\n"
        "from steersman.wiring import run_steersman as main; raise SystemExit(main(['doctor']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.repo, env=project.env, capture_output=True, check=False
    )
    told = "limit on the number of processes has no effect, because the kernel does not count the processes of root"
    assert "agents and checks run in a sandbox" in done.stdout.decode()
    assert (told in done.stdout.decode()) == (uid == 0)


def test_a_place_that_was_refused_is_on_tape_and_in_the_report(project):
    """An agent that wants to reach another place than its own gets a 403, and everybody can read which it was."""
    if not probe_sandbox("auto").isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {probe_sandbox('auto').why}")
    (project.repo / "reach.py").write_text(REACH)
    boxed(project, "required")
    toml = project.repo / "steersman.toml"
    command = (
        f'agent = "command"\ncommand = {json.dumps([sys.executable, "reach.py"])}\nhosts = ["127.0.0.1:9009"]'
    )
    scripted = '[roles.coder]\nagent = "scripted"\nscript = "../crew.yaml"'
    toml.write_text(toml.read_text().replace(scripted, f"[roles.coder]\n{command}"))
    project.git("commit", "-qam", "reach")
    project.allow('[sandbox]\nhosts = ["127.0.0.1:9009"]\n')
    result = project.call("run", "Fix add", "--mode", "implementation")
    assert result.code == 0, result
    run = project.only_run()
    assert [e["seq"] for e in project.entries(run) if (e.get("data") or {}).get("refused_ref")]
    report = project.call("report", run).out
    assert "elsewhere.example:80" in report.split("## Refused places")[1]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('mode = "on"', 'mode = "auto"'),
        ('reads = ["src"]', 'reads = ["~/.cargo/registry"]'),
        ("network = 1", "network = true"),
        ("memory_gb = 0", "memory_gb = 16"),
        ('modus = "auto"', "did you mean `mode`?"),
    ],
)
def test_a_slip_in_the_table_is_told_with_the_way_out(project, line, told):
    """The field, the line and what to write instead."""
    project.prepare(sample_project.roundtable_story())
    with (project.repo / "steersman.toml").open("a", encoding="utf-8") as file:
        file.write(f"[sandbox]\n{line}\n")
    result = project.call("run", "Fix add")
    assert result.code == 2, result
    assert "sandbox" in result.err
    assert told in result.err


@pytest.mark.parametrize("place", ["nowhere-at-all", "", "state"])
def test_a_place_to_read_has_to_be_one(project, place):
    """One that is not there, the home and the state directory are refused by name before anything starts."""
    if not probe_sandbox("auto").isolated:
        pytest.skip(f"NOT SHOWN, no box on this machine: {probe_sandbox('auto').why}")
    project.prepare(sample_project.roundtable_story())
    (project.place / "state").mkdir(exist_ok=True)
    wanted = os.path.join(str(project.place), place)
    with (project.repo / "steersman.toml").open("a", encoding="utf-8") as file:
        file.write(f"[sandbox]\nreads = [{json.dumps(wanted)}]\n")
    project.allow(f'[sandbox]\nreads = ["{project.place}"]\n')
    result = project.call("run", "Fix add")
    assert result.code == 2, result
    assert "[sandbox] reads: " in result.err
    assert "cannot be in a sandbox" in result.err
