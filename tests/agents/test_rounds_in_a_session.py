"""Two rounds of a real coder: with `sessions = true` the second goes on where the first ended, without it begins anew."""

import json

import pytest
from test_claude import Claude
from test_codex import Codex
from test_roundtable import RIGHT, UNIT, VERDICT, _entries, git, project, steersman
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer, RunShell, SayText

WISH = "say in a docstring what it returns"
HEADING = "## task\n"  # once in every prompt
CREW = {
    "version": 1,
    "reviewer": [
        {"round": 1, "reply": {**VERDICT, "decision": "changes_requested", "must_fix": [WISH]}},
        {"round": 2, "reply": {**VERDICT, "decision": "approve", "must_fix": []}},
    ],
    "tester": [{"reply": {"test_plan": "run it", "commands": [UNIT], "expected_results": ["it passes"]}}],
}
ADDS = "sed -i 's/a - b/a + b/' calc.py"
SAYS = """sed -i '2i\\    """ + '"""The sum."""' + """' calc.py"""

__all__ = ["project"]


def coder(turn):
    """One command a round; what an earlier round has done is in the same conversation, or in none."""
    rounds = turn.prompt.count(HEADING)
    if turn.results < rounds:
        return RunShell(SAYS if WISH in turn.prompt else ADDS)
    return SayText(f"done, in round {rounds} of this conversation")


def settled(project, cli, url, **more):
    """steersman.toml: a real coder, and a crew of its own that costs nothing."""
    (project / "crew.yaml").write_text(json.dumps(CREW))
    tables = {
        "coder": {"agent": cli.name, **cli.options(url), "seconds": 120, "retries": 0, **more},
        **{role: {"agent": "scripted", "script": "crew.yaml"} for role in ("reviewer", "tester")},
    }
    lines = [
        "version = 1", "[checks]", f"unit = {json.dumps(UNIT)}", "[rules]", 'red_base = "fix"', "[sandbox]",
        'mode = "required"',
    ]  # fmt: skip
    for role, table in tables.items():
        lines += [f"[roles.{role}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    (project / "steersman.toml").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("more", [{"sessions": True}, {}], ids=["continued", "fresh"])
@pytest.mark.parametrize("cli", [Claude(), Codex()], ids=lambda cli: cli.name)
def test_a_second_round(rig, project, cli, more):
    """The model sees the first round's conversation before the second's prompt, or nothing of it; the tape says which."""
    with ModelServer(coder) as server:
        for name, value in cli.environment(server.url, MODEL_SERVER_KEY).items():
            rig.monkeypatch.setenv(name, value)
        settled(project, cli, server.url, **more)
        done = steersman(project, "run", "Make add() add", "--mode", "implementation", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    run = json.loads(done.stdout)["run"]
    assert git(project, "show", f"steersman/{run}:calc.py") == RIGHT
    lines = steersman(project, "audit", "tape", run, "--json").stdout.splitlines()
    entries = _entries([json.loads(line) for line in lines])
    first, _ = [e["data"].get("session", "") for e in entries if e.get("event") == "start_reviewer"]
    asked = [i["input"] for e in entries for i in e.get("planned", ()) if i["job"] == "implement"]
    kept = list((rig.state / "steersman").glob("*/sessions/*/*"))
    heard = [turn.prompt.count(HEADING) for turn in server.turns]
    if more:
        assert heard == [1, 1, 2, 2]
        assert first
        assert [i.get("session") for i in asked] == [None, first]
        assert first in [path.name for path in kept]
        assert {path.parent.name for path in kept} == {run}
    else:
        assert heard == [1, 1, 1, 1]
        assert (first, kept) == ("", [])
        assert not any("session" in i for i in asked)
    assert rig.gone() == []
