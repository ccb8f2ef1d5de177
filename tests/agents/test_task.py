"""Whole tasks with real agents that follow a scripted model: from a plan to a delivered commit, and held to a frozen plan."""

import json
import os
import time

import pytest
from test_claude import Claude
from test_codex import Codex
from test_roundtable import BARE, RIGHT, TESTS, UNIT, WRONG, git, steersman
from tests.support.agent_matrix import CLEAN_WITHIN, AgentRow
from tests.support.model_server import (
    MODEL_SERVER_KEY,
    ModelServer,
    RunShell,
    StructuredReply,
    UseTool,
    WriteFile,
)

TIMES = "def add(a, b):\n    return a * b\n"
NOTES = "# what is known\n"
WISH = "add() says in its docstring what it returns"
PLAN = {
    "title": "Make add() add", "brief": "It subtracts.", "requirements": ["add() adds"],
    "in_scope": ["calc.py"], "out_of_scope": [], "steps": ["mend it"], "risks": [], "assumptions": [],
    "acceptance_criteria": ["the tests pass"],
    "files": [{"path": "calc.py", "intent": "update", "summary": "the sum"}], "test_strategy": "unit tests",
    "test_cases": ["2 and 3"], "questions": [],
}  # fmt: skip
FINE = {"decision": "accept", "summary": "It can be built.", "blocking_issues": [], "suggestions": []}
PASSES = {
    "decision": "approve", "summary": "Read.", "blocking_issues": [], "plan_issues": [], "suggestions": [],
}  # fmt: skip
BUILT = {"status": "done", "summary": "It adds now.", "missing": []}
HERE = {"calc.py": WRONG, "test_calc.py": TESTS, "notes.md": NOTES, "old.md": NOTES}
CLOCK = 300.0


def said(turn, value):
    return StructuredReply({"nonce": turn.nonce, **value})


def hands(tools, deeds):
    """What is done, in the CLI's own way: claude writes over a file only when it has read it."""
    for deed in deeds:
        if "Read" in tools and isinstance(deed, WriteFile) and deed.path in HERE:
            yield UseTool("Read", {"file_path": deed.path})
        yield deed


def crew(coder):
    """What the models of a task say: a coder's deeds are the story's, the reviewer wants a docstring."""

    def script(turn):
        match turn.prompt:
            case prompt if "# Build a plan" in prompt:
                deeds = list(hands(turn.tools, coder(prompt)))
                return deeds[turn.results] if turn.results < len(deeds) else said(turn, BUILT)
            case prompt if "# Review a change" in prompt:
                wanted = {**PASSES, "decision": "needs_changes", "blocking_issues": [WISH]}
                return said(turn, PASSES if '"""The sum."""' in prompt else wanted)
            case prompt if "# Review a plan" in prompt:
                return said(turn, FINE)
            case _:
                return said(turn, PLAN)

    return script


def through_the_tests(prompt):
    """A change that its tests send back, one that its reviewer sends back, and one that passes."""
    if WISH in prompt:
        return [WriteFile("calc.py", RIGHT)]
    failed = "test/report.json" in prompt
    return [WriteFile("calc.py", BARE if failed else f'{TIMES}    """The sum."""\n')]


@pytest.fixture
def project(rig):
    """A small repository with a failing test and a file that no plan names."""
    top = rig.root / "project"
    top.mkdir()
    for name, text in HERE.items():
        (top / name).write_text(text)
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        git(top, *who, *words)
    return top


