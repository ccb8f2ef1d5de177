"""Secrets that pass through a run leave a marker, and nothing of them on the disk.

The scripts of the crew are kept outside the repository, and the repository's test has the secrets backwards: so whatever
a search finds was written by steersman.
"""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cases import for_each_case
from tests.support.sample_project import (
    APPROVAL,
    CHANGE_REQUEST,
    RIGHT_CODE,
    Project,
    render_config,
    roundtable_story,
)

from steersman.judges.replies.agent_reply import finding_id

# Joined here, so that no scanner takes this file for a leak.
SECRETS = {
    "anthropic": "sk-ant" + "-api03-" + "Aq1" * 24, "github": "ghp_" + "Cd2" * 12,
    "github fine": "github" + "_pat_" + "De3" * 20, "npm": "npm_" + "If4" * 12, "aws": "AKIA" + "QW" * 8,
    "jwt": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJlMQ",
    "url": "https://user:pw12345x@example.invalid/x.git", "assignment": "aws_secret_access_key=" + "Fg5" * 13,
    "pem": "-----BEGIN RSA PRIV" + "ATE KEY-----\nMIIEsecretkeylines\n-----END RSA PRIV" + "ATE KEY-----",
}  # fmt: skip
PARTS = {
    **SECRETS,
    "url": "user:pw12345x",
    "assignment": "Fg5" * 13,
    "pem": "MIIEsecretkeylines",
}  # what must be gone
KNOWN = "Kn0wn-by-name/value+1"  # of a variable whose name says it
NAMED = "an ordinary phrase nobody would notice"  # of a variable that steersman.toml names
LOGIN = "l0gin-from-netrc"
ALL = {**PARTS, "known": KNOWN, "named": NAMED, "login": LOGIN}
TEXT = "\n".join(
    [
        *SECRETS.values(),
        f"the values {KNOWN} and {NAMED} and {LOGIN}",
        "kept: 2497138874416366ec0ab3834174912f75fd6168",
    ]
)
LINE = " ".join(v for n, v in SECRETS.items() if n != "pem") + f" {KNOWN} {NAMED} {LOGIN}"
NOISY = f"""import base64, sys, unittest
TEXT = {TEXT[::-1]!r}[::-1]
KNOWN = {KNOWN[::-1]!r}[::-1]
class Noisy(unittest.TestCase):
    def test_noisy(self):
        out = sys.stderr
        out.write(TEXT + "\\n")
        out.write(base64.b64encode(KNOWN.encode()).decode() + "\\n" + base64.b64encode(b"user:" + KNOWN.encode()).decode() + "\\n")
        out.write(base64.encodebytes(TEXT.encode()).decode())
        out.write(KNOWN[:5] + "\\x1b[31m" + KNOWN[5:] + "\\x1b[0m\\n" + KNOWN[:9] + "\\n" + KNOWN[9:] + "\\n")
        out.write("." * (65536 - 7 - out.tell() % 65536 if out.seekable() else 65529) + KNOWN + "\\n")
        out.flush()
        self.fail(TEXT)
"""
CREW = {
    "version": "1",
    "coder": [
        {"mode": "proposal", "say": TEXT},
        {"mode": "implementation", "round": "1", "say": TEXT, "edit": [
            {"write": "calc.py", "text": RIGHT_CODE}, {"write": ".env", "text": TEXT}, {"write": f"notes-{SECRETS['github']}.txt", "text": "x"}]},
        {"mode": "implementation", "say": TEXT, "edit": [{"append": "calc.py", "text": "# why\n"}]},
    ],
    "reviewer": [
        {"mode": "proposal", "say": TEXT},
        {"mode": "implementation", "round": "1", "reply": {**CHANGE_REQUEST, "summary": TEXT, "must_fix": [LINE], "nice_to_have": [TEXT], "security": [TEXT]}},
        {"mode": "implementation", "reply": {**APPROVAL, "summary": TEXT, "fixed": [finding_id(LINE)]}},
    ],
    "tester": [
        {"mode": "proposal", "say": TEXT},
        {"mode": "implementation", "reply": {
            "test_plan": TEXT, "commands": [["python3", "-m", "unittest", "-q"], ["curl", "-H", f"Authorization: Bearer {SECRETS['github']}"]],
            "expected_results": [TEXT]}},
    ],
}  # fmt: skip
BOB = {"version": "1", "chat": [{"say": TEXT, "tokens": "1"}]}


