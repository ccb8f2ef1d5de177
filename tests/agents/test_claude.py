"""The real claude, driven through its adapter against the scripted model."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest
from install import program
from msgspec import structs
from tests.support.agent_matrix import AGENT_CASES, case_request, run_case, run_killed
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer, RunShell, SayText, UseTool
from tests.support.model_server.cases import CASE_SCRIPTS, answer_with_edit, answer_with_text

from steersman.adapters.agents.claude import ClaudeAgent, ClaudeOptions
from steersman.adapters.sandbox.bubblewrap import probe_sandbox

PROGRAM = os.environ.get("STEERSMAN_CLAUDE") or str(
    program("claude")
)  # another one, to see what a new version does
VERSION = (
    subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()[0]
    if os.path.exists(PROGRAM)
    else "not installed"
)


class Claude:
    """How the tests reach claude."""

    name, version = "claude", VERSION

    def environment(self, url, key):
        found = {"ANTHROPIC_BASE_URL": url}
        return {**found, "ANTHROPIC_API_KEY": key} if key else found

    def options(self, url):  # noqa: ARG002  the environment says it
        assert os.path.exists(PROGRAM), "claude is not installed: run `make test-agents`"
        return {"program": PROGRAM}

    def agent(self, place: Path, sandbox, options):
        return ClaudeAgent(place, sandbox, ClaudeOptions(**options))


@pytest.mark.parametrize("name", AGENT_CASES, ids=lambda name: name.replace(" ", "-"))
def test_case(rig, name):
    """A call ends in its class, within its clock, with nothing left alive and nothing changed outside the working tree."""
    row, reply, _ = run_case(Claude(), AGENT_CASES[name], rig)
    row.check()
    if reply is not None:
        AGENT_CASES[name].also(rig, reply)


def test_nothing_survives_a_killed_steersman(rig):
    """After kill -9 of steersman while a tool runs, neither the CLI nor its tool is alive, and no file of the user changed."""
    run_killed(Claude(), rig).check()


def ask(rig, server, case="text", **more):
    """One call with other options than the matrix has."""
    options = Claude().options(server.url)
    for name, value in Claude().environment(server.url, MODEL_SERVER_KEY).items():
        rig.monkeypatch.setenv(name, value)
    kept = {key: more.pop(key) for key in ("sessions", "model") if key in more}
    agent = Claude().agent(rig.place, probe_sandbox("required"), {**options, **kept})
    return asyncio.run(agent.call(structs.replace(case_request(AGENT_CASES[case], rig, options), **more)))


def test_a_reader_starts_outside_the_tree_and_reads_it(rig):
    """What the tree is called by is readable, and the directory in which claude starts is another one, and empty."""
    heard = []

    def model(turn):
        heard.append((turn.last, turn.prompt + turn.system))
        looks = (
            UseTool("Read", {"file_path": str(rig.work / "README.md")}),
            UseTool("Glob", {"pattern": "**/*"}),
        )
        return looks[turn.results] if turn.results < len(looks) else SayText("read")

    with ModelServer(model) as server:
        reply = ask(rig, server)
    assert (reply.text, reply.denied) == ("read", ())
    assert "# a project" in "".join(last for last, _ in heard)
    assert "No files found" in heard[-1][0]


def test_a_session_is_continued_in_another_directory(rig):
    """The next call knows what was said before, and is charged for itself alone; one that is not kept begins anew."""
    other = rig.work / "other"
    other.mkdir()
    with ModelServer(
        lambda turn: SayText(f"heard {turn.prompt.count('Do what the script says')} times")
    ) as server:
        first = ask(rig, server, sessions=True)
        again = ask(rig, server, sessions=True, session=first.session, workdir=str(other))
        gone = f"{first.session[:-1]}{'0' if first.session[-1] != '0' else '1'}"
        lost = ask(rig, server, sessions=True, session=gone)
    assert (first.text, again.text, lost.text) == ("heard 1 times", "heard 2 times", "heard 1 times")
    assert again.usage == first.usage
    assert len({first.session, again.session, lost.session}) == 3


def test_a_ceiling_of_money_ends_the_call(rig):
    """What a call may cost is told to the CLI, and a call that reaches it is no success; what it cost is known."""
    with ModelServer(answer_with_edit) as server:
        reply = ask(rig, server, "edit", micro_usd=1)
    assert reply.error == "provider_invalid_request"
    assert "ceiling" in reply.detail
    assert reply.usage.micro_usd
    assert reply.usage.micro_usd > 1


def test_the_model_is_the_one_that_was_asked_for(rig):
    """The model of the role's table is the one the server is asked for."""
    with ModelServer(answer_with_text) as server:
        reply = ask(rig, server, model="claude-sonnet-4-6")
    assert {turn.model for turn in server.turns} == {"claude-sonnet-4-6"}
    assert reply.model.startswith("claude-sonnet-4-6")


def test_a_long_prompt_arrives_whole(rig):
    """A prompt of megabytes, with every kind of letter, is what the model is sent."""
    prompt = "ünïcödé 提案 \n" * 100_000
    with ModelServer(answer_with_text) as server:
        reply = ask(rig, server, prompt=prompt)
    assert reply.error is None, reply.detail
    assert prompt.strip() in server.turns[0].prompt


def test_a_limit_says_when_it_is_over(rig):
    """The moment that a server names is the moment that is told, and nothing waits for it meanwhile."""
    before = time.time() * 1000
    with ModelServer(CASE_SCRIPTS["429"]) as server:
        reply = ask(rig, server)
    assert reply.error == "provider_rate_limited"
    assert 50_000 < reply.reset_at - before < 120_000
    assert len(server.turns) == 1


def test_a_shell_in_the_box_reaches_nothing(rig):
    """The coder's shell works in its tree and sees neither the user's home nor steersman's state nor the net."""
    store = rig.place.parent / "store.db"
    store.write_text("every run there is")
    session = rig.place.with_name("sessions") / "another-run" / "session.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text("what another call has said")
    command = (
        f"(find {rig.home} {rig.state} {rig.root}/outside -name '*.*'; cat {store}) > seen.txt 2>&1; "
        "(echo > /dev/tcp/1.1.1.1/80) 2> net.txt; echo $? >> net.txt; touch ~/mine; cp README.md copy.md"
    )
    script = lambda turn: SayText("done") if turn.results else RunShell(command)  # noqa: E731  a word for it reads better here
    with ModelServer(script) as server:
        reply = ask(rig, server, "edit")
    assert reply.error is None, reply.detail
    assert (rig.work / "copy.md").read_text() == "# a project\n"
    text = (rig.work / "seen.txt").read_text()
    assert not [
        word for word in (".bashrc", "precious.txt", "every run there is", session.name) if word in text
    ]
    assert (rig.work / "net.txt").read_text().strip().endswith("1")
    assert not (rig.home / "mine").exists()
