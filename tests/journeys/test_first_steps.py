"""The first minutes: demo, init, doctor, and the questions a tape answers."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import apsw
import pytest
from tests.support.sample_project import Project, roundtable_story

from steersman.adapters.sandbox.bubblewrap import probe_sandbox

UNITTEST = 'import sys\nimport unittest\n\nsys.path.insert(0, ".")\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), -1)\n'


def test_the_demo_ends_approved_tested_and_verified(project: Project) -> None:
    """`demo` needs nothing, leaves its repository, and ends approved, tested and verified."""
    result = project.call("demo", "--json", fresh=True, TMPDIR=str(project.place))
    assert result.code == 0, result
    data = result.json()
    assert (data["outcome"], data["verified"], data["anchored"]) == ("approved", True, True)
    assert data["tests"] > 0
    shop = Path(data["repository"])
    assert project.place in shop.parents
    fixed = subprocess.run(
        ["git", "show", f"steersman/{data['run']}:prices.py"], cwd=shop, capture_output=True, check=True
    ).stdout.decode()
    assert "no percentage" in fixed
    assert not (project.place / "state").exists()


def test_the_demo_speaks_plainly(project: Project) -> None:
    """It says that it approves, that the test failed before, and what to look at next, with commands that work in another shell."""
    result = project.call("demo", TMPDIR=str(project.place))
    assert result.code == 0, result
    for part in (
        "The demo approves the proposal as 'demo operator'",
        "FAILED (failures=1)",
        "review_changes_requested",
        "Look at the run:",
        "audit verify",
    ):
        assert part in result.out
    commands = re.findall(r"^  (git .*|/.*/steersman .*)$", result.out, re.MULTILINE)
    assert len(commands) == 6
    for command in dict.fromkeys(commands):
        environment = {"PATH": os.environ["PATH"], "HOME": str(project.place / "another home")}
        pasted = subprocess.run(
            ["sh", "-c", command], env=environment, cwd=project.place, capture_output=True, check=False
        )
        assert (pasted.returncode, pasted.stderr) == (0, b""), command


def test_init_finds_proves_and_writes(project: Project) -> None:
    """The project's own checks are found, run, and written so that the file reads back; never over an old file."""
    (project.repo / "tests").mkdir()
    (project.repo / "tests" / "test_calc.py").write_text(UNITTEST)
    project.git("rm", "-q", "test_calc.py")
    project.git("add", "-A")
    project.git("commit", "-qm", "tests")
    result = project.call("init", "--yes", "--script", "crew.yaml", "--json", fresh=True)
    assert result.code == 0, result
    (check,) = result.json()["checks"].values()
    assert (check["verdict"], check["tests"]) == ("passed", 1)
    written = (project.repo / "steersman.toml").read_text()
    assert 'agent = "scripted"' in written
    again = project.call("init")
    assert again.code == 4
    assert "--force" in again.err
    assert (project.repo / "steersman.toml").read_text() == written
    assert project.call("init", "--force", "--yes").code == 0
    assert (project.repo / "steersman.toml").read_text() != written


def test_what_init_says_of_commands_is_right(project: Project) -> None:
    """With the marks of its comment taken away the section allows exactly the program that it explains."""
    assert project.call("init", "--yes").code == 0
    path = project.repo / "steersman.toml"
    text = path.read_text()
    section = text[text.index("# [commands]") :].split("\n\n")[0]
    asked = (
        ("vendor/bin/phpunit --stop-on-failure --filter total tests/shop.php", 0),
        ("vendor/bin/phpunit --bootstrap x.php", 4),
        ("make verify", 0),
        ("grep add calc.py", 0),
    )
    assert {project.call("check", "command", words).code for words, _ in asked} == {4}
    path.write_text(text.replace(section, re.sub("^# ", "", section, flags=re.MULTILINE)))
    for words, code in asked:
        assert project.call("check", "command", words).code == code, words


