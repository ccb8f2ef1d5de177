"""The user's login reaches codex, gemini and opencode through steersman; nothing else of home and repository does."""

import asyncio
import base64
import json
import os
import subprocess
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from install import program
from test_acp_agents import SLOW, Gemini, Opencode
from test_codex import Codex
from tests.support.agent_matrix import AGENT_CASES, CALL_PROMPT, case_request
from tests.support.fake_tls_host import serve_tls_host
from tests.support.model_server import MODEL_SERVER_KEY, ModelServer
from tests.support.model_server.cases import CASE_FILE, answer_with_edit
from tests.support.model_server.gemini import GeminiWire
from tests.support.model_server.script import ModelTurn

from steersman.adapters.sandbox.bubblewrap import probe_sandbox

WORD = "a-word-that-was-planted"


@pytest.fixture
def planted(rig):
    """A home and a repository in which everything that can act leaves a mark, for each of the three."""
    (rig.root / "markers").mkdir()
    subprocess.run(("git", "init", "-q", "."), cwd=rig.work, check=True)
    for top, name in ((rig.home, "user"), (rig.work, "repository")):
        _plant_codex(rig, top, name)
        _plant_gemini(rig, top, name)
    _plant_opencode(rig, rig.home / ".config" / "opencode", "user")
    _plant_opencode(rig, rig.work, "repository")
    for name in ("AGENTS.md", "GEMINI.md", "CLAUDE.md"):
        (rig.work / name).write_text(f"{WORD} in {name}\n")
    return rig


def _plant_codex(rig, top, name):
    folder = top / ".codex"
    folder.mkdir()
    hook = f'[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ntype = "command"\ncommand = "{rig.mark(f"hook-{name}")}"'
    server = (
        f'[mcp_servers.planted]\ncommand = "/bin/sh"\nargs = ["-c", "{rig.mark(f"mcp-{name}")}; sleep 3"]'
    )
    notify = f'notify = ["/bin/sh", "-c", "{rig.mark(f"notify-{name}")}"]'
    (folder / "config.toml").write_text(f'{notify}\ndeveloper_instructions = "{WORD}"\n{server}\n{hook}\n')
    (folder / "AGENTS.md").write_text(f"{WORD} of the {name}\n")
    skill = top / ".agents" / "skills" / "planted"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: planted\ndescription: {WORD}\n---\n{WORD}\n")


def _plant_gemini(rig, top, name):
    folder = top / ".gemini"
    folder.mkdir()
    hooks = {
        e: [{"hooks": [{"type": "command", "command": rig.mark(f"hook-{name}")}]}]
        for e in ("SessionStart", "BeforeAgent")
    }
    servers = {"planted": {"command": "/bin/sh", "args": ["-c", rig.mark(f"mcp-{name}") + "; sleep 3"]}}
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "hooks": hooks, "mcpServers": servers,
        "hooksConfig": {"enabled": True},
    }  # fmt: skip
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "GEMINI.md").write_text(f"{WORD} of the {name}\n")


def _plant_opencode(rig, folder, name):
    plugins = (folder if name == "user" else folder / ".opencode") / "plugin"
    plugins.mkdir(parents=True)
    path = rig.root / "markers" / f"plugin-{name}"
    inside = rig.work / f"marker-plugin-{name}"
    (plugins / "planted.js").write_text(
        "import fs from 'fs'\nexport const Planted = async () => {\n"
        + "".join(
            f"  try {{ fs.writeFileSync({json.dumps(str(p))}, '') }} catch {{}}\n" for p in (path, inside)
        )
        + "  return {}\n}\n"
    )
    server = {
        "type": "local", "command": ["/bin/sh", "-c", rig.mark(f"mcp-{name}") + "; sleep 3"], "enabled": True,
    }  # fmt: skip
    (folder / "opencode.json").write_text(json.dumps({"mcp": {"planted": server}}))
    (folder / "AGENTS.md").write_text(f"{WORD} of the {name}\n")


# ── the three ───────────────────────────────────────────────────────────────────────────────────────────────────────


def token(**claims):
    """A token that says who it is for, as a login's do; nobody signs it."""
    parts = ({"alg": "none"}, claims, {"s": 1})
    return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in parts)


ACCOUNT = {"chatgpt_plan_type": "pro", "chatgpt_account_id": "a-1", "chatgpt_user_id": "u-1"}
NEW = token(exp=4_000_000_000, n=2)


