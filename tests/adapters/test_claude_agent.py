"""How claude is called, and which login reaches it; no CLI is needed."""

import json
import uuid

import pytest

from steersman.adapters.agents.claude import (
    ClaudeAgent,
    ClaudeLogin,
    ClaudeOptions,
    build_claude_args,
    claude_hosts,
    find_claude_login,
)
from steersman.adapters.agents.registry import (
    AgentSpec,
    find_agent_obstacle,
    find_installed_agents,
    make_agent,
)
from steersman.adapters.sandbox.bubblewrap import OpenSandbox
from steersman.contracts.agent import AgentRequest
from steersman.contracts.config import Role
from steersman.contracts.replies import ReviewerReply, reply_schema
from steersman.errors import UserError

OPEN = OpenSandbox("a test")
SESSION = str(uuid.UUID(int=7, version=4))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home, and no login in the environment."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def asked(**more):
    given = {"role": "coder", "mode": "implementation", "prompt": "p", "workdir": "/", "writes": True}
    return AgentRequest(**{**given, "effect": "t:1:1", "nonce": "n", **more})


def said(permissions="read", options=None, **more):
    return list(build_claude_args(asked(**more), options or ClaudeOptions(), permissions))


def after(argv, flag):
    return argv[argv.index(flag) + 1]


def test_the_prompt_is_not_on_the_command_line():
    """Others can read a command line, and a long prompt does not fit on it."""
    assert not any("secret task" in word for word in said(prompt="secret task"))


@pytest.mark.parametrize(
    ("permissions", "mode", "has", "lacks"),
    [
        ("read", "dontAsk", {"Read", "Glob", "Grep"}, {"Edit", "Write", "Bash"}),
        ("edit", "acceptEdits", {"Read", "Edit", "Write"}, {"Bash"}),
        ("shell", "bypassPermissions", {"Read", "Edit", "Write", "Bash"}, set()),
    ],
)
def test_permissions_are_tools_and_a_mode(permissions, mode, has, lacks):
    """A reader has no tool that writes, an editor no shell; nobody has tools that reach the net or start agents."""
    argv = said(permissions)
    tools = set(after(argv, "--tools").split(","))
    assert after(argv, "--permission-mode") == mode
    assert has <= tools
    assert not tools & (lacks | {"WebFetch", "WebSearch", "Task", "Agent", "Skill", "Workflow"})


@pytest.mark.parametrize(("isolated", "mode"), [(True, "bypassPermissions"), (False, "acceptEdits")])
def test_a_shell_only_in_a_box(tmp_path, isolated, mode):
    """Without a box a coder edits and runs nothing of its own."""
    sandbox = OpenSandbox("a test")
    sandbox.isolated = isolated
    agent = ClaudeAgent(tmp_path, sandbox, ClaudeOptions())
    assert mode in list(
        build_claude_args(asked(), ClaudeOptions(), agent._permission_options(asked(permissions="shell")))
    )


def test_what_a_role_says_is_on_the_command_line():
    """Model, effort, ceiling, contract and session each have their flag; without a wish to keep it no session is kept."""
    options = ClaudeOptions(model="opus", effort="high", sessions=True)
    argv = said(options=options, schema=reply_schema(ReviewerReply), micro_usd=1_250_001, session=SESSION)
    assert (after(argv, "--model"), after(argv, "--effort")) == ("opus", "high")
    assert after(argv, "--max-budget-usd") == "1.250001"
    assert "$schema" not in json.loads(after(argv, "--json-schema"))
    assert after(argv, "--resume") == SESSION
    assert "--no-session-persistence" not in argv
    assert "--no-session-persistence" in said()


def test_the_way_out_leads_to_the_model_alone(home, monkeypatch):
    """A box reaches the API, the place where a lent login is renewed, and nothing else."""
    assert claude_hosts(renewed=False) == ("api.anthropic.com:443",)
    assert claude_hosts(renewed=True) == ("api.anthropic.com:443", "platform.claude.com:443")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:5000/x")
    assert claude_hosts(renewed=False) == ("127.0.0.1:5000",)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://gateway.example.org")
    assert claude_hosts(renewed=False) == ("gateway.example.org:443",)


def test_a_login_is_found_where_the_cli_would_find_it(home, monkeypatch):
    """The environment counts more than a login file, that more than a made key; none is none."""
    assert not any(find_claude_login())
    (home / ".claude.json").write_text(json.dumps({"primaryApiKey": "made", "mcpServers": {"x": 1}}))
    assert find_claude_login() == ClaudeLogin({"ANTHROPIC_API_KEY": "made"})
    (home / ".claude").mkdir()
    credentials = home / ".claude" / ".credentials.json"
    credentials.write_text("{}")
    assert find_claude_login() == ClaudeLogin(
        {"CLAUDE_SECURESTORAGE_CONFIG_DIR": str(home / ".claude")}, (str(credentials),)
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "given")
    assert find_claude_login() == ClaudeLogin({"ANTHROPIC_API_KEY": "given"})


@pytest.mark.parametrize("settings", ["", "[]", '{"primaryApiKey": 5}', "{"])
def test_a_settings_file_that_cannot_be_read_is_no_login(home, settings):
    """A broken file of the user's is not ours to complain about: there is no key in it."""
    (home / ".claude.json").write_text(settings)
    assert not any(find_claude_login())


def post(tmp_path, **role):
    return AgentSpec("coder", Role(**role), tmp_path, tmp_path / "homes", OPEN)


def test_a_role_is_filled_by_name(tmp_path):
    """claude and codex are made from a role's table, with the model that the table names."""
    assert type(make_agent(post(tmp_path, agent="claude", model="opus"))).__name__ == "ClaudeAgent"
    assert type(make_agent(post(tmp_path, agent="codex"))).__name__ == "CodexAgent"


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ({"agent": "cloud"}, ["[roles.coder]", "'cloud'", "claude"]),
        ({"agent": "claude", "options": {"porgram": "x"}}, ["[roles.coder]", "porgram", "program"]),
        ({"agent": "claude", "options": {"program": ""}}, ["[roles.coder]", "$.program"]),
        ({"agent": "scripted"}, ["[roles.coder]", "script"]),
    ],
)
def test_a_wrong_table_is_refused_with_its_field(tmp_path, role, words):
    """Before anything starts, with the role, the field and what is known instead."""
    with pytest.raises(UserError) as refused:
        make_agent(post(tmp_path, **role))
    assert all(word in str(refused.value) for word in words)


def test_what_stands_in_the_way_is_told(home, monkeypatch):
    """A program that is not installed and a login that is not there are told with the next step."""
    monkeypatch.setenv("PATH", str(home))
    assert find_installed_agents() == {}
    assert "was not found" in find_agent_obstacle(Role(agent="claude"))
    (home / "claude").write_text("#!/bin/sh\n")
    (home / "claude").chmod(0o755)
    assert find_installed_agents() == {"claude": str(home / "claude")}
    assert "not logged in" in find_agent_obstacle(Role(agent="claude"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "given")
    assert find_agent_obstacle(Role(agent="claude")) == ""
    assert find_agent_obstacle(Role(agent="scripted", script="x.yaml")) == ""
