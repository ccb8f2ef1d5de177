"""How codex is called: its words, its settings, its login, where it may reach."""

import json
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
from tests.support.cases import for_each_case

from steersman.adapters.agents.call_home import CallHome
from steersman.adapters.agents.codex import (
    CodexAgent,
    CodexOptions,
    build_codex_args,
    find_native_codex,
    strict_schema_subset,
)
from steersman.adapters.agents.registry import find_agent_obstacle
from steersman.adapters.sandbox.bubblewrap import OpenSandbox
from steersman.contracts.agent import AgentRequest
from steersman.contracts.config import Role
from steersman.judges.replies.agent_reply import SHARED_REPLY_CONTRACTS


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A call's home, beside a user's own that is empty."""
    for name in ("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    made = CallHome(tmp_path / "call")
    made.config.mkdir(parents=True)
    return made


def asked(workdir="/tree", **more):
    told = {"writes": False, "effect": "e:1:1", "nonce": "n", **more}
    return AgentRequest(role="reviewer", mode="implementation", prompt="hello", workdir=workdir, **told)


def settings(request, options, home, *, isolated=True):
    """What codex reads from `-c`, as it reads it."""
    said = list(build_codex_args(request, options, home, isolated=isolated))
    pairs = [said[n + 1] for n, word in enumerate(said) if word == "-c"]
    found = {}
    for pair in pairs:
        _merge(found, tomllib.loads(pair))
    return found


def _merge(into, more):
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


@pytest.mark.parametrize(
    ("isolated", "permissions", "mode"),
    [
        (True, "read", "danger-full-access"),
        (True, "shell", "danger-full-access"),
        (False, "read", "read-only"),
        (False, "edit", "workspace-write"),
        (False, "shell", "workspace-write"),
    ],
)
def test_whose_sandbox_holds(home, isolated, permissions, mode):
    """In our box codex's own would only fail; without ours, codex's own holds, by role."""
    said = list(build_codex_args(asked(permissions=permissions), CodexOptions(), home, isolated=isolated))
    assert said[said.index("-s") + 1] == mode


@pytest.mark.parametrize("tree", ["/tree", '/a "tree"', "/a\\tree'\n", "/木"])
def test_the_tree_is_never_trusted(home, tree):
    """Whatever the tree is called, codex is told not to take settings from it, nor from where a reader starts."""
    found = settings(asked(tree), CodexOptions(), home)
    assert found["projects"] == {place: {"trust_level": "untrusted"} for place in (tree, str(home.start))}
    assert found["project_doc_max_bytes"] == 0
    assert found["features"]["hooks"] is False
    assert found["features"]["unbounded_connection_retries"] is False


def test_retries_and_silence_are_ours(home):
    """codex does not try again, and notices a stream that stopped before our own clock does."""
    gateway = settings(asked(idle_seconds=20), CodexOptions(), home)["model_providers"]["steersman"]
    assert (gateway["request_max_retries"], gateway["stream_max_retries"]) == (0, 0)
    assert gateway["stream_idle_timeout_ms"] == 18_000
    assert gateway["requires_openai_auth"] is True
    assert "base_url" not in gateway


def test_a_gateway_has_its_own_key(home, monkeypatch, tmp_path):
    """With a gateway of one's own its key is passed on under its name, and only the gateway can be reached."""
    options = CodexOptions(base_url="https://models.example.org/v1", key_env="MY_KEY", hosts=("other:1",))
    monkeypatch.setenv("MY_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "not this one")
    made = CodexAgent(tmp_path, OpenSandbox("off"), options)._build_invocation(asked(str(tmp_path)), home)
    assert made.env["MY_KEY"] == "k"
    assert "CODEX_API_KEY" not in made.env
    assert made.network == ("models.example.org:443", "other:1")
    gateway = settings(asked(), options, home)["model_providers"]["steersman"]
    assert gateway["env_key"] == "MY_KEY"
    assert "requires_openai_auth" not in gateway


@pytest.mark.parametrize(
    ("environment", "login", "key"),
    [
        ({}, False, None),
        ({"OPENAI_API_KEY": "o"}, False, "o"),
        ({"OPENAI_API_KEY": "o"}, True, None),
        ({"OPENAI_API_KEY": "o", "CODEX_API_KEY": "c"}, True, "c"),
        ({"CODEX_API_KEY": ""}, False, None),
    ],
    ids=["nothing", "key", "login-before-key", "codex-key-first", "empty"],
)
def test_which_login_counts(home, monkeypatch, tmp_path, environment, login, key):
    """codex's own key, then its login, then OpenAI's key; a login is linked, never copied, with its lock."""
    user = tmp_path / "user" / ".codex"
    user.mkdir(parents=True)
    if login:
        (user / "auth.json").write_text("{}")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    made = CodexAgent(tmp_path, OpenSandbox("off"), CodexOptions())._build_invocation(
        asked(str(tmp_path)), home
    )
    assert made.env.get("CODEX_API_KEY") == key
    assert "OPENAI_API_KEY" not in {**made.env, **dict.fromkeys(made.keeps)}
    lent = [user / "auth.json", user / "auth.lock"] if login else []
    assert made.writes == (str(home.root), *map(str, lent))
    assert all((home.config / path.name).readlink() == path for path in lent)


@pytest.mark.parametrize("inside", ["codex-linux-x64", "codex/node_modules/@openai/codex-linux-x64"])
def test_the_program_behind_the_script_is_started(tmp_path, monkeypatch, inside):
    """What npm puts on PATH is a script; the program that it would start is started instead, wherever npm has put it."""
    packages = tmp_path / "lib" / "node_modules" / "@openai"
    script = packages / "codex" / "bin" / "codex.js"
    program = packages / inside / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex"
    for path in (script, program):
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to(script)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_native_codex("codex") == str(program)
    assert find_native_codex(str(program)) == str(program)
    program.unlink()
    assert find_native_codex("codex") == "codex"
    assert find_native_codex("no-such-program") == "no-such-program"


@pytest.mark.parametrize(
    ("role", "environment", "words"),
    [
        ({"agent": "codex"}, {}, "codex login"),
        ({"agent": "codex"}, {"OPENAI_API_KEY": "k"}, ""),
        ({"agent": "codex", "options": {"key_env": "MY_KEY"}}, {}, "set MY_KEY"),
        ({"agent": "codex", "options": {"key_env": "MY_KEY"}}, {"MY_KEY": "k"}, ""),
        ({"agent": "codex", "options": {"environment": ["OTHER"]}}, {}, ""),
        ({"agent": "gemini"}, {}, "GEMINI_API_KEY"),
        ({"agent": "gemini"}, {"GEMINI_API_KEY": "k"}, ""),
        ({"agent": "command", "options": {"command": ["no-such-agent"]}}, {}, "no-such-agent was not found"),
    ],
)
def test_what_stands_in_the_way_is_said_before_a_run(home, tmp_path, monkeypatch, role, environment, words):
    """Without a program or a login a call would not even begin: that is known before, with the next step."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("codex", "gemini"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = find_agent_obstacle(Role(**role))
    assert (words in found) if words else found == ""


def test_the_prompt_is_on_no_command_line(home, tmp_path):
    """The prompt goes through standard input, whole, whatever is in it."""
    request = asked(str(tmp_path), session="s-1")
    made = CodexAgent(tmp_path, OpenSandbox("off"), CodexOptions())._build_invocation(request, home)
    assert made.stdin == b"hello"
    assert "hello" not in " ".join(made.argv)
    assert made.argv[-3:] == ("resume", "s-1", "-")


@for_each_case("contract", SHARED_REPLY_CONTRACTS.values())
def test_a_schema_in_the_words_that_servers_take(home, contract):
    """What is asked of the model is a part of what the parser asks: everything required, nothing more, no odd words."""
    said = list(build_codex_args(asked(schema=contract.schema), CodexOptions(), home, isolated=True))
    schema = json.loads(Path(said[said.index("--output-schema") + 1]).read_text(encoding="utf-8"))
    assert schema == strict_schema_subset(contract.schema)
    assert schema["required"] == sorted(schema["properties"])
    assert schema["additionalProperties"] is False
    jsonschema_rs.validator_for(schema)
    kept = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "description"}
    assert _keywords(schema) <= kept


def _keywords(schema):
    found = set(schema)
    for name, value in schema.items():
        inner = value.values() if name == "properties" else [value] if isinstance(value, dict) else []
        for item in inner:
            found |= _keywords(item)
    return found