@pytest.fixture(scope="module")
def leaky(projects) -> tuple[Project, str, list[str]]:
    """A run, a conversation and every kind of command, with secrets in all of them; and what they printed."""
    project: Project = projects()
    out: list[str] = []
    crew, bob = project.place / "crew.yaml", project.place / "bob.yaml"
    crew.write_text(json.dumps(CREW))
    bob.write_text(json.dumps(BOB))
    told = render_config(roundtable_story()).replace('"../crew.yaml"', json.dumps(str(crew)))
    told += (
        f'[redact]\nenv = ["MOOD"]\n[chat.agents.bob]\nagent = "scripted"\nscript = {json.dumps(str(bob))}\n'
    )
    (project.repo / "steersman.toml").write_text(told)
    (project.repo / "test_noisy.py").write_text(NOISY)
    (project.place / ".netrc").write_text(f"machine h.invalid login me password {LOGIN}\n")
    project.env |= {"MY_SERVICE_TOKEN": KNOWN, "MOOD": NAMED}
    project.git("add", "-A")
    project.git("commit", "-qm", "leaky")

    def call(*words: str) -> int:
        result = project.call(*words)
        out.extend((result.out, result.err))
        return result.code

    assert call("run", f"use {LINE}\n{TEXT}", "--mode", "proposal", "--max-iterations", "2") == 3
    run = json.loads(project.call("runs", "--json").out)[0]["run"]
    call("approve", run, "--reason", LINE)
    for _ in range(3):
        if project.call("show", run, "--json").json()["status"] == "waiting for you":
            call("approve", run, "--reason", TEXT)
    call("followup", run, TEXT)
    call("send", run, LINE, "--reason", LINE)
    call(
        "send", run, "aborted_by_operator", "--data", json.dumps({"choice": LINE, "text": TEXT, LINE: [TEXT]})
    )
    call("abort", run, "--reason", LINE)
    call("chat", "send", f"@bob {TEXT}")
    call("chat", "new", LINE)
    for words in (["show"], ["why"], ["report"], ["gates"], ["audit", "tape"], ["audit", "verify"]):
        call(*words, run)
        call(*words, run, "--json")
    call("audit", "export", run, "--payloads")
    call("runs")
    call()
    call("audit", "prune", project.call("run", LINE, "--json").json()["run"], "--reason", LINE, "--yes")
    call("run", "x", "--detach", "--mode", LINE)
    return project, run, out


def kept(project: Project) -> list[Path]:
    """Everything steersman has written: its state and the artifacts; not the working trees, which are the user's repository."""
    places = [project.place / "state", project.repo / ".steersman"]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    return [path for path in files if "worktrees" not in path.parts]


@for_each_case("name", ALL)
def test_nothing_of_it_is_on_the_disk(leaky, name):
    """Neither plain nor in base64, in no table, no log, no transcript, no report, no name of a file."""
    project, _, _ = leaky
    secret = ALL[name].encode()
    forms = {secret, base64.b64encode(secret), secret.hex().encode()}
    looked = kept(project)
    assert len(looked) > 10
    for path in looked:
        data = path.read_bytes()
        assert not [form for form in forms if form in data or form in str(path).encode()], path


@for_each_case("name", ALL)
def test_nothing_of_it_is_printed(leaky, name):
    """Whatever a command says about the run."""
    _, _, out = leaky
    assert not [text for text in out if ALL[name] in text]


def test_markers_are_there_and_equal(leaky):
    """A secret has one marker throughout its run, and another in another run; what is no secret stays."""
    project, run, _ = leaky
    report = project.call("report", run).out
    export = project.call("audit", "export", run, "--payloads").out
    plain = set(re.findall(r"\[redacted:github:[0-9a-f]{8}\]", export))
    assert len(plain) == 2  # the token and the fine-grained one
    assert plain & set(re.findall(r"\[redacted:github:[0-9a-f]{8}\]", report))
    thread = project.call("chat", "threads", "--json").json()[1]["id"]
    assert not plain & set(
        re.findall(r"\[redacted:github:[0-9a-f]{8}\]", project.call("chat", "show", thread).out)
    )
    assert "2497138874416366ec0ab3834174912f75fd6168" in export


def test_the_tape_still_fits(leaky):
    """Markers are what was hashed: nothing was changed afterwards."""
    project, _, _ = leaky
    assert project.call("audit", "verify").code == 0


def test_the_patch_is_redacted_and_the_tree_is_not(leaky):
    """What the coder wrote is in its branch as it wrote it; the patch that is kept, shown and reviewed has markers."""
    project, run, _ = leaky
    patch = (project.repo / ".steersman" / "runs" / run / "code" / "diff.patch").read_text()
    assert "+++ b/.env" in patch
    assert "notes-[redacted:github:" in patch
    refs = project.git("for-each-ref", "--format=%(refname)", f"refs/steersman/{run}").split()
    assert any(
        SECRETS["github"] in project.git("show", f"{ref}:.env")
        for ref in refs
        if ".env" in project.git("ls-tree", "--name-only", ref)
    )


def test_a_secret_in_the_configuration_is_refused(projects):
    """A check that holds one would run with its marker: the error names the field."""
    project: Project = projects()
    project.prepare(
        roundtable_story(checks={"unit": ["python3", "-m", "unittest", f"--token={SECRETS['github']}"]})
    )
    result = project.call("run", "x")
    assert result.code == 2
    assert "checks.unit.run[3] looks like a secret" in result.err
    assert SECRETS["github"] not in result.err


def test_a_defect_tells_no_secret(projects, monkeypatch, capsys):
    """What goes wrong inside steersman is told with its traceback, and without secrets."""
    from steersman.faces.cli import main
    from steersman.wiring import SERVICES

    def broken(*_args: object, **_more: object) -> None:
        raise RuntimeError(f"boom {SECRETS['github']}\x1b[2J\nsteersman: forged")

    monkeypatch.setattr(main.steersman_group, "main", broken)
    assert main.run_command_line(SERVICES, ["runs"]) == 70
    err = capsys.readouterr().err
    assert SECRETS["github"] not in err
    assert "boom [redacted:github:" in err
    assert "\x1b" not in err
    assert "\nsteersman: forged" not in err


def test_no_picture_of_memory_is_written():
    """A crash leaves no core dump, neither of steersman nor of what it starts."""
    code = "from steersman.wiring import run_steersman as main; main(['--version']); import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode().splitlines()[-1] == "0"
