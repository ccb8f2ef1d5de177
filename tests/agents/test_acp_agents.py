"""The real gemini, opencode and claude over the Agent Client Protocol, against the scripted model.

Five cases always; all of them with STEERSMAN_AGENT_CASES=all.
"""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from install import program
from tests.support.agent_matrix import AGENT_CASES, case_request, run_case
from tests.support.model_server import ModelServer
from tests.support.model_server.cases import answer_with_text

from steersman.adapters.agents.acp import AcpAgent, AcpOptions
from steersman.adapters.agents.acp_gemini import make_gemini_profile
from steersman.adapters.agents.acp_opencode import make_opencode_profile
from steersman.adapters.agents.registry import make_claude_profile
from steersman.adapters.sandbox.bubblewrap import probe_sandbox

ALWAYS = ("text", "edit", "401", "refused", "cancel")
CHOSEN = tuple(AGENT_CASES) if os.environ.get("STEERSMAN_AGENT_CASES") == "all" else ALWAYS
SLOW = {"seconds": 150, "start": 90, "idle": 60}  # they take many seconds to start where the machine is busy
KEY_NAME = "SCRIPTED_API_KEY"
# What these agents do not tell: gemini says 500 for a model that is not there, opencode tries again without a status,
# claude waits out a limit without a word.
UNTOLD = {
    ("gemini", "bad model"): "provider_network_error", ("opencode", "429"): "provider_network_error",
    ("opencode", "529"): "provider_network_error", ("claude-acp", "429"): "provider_timeout",
}  # fmt: skip


class Gemini:
    """How the tests reach gemini."""

    name, version = "gemini", "0.61.0"

    def environment(self, url, key):
        found = {"GOOGLE_GEMINI_BASE_URL": url}
        return {**found, "GEMINI_API_KEY": key} if key else found

    def options(self, url):  # noqa: ARG002  the environment says it
        path = program("gemini")
        assert path is not None, "gemini is not installed: run `make test-agents`"
        return {"program": str(path), "model": "gemini-2.5-flash"}

    def agent(self, place: Path, sandbox, options):
        return AcpAgent(place, sandbox, AcpOptions(**options), make_gemini_profile)


class Opencode:
    """How the tests reach opencode: a provider of our own, with its key in the environment."""

    name, version = "opencode", "1.18.33"

    def environment(self, url, key):  # noqa: ARG002  the settings say where the model is
        return {KEY_NAME: key} if key else {}

    def options(self, url):
        path = program("opencode")
        assert path is not None, "opencode is not installed: run `make test-agents`"
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": f"{url}/v1", "apiKey": f"{{env:{KEY_NAME}}}"},
            "models": {"m": {"name": "m"}},
        }
        settings = {"provider": {"scripted": provider}}
        return {"program": str(path), "model": "scripted/m", "settings": settings, "environment": [KEY_NAME]}

    def agent(self, place: Path, sandbox, options):
        return AcpAgent(place, sandbox, AcpOptions(**options), make_opencode_profile)


class ClaudeAcp:
    """How the tests reach claude over the protocol."""

    name, version = "claude-acp", "0.49.0"

    def environment(self, url, key):
        found = {"ANTHROPIC_BASE_URL": url}
        return {**found, "ANTHROPIC_API_KEY": key} if key else found

    def options(self, url):  # noqa: ARG002  the environment says it
        path = program("claude-acp")
        assert path is not None, "claude-agent-acp is not installed: run `make test-agents`"
        return {"program": str(path)}

    def agent(self, place: Path, sandbox, options):
        return AcpAgent(place, sandbox, AcpOptions(**options), make_claude_profile)


CLIS = {"gemini": Gemini, "opencode": Opencode, "claude-acp": ClaudeAcp}


@pytest.mark.parametrize("name", CHOSEN, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("cli", CLIS)
def test_case(rig, cli, name):
    """A call ends in its class, within its clock, with nothing left alive and nothing changed outside the working tree."""
    case = replace(AGENT_CASES[name], expect=UNTOLD.get((cli, name), AGENT_CASES[name].expect), **SLOW)
    row, reply, _ = run_case(CLIS[cli](), case, rig)
    row.check()
    if reply is not None and name != "text":
        case.also(rig, reply)


def test_opencode_takes_no_other_model(rig):
    """A model that opencode does not know would be replaced by a hosted one: the call ends before anything is said."""
    with ModelServer(answer_with_text) as server:
        options = {**Opencode().options(server.url), "model": "scripted/unknown"}
        agent = Opencode().agent(rig.place, probe_sandbox("required"), options)
        reply = asyncio.run(agent.call(case_request(replace(AGENT_CASES["text"], **SLOW), rig, options)))
    assert reply.error == "provider_invalid_request", reply.detail
    assert server.turns == []
