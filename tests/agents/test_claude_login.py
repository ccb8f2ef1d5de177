"""The user's login reaches claude through steersman; nothing else of the user's or the repository's configuration does."""

import asyncio
import json
import os
import subprocess
from dataclasses import replace

import pytest
from test_claude import PROGRAM, Claude
from tests.support.agent_matrix import AGENT_CASES, CALL_PROMPT, case_request
from tests.support.fake_tls_host import serve_tls_host
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer
from tests.support.model_server.cases import CASE_FILE, answer_with_edit

from steersman.adapters.sandbox.bubblewrap import probe_sandbox

WORD = "a-word-that-was-planted"
TOKEN = {
    "accessToken": MODEL_SERVER_KEY, "refreshToken": "nobody-renews-this", "expiresAt": 4_000_000_000_000,
    "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
}  # fmt: skip


def plant(rig):
    """A home and a repository in which everything that can act leaves a mark."""
    user, repository = rig.home / ".claude", rig.work / ".claude"
    for folder, name in ((user, "user"), (repository, "repository")):
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps(_settings(rig, name)))
        (folder / "CLAUDE.md").write_text(f"{WORD} memory of the {name}\n")
        for kind in ("skills/planted", "agents", "commands"):
            (folder / kind).mkdir(parents=True)
        told = f"---\nname: planted\ndescription: {WORD} {name}\n---\n{WORD}\n"
        (folder / "skills/planted/SKILL.md").write_text(told)
        (folder / "agents/planted.md").write_text(told)
    (rig.work / "CLAUDE.md").write_text(f"{WORD} of the tree\n")
    (rig.work / "CLAUDE.local.md").write_text(f"{WORD} of the tree, local\n")
    servers = {"users": {"command": "/bin/sh", "args": ["-c", rig.mark("mcp-user")]}}
    (rig.home / ".claude.json").write_text(
        json.dumps({"mcpServers": servers, "hasCompletedOnboarding": True})
    )
    servers = {"repositorys": {"command": "/bin/sh", "args": ["-c", rig.mark("mcp-repository")]}}
    (rig.work / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def _settings(rig, name):
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    hooks = {e: [{"hooks": [{"type": "command", "command": rig.mark(f"hook-{name}-{e}")}]}] for e in events}
    return {
        "hooks": hooks, "model": f"{WORD}-model", "env": {"PLANTED": WORD},
        "apiKeyHelper": rig.mark(f"helper-{name}") + "; echo wrong-key", "enableAllProjectMcpServers": True,
        "permissions": {"deny": ["Write"]},
    }  # fmt: skip


@pytest.fixture
def planted(rig):
    """The rig with everything planted."""
    (rig.root / "markers").mkdir()
    plant(rig)
    return rig


def call(rig, server, mode):
    """One call that edits a file, as a coder's."""
    rig.monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    cli = Claude()
    options = cli.options(server.url)
    agent = cli.agent(rig.place, probe_sandbox(mode), options)
    return asyncio.run(
        agent.call(case_request(replace(AGENT_CASES["edit"], permissions="edit"), rig, options))
    )


@pytest.mark.parametrize("mode", ["required", "off"])
def test_the_login_is_lent_and_nothing_else(planted, mode):
    """With a login in the user's home claude is logged in, and no hook, server, helper, memory or setting is active."""
    login = planted.home / ".claude/.credentials.json"
    login.write_text(json.dumps({"claudeAiOauth": TOKEN}))
    planted.again()
    with ModelServer(answer_with_edit) as server:
        reply = call(planted, server, mode)
    assert reply.error is None, reply.detail
    assert (planted.work / CASE_FILE).exists()
    assert planted.marks() == set()
    assert {turn.key for turn in server.turns} == {MODEL_SERVER_KEY}
    sent = b"".join(seen.body for seen in server.requests)
    assert WORD.encode() not in sent
    assert not any(tool.startswith("mcp__") for turn in server.turns for tool in turn.tools)
    assert planted.changed() == []
    assert TOKEN["accessToken"] not in _all_text(planted)


def _all_text(rig):
    """Everything that is left below the case, but for the login itself."""
    files = [p for p in rig.root.rglob("*") if p.is_file() and p.name != ".credentials.json"]
    return "".join(p.read_bytes().decode("latin-1") for p in files)


def test_the_same_home_is_active_without_steersman(planted):
    """What was planted does act when claude is called directly in that home: the marks are no blanks."""
    (planted.home / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": TOKEN}))
    with ModelServer(answer_with_edit, key=None) as server:
        env = {"PATH": os.environ["PATH"], "HOME": str(planted.home), "ANTHROPIC_BASE_URL": server.url}
        argv = [PROGRAM, "-p", CALL_PROMPT, "--permission-mode", "acceptEdits"]
        subprocess.run(argv, cwd=planted.work, env=env, stdin=subprocess.DEVNULL, timeout=60, check=False)
    sent = b"".join(seen.body for seen in server.requests)
    assert WORD.encode() in sent
    acting = {
        "hook-user-SessionStart", "hook-repository-SessionStart", "helper-repository", "mcp-user",
        "mcp-repository",
    }  # fmt: skip
    assert acting <= planted.marks()


@pytest.mark.parametrize(
    ("files", "environment"),
    [
        ({}, {"ANTHROPIC_API_KEY": MODEL_SERVER_KEY}),
        ({}, {"CLAUDE_CODE_OAUTH_TOKEN": MODEL_SERVER_KEY}),
        ({}, {"ANTHROPIC_AUTH_TOKEN": MODEL_SERVER_KEY}),
        ({".claude.json": {"primaryApiKey": MODEL_SERVER_KEY, "mcpServers": {}}}, {}),
        ({".claude/.credentials.json": {"claudeAiOauth": TOKEN}}, {}),
        ({"elsewhere/.credentials.json": {"claudeAiOauth": TOKEN}}, {"CLAUDE_CONFIG_DIR": "elsewhere"}),
    ],
    ids=["api-key", "oauth-token", "auth-token", "key-of-a-console-login", "login", "login-elsewhere"],
)
def test_every_kind_of_login_is_kept(rig, files, environment):
    """Whichever way the user is logged in, the key that the model's server sees is the user's."""
    for name, value in files.items():
        (rig.home / name).parent.mkdir(exist_ok=True)
        (rig.home / name).write_text(json.dumps(value))
    for name, value in environment.items():
        rig.monkeypatch.setenv(name, str(rig.home / value) if name == "CLAUDE_CONFIG_DIR" else value)
    with ModelServer(answer_with_edit) as server:
        reply = call(rig, server, "required")
    assert reply.error is None, reply.detail
    assert {turn.key for turn in server.turns} == {MODEL_SERVER_KEY}


def test_a_renewed_token_is_renewed_for_the_user(rig):
    """A token that is over is renewed in the call, in the box, and what was renewed is in the user's own file."""
    login = rig.home / ".claude/.credentials.json"
    login.parent.mkdir()
    login.write_text(json.dumps({"claudeAiOauth": {**TOKEN, "accessToken": "old", "expiresAt": 1}}))
    asked = []

    def renew(path, body):
        asked.append((path, json.loads(body)["refresh_token"]))
        return {
            "access_token": MODEL_SERVER_KEY, "refresh_token": "the next one", "expires_in": 3600,
            "scope": "user:inference",
        }  # fmt: skip

    with (
        ModelServer(answer_with_edit) as server,
        serve_tls_host("platform.claude.com", rig.root, renew, rig.monkeypatch) as trusted,
    ):
        rig.monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(trusted))
        reply = call(rig, server, "required")
    assert reply.error is None, reply.detail
    assert asked == [("/v1/oauth/token", TOKEN["refreshToken"])]
    kept = json.loads(login.read_text())["claudeAiOauth"]
    assert (kept["accessToken"], kept["refreshToken"]) == (MODEL_SERVER_KEY, "the next one")
    assert {path.name for path in login.parent.iterdir()} == {".credentials.json"}