def settled(project, url, **roles):
    """steersman.toml: who plays which role."""
    lines = [
        "version = 1", "[checks]", f"unit = {json.dumps(UNIT)}", "[rules]", 'red_base = "fix"', "[sandbox]",
        'mode = "required"',
    ]  # fmt: skip
    lines += ["[task]", "max_regressions = 5"]
    for role, cli in roles.items():
        table = {"agent": cli.name, **cli.options(url), "seconds": 120, "retries": 1}
        lines += [f"[roles.{role}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    (project / "steersman.toml").write_text("\n".join(lines) + "\n")


def ready(rig, project, server, **roles):
    for cli in roles.values():
        for name, value in cli.environment(server.url, MODEL_SERVER_KEY).items():
            rig.monkeypatch.setenv(name, value)
    settled(project, server.url, **roles)
    git(project, "add", ".")
    git(project, "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "crew")
    rig.again()


def kept(rig, clis, case, began, got, detail=""):
    """The row of a story; what is steersman's own or the task's branch is where it has to be."""
    ours = ("state", "project/.steersman", "project/.git", "plan")
    changed = [path for path in rig.changed() if not path.startswith(ours)]
    left = rig.gone()
    took = round(time.monotonic() - began, 2)
    names, versions = ("+".join(sorted({getattr(c, f) for c in clis})) for f in ("name", "version"))
    row = AgentRow(
        names, versions, case, "delivered", got, took, CLOCK + CLEAN_WITHIN, len(left), changed, detail
    )
    row.keep()
    row.check()


def events(project, run):
    lines = steersman(project, "audit", "tape", run, "--json").stdout.splitlines()
    return [entry for line in lines for entry in [json.loads(line)] if entry["kind"] == "transition"]


def delivered(project, run):
    """What a task's branch changes, and calc.py there."""
    branch = f"steersman/{run}"
    assert git(project, "show", "main:calc.py") == WRONG
    return git(project, "diff", "--name-only", "main", branch).split(), git(
        project, "show", f"{branch}:calc.py"
    )


CREWS = {"claude": (Claude(), Claude()), "codex": (Codex(), Codex()), "mixed": (Claude(), Codex())}


@pytest.mark.parametrize("who", CREWS)
def test_a_whole_task(rig, project, who):
    """Planned, reviewed, built by the CLI's own tools, sent back by its tests and by its review, accepted, delivered."""
    writer, reader = CREWS[who]
    with ModelServer(crew(through_the_tests)) as server:
        ready(rig, project, server, planner=writer, coder=writer, reviewer=reader)
        began = time.monotonic()
        asked = steersman(project, "tasks", "new", "Make add() add", "--json")
        assert asked.returncode == 3, asked.stdout + asked.stderr
        run = json.loads(asked.stdout.splitlines()[-1])["run"]
        done = steersman(project, "tasks", "accept", run, "--reason", "it adds", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert delivered(project, run) == (["calc.py"], RIGHT)
    taken = events(project, run)
    names = [entry["event"] for entry in taken]
    wanted = (
        "planning_succeeded", "review_ok", "test_failures", "needs_code_changes", "tests_complete",
        "accepted",
    )  # fmt: skip
    places = [names.index(name) for name in wanted]
    assert places == sorted(places)
    assert names.count("code_written") == 3
    actors = {entry["actor"].split("/")[1] for entry in taken if "/" in entry.get("actor", "")}
    assert actors == {writer.name, reader.name}
    verdict = json.loads(steersman(project, "audit", "verify", run, "--json").stdout)
    assert (verdict["ok"], verdict["anchored"]) == (True, True)
    kept(rig, (writer, reader), "task", began, "delivered", f"{names.count('code_written')} turns of code")


# ── held to a frozen plan ───────────────────────────────────────────────────────────────────────────────────────────

FETCH = "curl http://127.0.0.1:9/"


def astray(prompt):
    """Files outside the plan; then the file itself renamed away; then a command; then what was asked for."""
    if FETCH in prompt:
        return [RunShell(" ".join(UNIT)), WriteFile("calc.py", RIGHT)]
    if "sums.py is outside" in prompt:
        return [RunShell(FETCH), WriteFile("calc.py", RIGHT)]
    if "notes.md is outside" in prompt:
        return [WriteFile("calc.py", RIGHT), RunShell("mv calc.py sums.py")]
    return [
        WriteFile("calc.py", RIGHT),
        WriteFile("notes.md", "mine\n"),
        WriteFile("new.py", "x = 1\n"),
        RunShell("rm old.md"),
    ]


def frozen(rig, project):
    """A plan about calc.py alone, beside the repository."""
    place, intent = rig.root / "plan", rig.root / "plan-intent.json"
    for words in (
        ("memory", "add", "Sums are sums."),
        ("intent", "new", "Fix add", "--mode", "full_auto", "--file", "calc.py", "--out", str(intent)),
        ("plan", str(intent), "--out", str(place)),
    ):
        said = steersman(project, *words)
        assert said.returncode == 0, said.stdout + said.stderr
    return place, json.loads((place / "manifest.json").read_text())["plan_id"]


@pytest.mark.parametrize("cli", [Claude(), Codex()], ids=lambda cli: cli.name)
def test_a_task_held_to_a_frozen_plan(rig, project, cli):
    """A coder that edits, creates, deletes and renames outside the plan and wants another command: each is named with the
    plan, nothing of it is taken, and what is delivered at last is inside."""
    with ModelServer(crew(astray)) as server:
        ready(rig, project, server, planner=cli, coder=cli, reviewer=cli)
        place, plan = frozen(rig, project)
        rig.again()
        began = time.monotonic()
        asked = steersman(project, "tasks", "new", "Make add() add", "--plan", str(place), "--json")
        assert asked.returncode == 3, asked.stdout + asked.stderr
        run = json.loads(asked.stdout.splitlines()[-1])["run"]
        done = steersman(project, "tasks", "accept", run, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert delivered(project, run) == (["calc.py"], RIGHT)
    heard = "\n".join(turn.prompt for turn in server.turns if "# Build a plan" in turn.prompt)
    for name in ("notes.md", "new.py", "old.md", "sums.py"):
        assert f"{name} is outside {plan}." in heard
    commands = [line for line in heard.splitlines() if f"is not a command of {plan}." in line]
    assert {FETCH in line for line in commands} == {True}
    names = [entry["event"] for entry in events(project, run)]
    assert names.count("bounds_left") == 3
    assert os.listdir(rig.root / "outside") == ["precious.txt"]
    kept(
        rig, (cli,), "task held to a plan", began, "delivered",
        f"{names.count('bounds_left')} times out of the plan",
    )  # fmt: skip
