"""Facts and memories from the command line."""

import json
import subprocess

from tests.support.sample_project import Project

from steersman.adapters.storage.sqlite.chat import SqliteChats
from steersman.adapters.storage.sqlite.store import SqliteJournal
from steersman.testing.conformance_chat import CHAT_THREAD


def test_facts_have_their_lines(project: Project) -> None:
    """Each fact is shown with file and line; one kind alone on demand; nothing is written."""
    result = project.call("facts")
    assert result.code == 0
    assert "python -m unittest discover -q" in result.out
    assert "test_calc.py:1" in result.out
    assert "2 files seen, 2 read, 0 left out; complete" in result.out
    data = json.loads(project.call("facts", "--kind", "language", "--json").out)
    assert {fact["kind"] for fact in data["facts"]} == {"language"}
    assert {e["id"] for e in data["evidence"]} == {
        name for fact in data["facts"] for name in fact["evidence"]
    }
    assert project.call("facts", "--kind", "weather").code == 2


def test_a_memory_is_kept_found_and_forgotten(project: Project) -> None:
    """From nothing to one and back; secrets are taken out; every answer is there for programs too."""
    empty = project.call("memory", "list")
    assert (empty.code, "nothing is remembered here yet" in empty.out) == (0, True)
    assert json.loads(project.call("memory", "search", "x", "--json").out) == []
    token = "ghp_" + "a1B2c3D4e5" * 4
    kept = project.call("memory", "add", f"生产部署流程 needs {token}", "--tag", "release", "--scope", "repo")
    assert (kept.code, "a secret was taken out of it" in kept.out) == (0, True)
    data = json.loads(project.call("memory", "search", "部署", "--json").out)
    assert [(m["scope"], m["tags"]) for m in data] == [("repo", ["release"])]
    assert token not in json.dumps(data)
    again = json.loads(
        project.call("memory", "add", f"生产部署流程 needs {token}", "--scope", "repo", "--json").out
    )
    assert (again["new"], again["memory"]["id"]) == (False, data[0]["id"])
    assert "tags: release" in project.call("memory", "list").out
    assert project.call("memory", "forget", data[0]["id"]).code == 0
    gone = project.call("memory", "forget", data[0]["id"])
    assert (gone.code, "there is no memory" in gone.err) == (2, True)
    assert "nothing was found" in project.call("memory", "search", "部署").out
    nobody = project.call("memory", "add", "x", "--scope", "task")
    assert (nobody.code, "--subject NAME" in nobody.err) == (2, True)


def test_init_remembers_what_the_project_is(project: Project) -> None:
    """The first memory, so that a plan can be made; when the project has changed, it is said anew."""
    name = json.loads(project.call("init", "--yes", "--json").out)["memory"]
    kept = json.loads(project.call("memory", "list", "--json").out)
    assert [m["id"] for m in kept] == [name]
    assert "is written in python (2 files)." in kept[0]["text"]
    assert "It is tested by: python -m unittest discover -q." in kept[0]["text"]
    assert json.loads(project.call("init", "--yes", "--force", "--json").out)["memory"] == name
    (project.repo / "main.go").write_text("package main\n")
    assert json.loads(project.call("init", "--yes", "--force", "--json").out)["memory"] != name
    assert len(json.loads(project.call("memory", "list", "--json").out)) == 1


def test_memories_that_cannot_be_used(project: Project) -> None:
    """A broken file is named with the next step, and does not stand in the way of init."""
    assert project.call("memory", "add", "x").code == 0
    (path,) = project.place.rglob("memory.db")
    path.write_bytes(b"not a database " * 100)
    for words in (["list"], ["search", "x"], ["add", "y"], ["forget", "mem_000000000000"]):
        result = project.call("memory", *words)
        assert (result.code, "cannot be used" in result.err, "Traceback" in result.err) == (5, True, False)
    result = project.call("init", "--yes", "--json")
    assert (result.code, json.loads(result.out)["memory"]) == (0, None)


def test_the_way_out_of_a_damaged_file(project: Project) -> None:
    """A plan is BLOCKED with the file and a command; that command, as it stands, makes room for new memories."""
    assert project.call("init", "--yes").code == 0
    (path,) = project.place.rglob("memory.db")
    path.write_bytes(b"not a database " * 100)
    data = json.loads(project.call("plan", "Explain how it is built", "--json").out)
    failure = data["failure"]
    assert (data["state"], failure["cause"]) == ("BLOCKED", "memory_damaged")
    (mend,) = [r["how"] for r in failure["recovery_suggestions"] if "`" in r["how"] and str(path) in r["how"]]
    doctor = json.loads(project.call("doctor", "--json").out)
    (found,) = [f for f in doctor if f["what"] == "memories"]
    assert (found["ok"], found["fix"]) == (False, mend)
    subprocess.run(["sh", "-c", mend.split("`")[1]], check=True)
    assert [f["ok"] for f in json.loads(project.call("doctor", "--json").out) if f["what"] == "memories"] == [
        True
    ]
    assert project.call("memory", "add", "It is built by hand.").code == 0
    assert json.loads(project.call("memory", "list", "--json").out)[0]["text"] == "It is built by hand."


def test_no_agent_plants_a_memory(project: Project) -> None:
    """Whoever works for a run or a conversation may look, and neither adds nor forgets."""
    kept = json.loads(project.call("memory", "add", "x", "--json").out)["memory"]["id"]
    store = SqliteJournal(project.state / "store.db")
    SqliteChats(store).open(CHAT_THREAD, b"k")
    store.close()
    for words in (["add", "y"], ["forget", kept]):
        result = project.call("memory", *words, STEERSMAN_EFFECT="chat-1:1:1")
        assert (result.code, "an agent's words are no memory" in result.err) == (4, True)
    assert project.call("memory", "list", STEERSMAN_EFFECT="chat-1:1:1").code == 0
    assert len(json.loads(project.call("memory", "list", "--json").out)) == 1
