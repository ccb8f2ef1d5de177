"""The real codex, driven through its adapter against the scripted model."""

import asyncio
from pathlib import Path

import pytest
from install import program
from msgspec import structs
from tests.support.agent_matrix import AGENT_CASES, KEY_NAME, case_request, run_case, run_killed
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer, RunShell, SayText
from tests.support.model_server.cases import (
    CASE_CONTENT,
    CASE_FILE,
    CASE_TEXT,
    SLEEP_COMMAND,
    answer_with_edit,
    answer_with_shell,
    answer_with_text,
)

from steersman.adapters.agents.codex import CodexAgent, CodexOptions
from steersman.adapters.sandbox.bubblewrap import probe_sandbox

VERSION = "0.166.0"


class Codex:
    """How the tests reach codex."""

    name, version = "codex", VERSION

    def environment(self, url, key):  # noqa: ARG002  the role's table says where the model is
        return {KEY_NAME: key} if key else {}

    def options(self, url):
        path = program("codex")
        assert path is not None, "codex is not installed: run `make test-agents`"
        return {"program": str(path), "base_url": f"{url}/v1", "key_env": KEY_NAME, "model": "scripted-model"}

    def agent(self, place: Path, sandbox, options):
        return CodexAgent(place, sandbox, CodexOptions(**options))


@pytest.mark.parametrize("name", AGENT_CASES, ids=lambda name: name.replace(" ", "-"))
def test_case(rig, name):
    """A call ends in its class, within its clock, with nothing left alive and nothing changed outside the working tree."""
    row, reply, _ = run_case(Codex(), AGENT_CASES[name], rig)
    row.check()
    if reply is not None:
        AGENT_CASES[name].also(rig, reply)


def test_nothing_survives_a_killed_steersman(rig):
    """After kill -9 of steersman while a tool runs, neither the CLI nor its tool is alive, and no file of the user changed."""
    run_killed(Codex(), rig).check()


# ── what only codex does ────────────────────────────────────────────────────────────────────────────────────────────


def called(rig, script, mode="required", case="edit", **more):
    """One call outside the matrix: another script, another box, other options."""
    session = more.pop("session", None)
    with ModelServer(script) as server:
        rig.monkeypatch.setenv(KEY_NAME, MODEL_SERVER_KEY)
        options = {**Codex().options(server.url), **more}
        agent = Codex().agent(
            rig.place, probe_sandbox(mode), {k: v for k, v in options.items() if v is not None}
        )
        asked = structs.replace(case_request(AGENT_CASES[case], rig, options), session=session)
        return asyncio.run(agent.call(asked)), server


def test_in_its_own_sandbox_it_edits(rig):
    """Without a box codex's own sandbox holds: it edits the tree; its home is not below its temporary directory."""
    reply, _ = called(rig, answer_with_edit, "off")
    assert reply.error is None, reply.detail
    assert (rig.work / CASE_FILE).read_text() == CASE_CONTENT


def test_a_silent_denial_of_its_own_sandbox_is_found(rig):
    """codex ends with 0 and no event for a command that its own sandbox stopped; a writer's call is a denial all the same."""
    reply, _ = called(rig, answer_with_edit, "off", "denied tool")
    assert reply.error == "provider_permission_denied"
    assert CASE_FILE in reply.denied[0]
    assert not (rig.work / CASE_FILE).exists()


@pytest.mark.parametrize("mode", ["required", "off"])
def test_a_reader_that_is_denied_goes_on(rig, mode):
    """Whoever only reads is told what it may not do, and its answer counts."""
    reply, _ = called(rig, answer_with_edit, mode, "text")
    assert (reply.error, reply.text) == (None, CASE_TEXT)
    assert len(reply.denied) == 1
    assert not (rig.work / CASE_FILE).exists()


def test_a_model_that_has_its_tools_in_a_program(rig):
    """The model that codex chooses by itself calls its tools from JavaScript; it edits like any other."""
    reply, server = called(rig, answer_with_edit, model=None)
    assert reply.error is None, reply.detail
    assert "exec" in server.turns[0].tools
    assert (rig.work / CASE_FILE).read_text() == CASE_CONTENT
    assert reply.model == server.turns[0].model


def test_a_session_goes_on_in_another_home(rig):
    """A kept session is continued by a later call, which is charged for its own turn alone."""
    first, _ = called(rig, answer_with_text, case="text", sessions=True)
    second, server = called(rig, answer_with_text, case="text", sessions=True, session=first.session)
    assert first.usage == second.usage
    assert first.session != second.session
    assert server.turns[0].prompt.count("Do what the script says") == 2
    gone = f"{first.session[:-1]}{'0' if first.session[-1] != '0' else '1'}"
    lost, server = called(rig, answer_with_text, case="text", sessions=True, session=gone)
    assert lost.error is None
    assert server.turns[0].prompt.count("Do what the script says") == 1


def test_a_session_that_is_not_kept_leaves_nothing(rig):
    """Without the role's word no session is kept, and none is told."""
    rig.again()
    reply, _ = called(rig, answer_with_text, case="text")
    assert reply.session is None
    assert rig.changed() == []


def test_its_tools_do_not_see_the_key(rig):
    """A command that codex runs has neither the key nor a token in its environment, and carries our mark."""

    def shows(turn):
        return SayText(CASE_TEXT) if turn.results else RunShell("env > seen.txt")

    called(rig, shows)
    text = (rig.work / "seen.txt").read_text()
    assert MODEL_SERVER_KEY not in text
    assert "STEERSMAN_EFFECT=" in text


@pytest.mark.parametrize("mode", ["required", "off"])
def test_a_cancelled_command_leaves_no_directories(rig, mode):
    """codex's sandbox makes mount points in the tree; after a cancel none is left."""
    before = {path.name for path in rig.work.iterdir()}

    async def cancelled():
        with ModelServer(answer_with_shell) as server:
            rig.monkeypatch.setenv(KEY_NAME, MODEL_SERVER_KEY)
            options = Codex().options(server.url)
            agent = Codex().agent(rig.place, probe_sandbox(mode), options)
            task = asyncio.ensure_future(agent.call(case_request(AGENT_CASES["cancel"], rig, options)))
            assert await asyncio.to_thread(rig.running, SLEEP_COMMAND)
            task.cancel()
            await asyncio.wait({task})

    asyncio.run(cancelled())
    assert rig.gone() == []
    assert {path.name for path in rig.work.iterdir()} == before


def test_a_long_prompt_is_sent_whole(rig):
    """A prompt longer than any argument may be reaches the model."""
    with ModelServer(answer_with_text) as server:
        rig.monkeypatch.setenv(KEY_NAME, MODEL_SERVER_KEY)
        options = Codex().options(server.url)
        agent = Codex().agent(rig.place, probe_sandbox("required"), options)
        asked = structs.replace(
            case_request(AGENT_CASES["text"], rig, options), prompt="line of a patch\n" * 20_000
        )
        reply = asyncio.run(agent.call(asked))
    assert reply.error is None, reply.detail
    assert server.turns[0].prompt.count("line of a patch") == 20_000