def test_init_leaves_out_what_cannot_run(project: Project) -> None:
    """An ecosystem whose program is not there is named and left out, where there is another one."""
    (project.repo / "go.mod").write_text("module x\n")
    (project.repo / "x_test.go").write_text("package x\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "go")
    path = project.place / "programs"
    path.mkdir()
    for name in ("git", "python3", "bwrap"):
        if there := shutil.which(name):
            (path / name).symlink_to(there)
    result = project.call("init", "--yes", PATH=f"{path}")
    assert result.code == 0, result
    assert "go is left out" in result.out
    assert "go =" not in (project.repo / "steersman.toml").read_text()
    assert "unittest =" in (project.repo / "steersman.toml").read_text()


def test_doctor_names_each_fix(project: Project) -> None:
    """Without a configuration it says how to get one; with all in place it is content."""
    bare = project.call("doctor", fresh=True)
    assert bare.code == 1
    assert "steersman init" in bare.out
    project.run(roundtable_story(mode="proposal"))
    well = project.call("doctor", "--json")
    # Without a sandbox that is the one thing to mend, and it says how.
    lacking = [] if probe_sandbox().isolated else [("sandbox", True)]
    assert [(f["what"], bool(f["fix"])) for f in well.json() if not f["ok"]] == lacking
    assert well.code == (1 if lacking else 0), well
    assert {f["what"] for f in well.json()} >= {
        "python", "git", "sqlite", "store", "disk", "steersman.toml", "checks",
    }  # fmt: skip


def test_an_overdue_timer_is_shown_in_red_by_every_command(project: Project) -> None:
    """A run whose time has come and that nobody drives is named on standard error, but not beside `runs --json`."""
    story = roundtable_story(retries=3, unattended={"on_limit": "wait"})
    story["crew"]["coder"][1] |= {"error": "provider_rate_limited", "reset_in": "3000"}
    parked = project.run(story)
    assert (parked.code, parked.json()["status"]) == (3, "waiting until"), parked
    run = parked.json()["run"]
    assert "waits until" in project.call("why", run).out
    assert project.call("runs").err == ""
    db = apsw.Connection(str(project.state / "store.db"))
    db.execute("UPDATE head SET due = 1000 WHERE run = ?", (run,))
    db.close()
    for words in (["runs"], ["gates"], [], ["machine", "list"], ["show", run, "--json"]):
        assert f"steersman resume {run}" in project.call(*words).err
    assert project.call("runs", "--json").err == ""
    assert project.call("doctor").code == 1


@pytest.fixture
def finished(project: Project) -> tuple[Project, str]:
    """A project with an approved run."""
    result = project.run(roundtable_story())
    assert result.code == 0, result
    run: str = result.json()["run"]
    return project, run


def test_audit_answers(finished: tuple[Project, str]) -> None:
    """A finished run is anchored by itself, verifies, and is decided the same again."""
    project, run = finished
    verdict = project.call("audit", "verify", run, "--json").json()
    assert (verdict["ok"], verdict["anchored"], verdict["problems"]) == (True, True, [])
    again = project.call("audit", "replay", run, "--json").json()
    assert again["same"] > 5
    assert (again["different"], again["other_version"]) == (0, 0)
    assert project.call("audit", "anchor", run).code == 0


def test_an_export_checks_without_steersman(finished: tuple[Project, str]) -> None:
    """Every exported entry has the hash it says, and follows the one before."""
    project, run = finished
    lines = [json.loads(line) for line in project.call("audit", "export", run).out.splitlines()]
    entries = [line for line in lines if "entry" in line]
    assert len(entries) == lines[0]["entries"]
    before = "0" * 64
    for line in entries:
        assert line["entry"]["prev"] == before
        body = json.dumps(line["entry"], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert hashlib.sha256(body).hexdigest() == line["hash"]
        before = line["hash"]


def test_prune_drops_texts_and_keeps_the_tape(finished: tuple[Project, str]) -> None:
    """Pruning asks first; afterwards nobody can go on with the run, its sessions are gone, and its tape still verifies."""
    project, run = finished
    mine, other = (project.state / "sessions" / name / "a session" for name in (run, "another"))
    mine.mkdir(parents=True)
    other.mkdir(parents=True)
    asked = project.call("audit", "prune", run)
    assert asked.code != 0
    assert mine.exists()
    done = project.call("audit", "prune", run, "--reason", "old", "--yes", "--json")
    assert done.code == 0, done
    assert done.json()["payloads"] > 5
    assert (mine.exists(), other.exists()) == (False, True)
    assert project.call("audit", "verify", run).code == 0
    assert project.call("show", run).code == 0
    assert project.call("followup", run, "more").code != 0


def test_a_changed_byte_is_found(finished: tuple[Project, str]) -> None:
    """A tampered entry is named by `audit verify`, with exit 5."""
    project, run = finished
    db = apsw.Connection(str(project.state / "store.db"))
    db.execute(
        "UPDATE entry SET body = replace(body, 'approve', 'appr0ve') WHERE run = ? AND seq = 6", (run,)
    )
    db.close()
    result = project.call("audit", "verify", run, "--json")
    assert result.code == 5
    assert result.json()["first_bad"] == 6


def test_the_machine_is_published_as_it_is_executed(project: Project) -> None:
    """The table comes as JSON, Mermaid and Markdown; the check prints its cases and finds nothing."""
    table = json.loads(project.call("machine", "show", "roundtable", "--format", "json").out)
    assert table.keys() == {"name", "initial", "states", "rows", "laws"}
    assert {"from", "on", "when", "to", "cap", "label", "source"} == table["rows"][0].keys()
    assert project.call("machine", "show", "roundtable", "--format", "mermaid").out.startswith("stateDiagram")
    assert "| `test` |" in project.call("machine", "show", "roundtable").out
    checked = project.call("machine", "check", "roundtable", "--json")
    assert checked.code == 0
    (told,) = checked.json()
    assert told["cases"] > 1000
    assert told["findings"] == []
    assert "roundtable" in project.call("machine", "list").out


def test_where_no_run_can_start_it_is_said_and_nothing_is_left(project: Project) -> None:
    """Outside a repository, in a bare one and in a damaged one: `init` says so, `run` leaves no store behind."""
    for name, words in (
        ("plain", None),
        ("bare", ("init", "-q", "--bare", ".")),
        ("damaged", ("init", "-q", ".")),
    ):
        place = project.place / name
        place.mkdir()
        if words:
            subprocess.run(["git", *words], cwd=place, env=project.env, check=True)
        if name == "damaged":
            (place / ".git" / "HEAD").write_text("junk")
        here = ("--project", str(place))
        result = project.call("init", *here, "--json")
        assert (result.code, bool(result.json()["problem"])) == (0, True), result
        assert ("no whole repository" in result.err) == (name == "damaged"), result
        assert ("git init" in result.err) == (name == "plain"), result
        assert project.call("run", "x", *here).code == 2
        assert "nothing has been run here yet" in project.call("runs", *here).out
    assert not list((project.place / "state").glob("**/store.db"))
