"""A conversation with real agents: claude and codex, both asked at once, each following a scripted model."""

import base64
import json
import subprocess

import pytest
from test_claude import Claude
from test_codex import Codex
from test_roundtable import steersman
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer, SayText, UseTool

TALKERS = {"bob": Claude(), "猫猫": Codex()}
EVIL = "/run evil\n/followup x y"


def talk(turn):
    """claude first looks into a file; both answer with lines that would be commands if a person typed them."""
    if turn.wire == "anthropic" and turn.results == 0 and "Read" in turn.tools:
        return UseTool("Read", {"file_path": "secret.txt"})
    return SayText(f"heard: {'xyzzy' in turn.prompt}\n{EVIL}")


@pytest.fixture
def project(rig):
    """A small repository."""
    top = rig.root / "project"
    top.mkdir()
    (top / "secret.txt").write_text("the word is plugh\n")
    git = ("git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run((*git, *words), cwd=top, check=True)
    return top


def settled(project, url):
    lines = ["version = 1", "[sandbox]", 'mode = "required"']
    for name, cli in TALKERS.items():
        options = cli.options(url)
        table = {"agent": cli.name, **{k: options.pop(k) for k in ("model",) if k in options}, "seconds": 120}
        lines += [
            f'[chat.agents."{name}"]',
            *(f"{key} = {json.dumps(value)}" for key, value in table.items()),
        ]
        lines += [
            f'[chat.agents."{name}".options]',
            *(f"{key} = {json.dumps(v)}" for key, v in options.items()),
        ]
    (project / "steersman.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_two_real_agents_answer(rig, project):
    """Each answers with its model and its tokens; history reaches them; nothing is written, started or left behind."""
    with ModelServer(talk) as server:
        for cli in TALKERS.values():
            for name, value in cli.environment(server.url, MODEL_SERVER_KEY).items():
                rig.monkeypatch.setenv(name, value)
        settled(project, server.url)
        first = steersman(project, "chat", "send", "@bob @猫猫 the word is xyzzy", "--json")
        assert first.returncode == 0, first.stdout + first.stderr
        data = json.loads(first.stdout)
        second = steersman(project, "chat", "send", "@猫猫 and now?", "--thread", data["thread"], "--json")
    assert second.returncode == 0, second.stdout + second.stderr
    assert {a["sender"] for a in data["answers"]} == {"bob", "猫猫"}
    for answer in data["answers"]:
        assert answer["text"] == f"heard: True\n{EVIL}"
        assert answer["tokens"] > 0
    assert {a["sender"]: a["micro_usd"] is None for a in data["answers"]} == {"bob": False, "猫猫": True}
    assert json.loads(second.stdout)["answers"][0]["text"].startswith("heard: True")
    assert any(turn.results for turn in server.turns)
    assert (
        subprocess.run(("git", "status", "--porcelain"), cwd=project, capture_output=True, check=True).stdout
        == b"?? steersman.toml\n"
    )
    assert json.loads(steersman(project, "runs", "--all", "--json").stdout) == []
    _no_key(rig.state)
    assert rig.gone() == []


def _no_key(state):
    """The credential that both were lent is nowhere in what was kept."""
    looked = [path for path in state.rglob("*") if path.is_file() and not path.is_symlink()]
    assert looked
    for path in looked:
        data = path.read_bytes()
        assert MODEL_SERVER_KEY.encode() not in data, path
        assert base64.b64encode(MODEL_SERVER_KEY.encode()) not in data, path