def chatgpt(expires=4_000_000_000):
    """A login with an account, as `codex login` writes it."""
    who = token(email="a@example.org", exp=expires, **{"https://api.openai.com/auth": ACCOUNT})
    tokens = {
        "id_token": who, "access_token": token(exp=expires, n=1), "refresh_token": "once",
        "account_id": "a-1",
    }  # fmt: skip
    renewed = "2026-01-01T00:00:00Z" if expires < 2e9 else "2099-01-01T00:00:00Z"
    return {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": renewed}


class LoggedInCodex(Codex):
    """codex with nothing but the user's login."""

    def options(self, url):
        return {k: v for k, v in super().options(url).items() if k != "key_env"}


class LoggedInOpencode(Opencode):
    """The same, for opencode."""

    def options(self, url):
        options = super().options(url)
        del options["settings"]["provider"]["scripted"]["options"]["apiKey"]
        return options


# How each is logged in: the CLI, the file below the user's home, what is in it, and the key the server has to see.
LOGINS = {
    "codex-key": (
        LoggedInCodex, ".codex/auth.json", {"auth_mode": "apikey", "OPENAI_API_KEY": MODEL_SERVER_KEY},
        MODEL_SERVER_KEY,
    ),
    "codex-account": (LoggedInCodex, ".codex/auth.json", chatgpt(), chatgpt()["tokens"]["access_token"]),
    "gemini": (Gemini, ".gemini/.env", f"GEMINI_API_KEY={MODEL_SERVER_KEY}\n", MODEL_SERVER_KEY),
    "opencode": (
        LoggedInOpencode, ".local/share/opencode/auth.json",
        {"scripted": {"type": "api", "key": MODEL_SERVER_KEY}}, MODEL_SERVER_KEY,
    ),
}  # fmt: skip


def log_in(rig, name):
    """Puts the login where the CLI would have put it."""
    _, place, content, _ = LOGINS[name]
    path = rig.home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    path.chmod(0o600)
    return path


def call(rig, cli, server, mode, **options):
    """One call that edits a file, as a coder's."""
    for key, value in cli.environment(server.url, None).items():
        rig.monkeypatch.setenv(key, value)
    table = {**cli.options(server.url), **options}
    agent = cli.agent(rig.place, probe_sandbox(mode), table)
    return asyncio.run(
        agent.call(case_request(replace(AGENT_CASES["edit"], permissions="edit", **SLOW), rig, table))
    )


@pytest.mark.parametrize("mode", ["required", "off"])
@pytest.mark.parametrize("name", LOGINS)
def test_the_login_is_lent_and_nothing_else(planted, name, mode):
    """With a login in the user's home the CLI is logged in, and no hook, server, plugin, skill or memory is active."""
    cli, _, _, key = LOGINS[name]
    login = log_in(planted, name)
    planted.again()
    with ModelServer(answer_with_edit, key=key) as server:
        reply = call(planted, cli(), server, mode)
    assert reply.error is None, reply.detail
    assert (planted.work / CASE_FILE).exists()
    assert planted.marks() == set()
    assert {turn.key for turn in server.turns} == {key}
    sent = b"".join(seen.body for seen in server.requests)
    assert WORD.encode() not in sent
    # The lock under which codex renews a login is where codex itself puts it.
    assert set(planted.changed()) <= {"home/.codex/auth.lock"}
    assert key not in _all_text(planted, login)


def _all_text(rig, login):
    """Everything that is left below the case, but for the login itself."""
    files = [p for p in rig.root.rglob("*") if p.is_file() and p != login]
    return "".join(p.read_bytes().decode("latin-1") for p in files)


DIRECT = {
    "codex-key": ("exec", "--skip-git-repo-check", "-s", "workspace-write", CALL_PROMPT),
    "gemini": ("-p", CALL_PROMPT, "--skip-trust", "-m", "gemini-2.5-flash"),
    "opencode": ("run", "-m", "scripted/m", CALL_PROMPT),
}


@pytest.mark.parametrize("name", DIRECT)
def test_the_same_home_is_active_without_steersman(planted, name):
    """What was planted does act when the CLI is called directly in that home: the marks are no blanks."""
    cli = LOGINS[name][0]()
    log_in(planted, name)
    with ModelServer(answer_with_edit, key=None) as server:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(planted.home),
            **cli.environment(server.url, MODEL_SERVER_KEY),
        }
        words = DIRECT[name]
        if name == "codex-key":
            gateway = (
                f'{{name="g",base_url="{server.url}/v1",wire_api="responses",requires_openai_auth=true}}'
            )
            words = (words[0], "-c", 'model_provider="g"', "-c", f"model_providers.g={gateway}", *words[1:])
        if name == "opencode":
            env["OPENCODE_CONFIG_CONTENT"] = json.dumps(cli.options(server.url)["settings"])
        argv = (str(program(cli.name)), *words)
        with suppress(subprocess.TimeoutExpired):  # by then what acts has acted
            subprocess.run(
                argv, cwd=planted.work, env=env, stdin=subprocess.DEVNULL, timeout=150, check=False
            )
    sent = b"".join(seen.body for seen in server.requests)
    assert WORD.encode() in sent
    assert {m.split("-")[-1] for m in planted.marks()} & {"user", "repository"}
    assert any(m.endswith("user") for m in planted.marks())


