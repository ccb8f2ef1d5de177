"""A whole roundtable with real agents: claude writes, codex reviews and tests, and both follow a scripted model."""

import json
import os
import re
import subprocess
import sys

import pytest
from test_claude import Claude
from test_codex import Codex
from tests.support.agent_matrix import allow_project
from tests.support.model_server import (
    MODEL_SERVER_KEY,
    ModelServer,
    SayText,
    StructuredReply,
    UseTool,
    WriteFile,
)

from steersman.judges.replies.agent_reply import finding_id

WRONG = "def add(a, b):\n    return a - b\n"
BARE = "def add(a, b):\n    return a + b\n"
RIGHT = 'def add(a, b):\n    """The sum."""\n    return a + b\n'
TESTS = """import unittest

from calc import add


class Add(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
UNIT = ["python3", "-m", "unittest", "-q"]
WISH = "add() says in its docstring what it returns"
RULE = "Every function has a docstring."
VERDICT = {"summary": "I have read the diff.", "nice_to_have": [], "tests": [], "security": []}


def crew(turn):
    """What the two models say: the first review asks for one thing, which the second round does."""
    if turn.wire == "anthropic":
        return coder(turn)
    fields = (turn.schema or {}).get("properties", {})
    if "decision" in fields:
        return StructuredReply({"nonce": turn.nonce, **VERDICT, **reviewer(turn)})
    if "commands" in fields:
        plan = {"test_plan": "run what is there", "commands": [UNIT], "expected_results": ["one test passes"]}
        return StructuredReply({"nonce": turn.nonce, **plan})
    return SayText("The plan is sound.")


def coder(turn):
    if "Write" not in turn.tools:
        return SayText("add() subtracts. I would make it add.")
    if turn.results == 0:
        return UseTool("Read", {"file_path": "calc.py"})
    if turn.results == 1:
        return WriteFile("calc.py", RIGHT if WISH in turn.prompt else BARE)
    return SayText("It adds now.")


def reviewer(turn):
    """Approves what has the docstring; a finding that was open is called fixed by its id."""
    if '"""The sum."""' in turn.prompt:
        open_before = finding_id(WISH) in turn.prompt
        return {"decision": "approve", "must_fix": [], "fixed": [finding_id(WISH)] if open_before else []}
    return {"decision": "changes_requested", "must_fix": [WISH], "fixed": []}


@pytest.fixture
def project(rig):
    """A small repository with a failing test, its crew and its command line."""
    top = rig.root / "project"
    top.mkdir()
    for name, text in (("calc.py", WRONG), ("test_calc.py", TESTS), ("AGENTS.md", RULE)):
        (top / name).write_text(text)
    git = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run((*git, *words), cwd=top, check=True)
    return top


def settled(project, url):
    """steersman.toml: claude writes, codex reads."""
    tables = {"coder": Claude(), "reviewer": Codex(), "tester": Codex()}
    lines = [
        "version = 1", "[checks]", f"unit = {json.dumps(UNIT)}", "[rules]", 'red_base = "fix"', "[sandbox]",
        'mode = "required"',
    ]  # fmt: skip
    for role, cli in tables.items():
        table = {"agent": cli.name, **cli.options(url), "seconds": 120, "retries": 1}
        lines += [f"[roles.{role}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    (project / "steersman.toml").write_text("\n".join(lines) + "\n")


def steersman(project, *words):
    """The command line, as somebody called Ann types it, who trusts the project and allows its model server."""
    argv = (sys.executable, "-P", "-m", "steersman", *words)
    env = {**os.environ, "GIT_AUTHOR_NAME": "Ann", "GIT_COMMITTER_NAME": "Ann", "STEERSMAN_PERSON": "Ann"}
    env["XDG_CONFIG_HOME"] = allow_project(project)
    return subprocess.run(
        argv, cwd=project, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=400,
        check=False,
    )  # fmt: skip


def git(project, *words):
    return subprocess.run(("git", *words), cwd=project, capture_output=True, text=True, check=True).stdout


def test_from_a_proposal_to_an_accepted_change(rig, project):
    """Proposal, confirmation, a first round that is sent back, a second that passes; commit and tape tell all of it."""
    with ModelServer(crew) as server:
        for cli in (Claude(), Codex()):
            for name, value in cli.environment(server.url, MODEL_SERVER_KEY).items():
                rig.monkeypatch.setenv(name, value)
        settled(project, server.url)
        proposed = steersman(project, "run", "Make add() add", "--json")
        assert proposed.returncode == 3, proposed.stderr
        run = json.loads(proposed.stdout)["run"]
        done = steersman(project, "approve", run, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["outcome"] == "approved"
    _delivered(project, run)
    _on_tape(project, run)
    assert {turn.wire for turn in server.turns} == {"anthropic", "responses"}
    assert all(RULE in turn.prompt for turn in server.turns)
    assert rig.gone() == []


def _delivered(project, run):
    branch = f"steersman/{run}"
    message = git(project, "log", "-1", "--format=%B", branch)
    assert message.startswith("Make add() add\n")
    assert f"Steersman-Run: {run}" in message
    for trailer in ("Steersman-Tree", "Steersman-Contract", "Approved-by"):
        assert re.search(rf"^{trailer}: \S", message, re.MULTILINE), message
    tree = git(project, "rev-parse", f"{branch}^{{tree}}").strip()
    assert f"Steersman-Tree: {tree}" in message
    assert git(project, "show", f"{branch}:calc.py") == RIGHT
    assert git(project, "diff", "--name-only", "main", branch).split() == ["calc.py"]
    assert git(project, "show", "main:calc.py") == WRONG


def _on_tape(project, run):
    verdict = json.loads(steersman(project, "audit", "verify", run, "--json").stdout)
    assert (verdict["ok"], verdict["anchored"]) == (True, True)
    told = [
        json.loads(line) for line in steersman(project, "audit", "tape", run, "--json").stdout.splitlines()
    ]
    events = [entry.get("event") for entry in _entries(told)]
    wanted = [
        "await_operator_confirm", "implementation_confirmed", "review_changes_requested", "review_approved",
    ]  # fmt: skip
    places = [events.index(name) for name in (*wanted, "tests_passed")]
    assert places == sorted(places)
    assert events.count("start_reviewer") == 2
    actors = {
        entry.get("actor", "").split("/")[:2][-1] for entry in _entries(told) if "/" in entry.get("actor", "")
    }
    assert actors == {"claude", "codex"}
    digests = [
        entry["data"]["transcript"] for entry in _entries(told) if (entry.get("data") or {}).get("provider")
    ]
    assert (
        len(digests) == len(set(digests)) == 8
    )  # three words on the proposal; two coders, two reviewers, a tester
    assert {len(digest) for digest in digests} == {64}


def _entries(told):
    return told[0] if len(told) == 1 and isinstance(told[0], list) else told