# ── renewal ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def renewal(asked):
    """A place that renews a login."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["refresh_token"])
            fresh = {
                "id_token": chatgpt()["tokens"]["id_token"],
                "access_token": NEW,
                "refresh_token": "the next one",
            }
            body = json.dumps(fresh).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.mark.parametrize("mode", ["required", "off"])
def test_a_renewed_token_is_renewed_for_the_user(rig, mode):
    """A token of codex that is over is renewed in the call, also in a box, and the user's own file has the new one."""
    login = log_in(rig, "codex-account")
    login.write_text(json.dumps(chatgpt(expires=1_000_000_000)))
    asked = []
    with renewal(asked) as port, ModelServer(answer_with_edit, key=NEW) as server:
        rig.monkeypatch.setenv("CODEX_REFRESH_TOKEN_URL_OVERRIDE", f"http://127.0.0.1:{port}/oauth/token")
        reply = call(
            rig, LoggedInCodex(), server, mode, hosts=(f"127.0.0.1:{port}",),
            environment=("CODEX_REFRESH_TOKEN_URL_OVERRIDE",),
        )  # fmt: skip
    assert reply.error is None, reply.detail
    assert asked == ["once"]
    kept = json.loads(login.read_text())["tokens"]
    assert (kept["access_token"], kept["refresh_token"]) == (NEW, "the next one")
    assert {path.name for path in login.parent.iterdir()} == {"auth.json", "auth.lock"}


# ── an account with Google ──────────────────────────────────────────────────────────────────────────────────────────


class CodeAssist(GeminiWire):
    """The Gemini wire as it is spoken to who has logged in with an account: everything in an envelope."""

    def claims(self, path):
        return "/v1internal:" in path

    def turn(self, path, body, key):
        if "request" not in body:
            return ModelTurn(wire=self.name, model="", key=key, prompt="", streamed=False)
        method = path.partition(":")[2]
        return super().turn(f"/models/{body['model']}:{method}", body["request"], key)

    def stream(self, turn, answer):
        if not turn.model:
            tier = {"id": "standard-tier", "name": "standard"}
            yield json.dumps({"currentTier": tier, "cloudaicompanionProject": "p"}).encode()
            return
        for chunk in super().stream(turn, answer):
            value = json.loads(chunk.decode().removeprefix("data: "))
            yield f"data: {json.dumps({'response': value})}\r\n\r\n".encode()


def test_an_account_with_google_is_lent(rig):
    """Logged in with an account, gemini is logged in through steersman; a token it renews is renewed for the user."""
    folder = rig.home / ".gemini"
    folder.mkdir()
    login = folder / "oauth_creds.json"
    old = {"access_token": "old", "refresh_token": "once", "expiry_date": 1, "token_type": "Bearer"}
    login.write_text(json.dumps(old))
    (folder / "google_accounts.json").write_text(json.dumps({"active": "a@example.org", "old": []}))
    asked = []

    def answer(path, _):
        asked.append(path.partition("?")[0])
        fresh = {"access_token": MODEL_SERVER_KEY, "expires_in": 3600, "token_type": "Bearer"}
        return (
            fresh
            if path.startswith("/token") and "info" not in path
            else {"aud": "x", "scope": "y", "expires_in": 3600}
        )

    with (
        ModelServer(answer_with_edit, wires=(CodeAssist(),)) as server,
        serve_tls_host("oauth2.googleapis.com", rig.root, answer, rig.monkeypatch) as trusted,
    ):
        rig.monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(trusted))
        rig.monkeypatch.setenv("CODE_ASSIST_ENDPOINT", server.url)
        reply = call(rig, Gemini(), server, "required")
    assert reply.error is None, reply.detail
    assert (rig.work / CASE_FILE).exists()
    assert {turn.key for turn in server.turns} == {MODEL_SERVER_KEY}
    assert "/token" in asked
    assert json.loads(login.read_text())["access_token"] == MODEL_SERVER_KEY
