"""codex, headless: `codex exec --json` with a home of its own, the prompt on standard input, the user's login lent.

**Invariant:** neither the user's configuration nor the worktree's decides how codex runs: no hook, MCP server, skill or
plugin of either is active, and no memory of the user's.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, structs

from steersman.adapters.agents import codex_rollout as rollout
from steersman.adapters.agents.call_home import CallHome, link_credential, open_call_home, user_home
from steersman.adapters.agents.codex_events import CodexReader
from steersman.adapters.agents.headless import AgentInvocation, ProviderOptions, run_agent_cli
from steersman.adapters.agents.sessions import SESSIONS_DIRECTORY, SessionStore, StoredSession
from steersman.adapters.checks.setup_layers import visible_tree_path
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderUsage
from steersman.judges.commands.tester_commands import find_commands_outside
from steersman.judges.config.limits import find_model_host
from steersman.ports.sandbox import Sandbox

CODEX_PROVIDER = "codex"
# Our entry for the model's server: codex's own entries cannot be given fewer retries.
_CODEX_GATEWAY_NAME = "steersman"
_CODEX_HOSTS = ("api.openai.com:443", "chatgpt.com:443", "auth.openai.com:443")
_CODEX_KEY_VARIABLES = ("CODEX_API_KEY", "OPENAI_API_KEY")
# Everything that acts besides the model and its shell, that reaches out, or that makes what a turn used unknown.
_CODEX_DISABLED_FEATURES = (
    *("apps", "auth_elicitation", "browser_use", "computer_use", "daemon_auto_start", "goals", "hooks"),
    *("image_generation", "memories", "multi_agent", "plugins", "recommended_plugins", "remote_plugin"),
    *("shell_snapshot", "skill_mcp_dependency_install", "tool_suggest", "unbounded_connection_retries"),
)
_STRICT_SCHEMA_KEYWORDS = frozenset(
    {"type", "properties", "required", "items", "enum", "anyOf", "description"}
)


class CodexOptions(ProviderOptions, frozen=True, kw_only=True):
    """What a role's table may say to this provider."""

    program: Annotated[str, Meta(min_length=1)] = "codex"
    effort: str | None = None
    # Of a gateway of one's own.
    base_url: Annotated[str, Meta(pattern=r"^https?://[^\s/?#@\\]+(/[^\s?#@\\]*)?$")] | None = None
    # The variable with its key.
    key_env: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    sessions: bool = False  # keeps them, as codex writes them, and continues the role's last one


class CodexAgent:
    """Implements `ports.agent.Agent`; `homes_dir` is where the homes of its calls are made; kept sessions are beside it."""

    tells_cost = False  # it tells tokens

    def __init__(self, homes_dir: Path, sandbox: Sandbox, options: CodexOptions) -> None:
        self._homes_dir, self._sandbox, self._options = homes_dir, sandbox, options
        self._sessions = SessionStore(homes_dir.with_name(SESSIONS_DIRECTORY))

    async def call(self, request: AgentRequest) -> AgentReply:
        """One turn of codex, in a new session or a continued one; a session that cannot be continued starts again."""
        stored_session = self._sessions.find(request.session)
        reply = await self._run_turn(request, stored_session)
        if stored_session is not None and reply.error and rollout.CODEX_SESSION_MISSED in reply.detail:
            reply = await self._run_turn(request, None)
        return reply

    async def _run_turn(self, request: AgentRequest, session: StoredSession | None) -> AgentReply:
        request = structs.replace(request, session=session.session if session else None)
        with open_call_home(self._homes_dir) as home:
            sessions_dir = home.config / "sessions"
            # A continued session tells what all its turns have used; what it had used before is in no agent's reach.
            earlier_tokens = rollout.restore_codex_session(session, sessions_dir) if session else 0
            reader = CodexReader()
            reply = await run_agent_cli(request, self._build_invocation(request, home, reader), self._sandbox)
            record = rollout.find_rollout_file(sessions_dir, reply.session)
            complete_reply = self._complete_reply(
                request,
                structs.replace(reply, usage=_subtract_earlier_tokens(reply.usage, earlier_tokens)),
                record,
            )
            session_name = None
            if self._options.sessions and not complete_reply.error:
                session_name = rollout.keep_codex_session(
                    self._sessions, request.effect, record, reply.session
                )
        return structs.replace(
            complete_reply,
            session=session_name,
            # It cannot be kept from them, only from what comes of them.
            outside=find_commands_outside(reader.list_commands(), request.allows),
        )

    def _build_invocation(
        self, request: AgentRequest, home: CallHome, reader: CodexReader | None = None
    ) -> AgentInvocation:
        options, login_files = self._options, _lend_codex_login(home)
        return AgentInvocation(
            provider=CODEX_PROVIDER,
            argv=(
                find_native_codex(options.program),
                *build_codex_args(request, options, home, isolated=self._sandbox.isolated),
            ),
            reader=reader or CodexReader(),
            env={
                **home.environment(),
                "CODEX_HOME": str(home.config),
                **_codex_key_environment(options, logged_in=bool(login_files)),
            },
            keeps=options.environment,
            writes=(str(home.root), *map(str, login_files)),
            network=(*_codex_network_hosts(options), *options.hosts),
            stdin=request.prompt.encode("utf-8", "backslashreplace"),
            start=str(home.start),
        )

    def _complete_reply(self, request: AgentRequest, reply: AgentReply, record: Path | None) -> AgentReply:
        """The reply with what only the record knows: a denial without an event, and the model."""
        turn = rollout.read_last_turn(record)
        reply = structs.replace(
            reply, model=turn.model or self._options.model or "", denied=turn.denied or reply.denied
        )
        if not (request.writes and turn.stuck) or reply.error:
            return reply
        # A writer that was denied something has not done its work; a reader is meant to be.
        reason = f"inferred from what its last command said: it was not allowed to do {reply.denied[-1]}"
        return structs.replace(reply, error="provider_permission_denied", detail=reason, text="")


def _subtract_earlier_tokens(usage: ProviderUsage, earlier_tokens: int | None) -> ProviderUsage:
    if usage.tokens is None or earlier_tokens is None or usage.tokens < earlier_tokens:
        return ProviderUsage()
    return ProviderUsage(tokens=usage.tokens - earlier_tokens or None)


def build_codex_args(
    request: AgentRequest, options: CodexOptions, home: CallHome, *, isolated: bool
) -> Iterator[str]:
    """The command line; the prompt comes on standard input: an argument of 128 KiB is the longest there is."""
    yield from ("exec", "--json", "--skip-git-repo-check", "--ignore-rules", "--color", "never")
    tree = visible_tree_path(request.workdir, isolated=isolated)
    start = tree if request.writes else str(home.start)
    yield from ("-C", start, "-s", _codex_sandbox_mode(request, isolated))
    if options.model:
        yield from ("-m", options.model)
    if request.schema:
        schema = home.config / "reply.schema.json"
        schema.write_text(json.dumps(strict_schema_subset(request.schema)), encoding="utf-8")
        yield from ("--output-schema", str(schema))
    for name, value in _codex_settings(request, options, (tree, start)).items():
        yield from ("-c", f"{name}={_encode_toml_value(value)}")
    if request.session:
        yield from ("resume", request.session)
    yield "-"


def _codex_sandbox_mode(request: AgentRequest, isolated: bool) -> str:
    """Inside our sandbox codex's own would only fail; without ours it is the one that holds."""
    if isolated:
        return "danger-full-access"
    return "read-only" if request.permissions == "read" else "workspace-write"


def _codex_settings(
    request: AgentRequest, options: CodexOptions, directories: Iterable[str]
) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "model_provider": _CODEX_GATEWAY_NAME,
        f"model_providers.{_CODEX_GATEWAY_NAME}": _codex_gateway_settings(options, request.idle_seconds),
        "approval_policy": "never",
        "web_search": "disabled",
        # Trusted, a directory's own .codex/config.toml may start programs; codex trusts what it may write.
        "projects": {directory: {"trust_level": "untrusted"} for directory in directories},
        "project_doc_max_bytes": 0,  # the prompt has it, from the base commit
        "skills": {"include_instructions": False, "bundled": {"enabled": False}},
        "cli_auth_credentials_store": "file",
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
        "agents": {"max_threads": 1},  # the usage of further agents would be unknown
        "sandbox_workspace_write": {"network_access": False, "exclude_slash_tmp": True},
        # Its tools need no key. The mark by which we find what they start has none of these words in it.
        "shell_environment_policy": {"inherit": "all", "ignore_default_excludes": False},
        **{f"features.{name}": False for name in _CODEX_DISABLED_FEATURES},
    }
    if options.base_url:  # another's gateway need not understand compressed requests
        settings["features.enable_request_compression"] = False
    if options.effort:
        settings["model_reasoning_effort"] = options.effort
    return settings


def _codex_gateway_settings(options: CodexOptions, idle: int) -> dict[str, Any]:
    """Retries are ours; a stream that stops is noticed a little before our own clock notices it."""
    gateway: dict[str, Any] = {
        "name": "OpenAI",
        "wire_api": "responses",
        "request_max_retries": 0,
        "stream_max_retries": 0,
        "stream_idle_timeout_ms": max(1000, min(idle * 900, 300_000)),
    }
    if options.base_url:
        gateway["base_url"] = options.base_url
    if options.key_env:
        return {**gateway, "name": "gateway", "env_key": options.key_env}
    return {**gateway, "requires_openai_auth": True}


def _codex_key_environment(options: CodexOptions, *, logged_in: bool) -> dict[str, str]:
    """The key in the environment, under the name that codex reads; a login counts more than OPENAI_API_KEY."""
    if options.key_env:
        key = os.environ.get(options.key_env)
        return {options.key_env: key} if key else {}
    for name in _CODEX_KEY_VARIABLES[:1] if logged_in else _CODEX_KEY_VARIABLES:
        if os.environ.get(name):
            return {"CODEX_API_KEY": os.environ[name]}
    return {}


def _codex_network_hosts(options: CodexOptions) -> tuple[str, ...]:
    return (find_model_host(options.base_url),) if options.base_url else _CODEX_HOSTS


def find_native_codex(program: str) -> str:
    """The program behind the script that npm puts on PATH: killed, the script would leave it behind."""
    script = Path(os.path.realpath(shutil.which(program) or program))
    if script.suffix != ".js":
        return program
    package = script.parent.parent
    directories = (package.parent, package / "node_modules" / package.parent.name, package)
    candidates = (
        path
        for directory in directories
        for path in directory.glob("*/vendor/*/bin/codex")
        if os.access(path, os.X_OK)
    )
    return str(next(candidates, program))


def has_codex_login(key_env: str | None) -> bool:
    """Whether there is anything at all to log in with."""
    if key_env:
        return bool(os.environ.get(key_env))
    return any(map(os.environ.get, _CODEX_KEY_VARIABLES)) or (_codex_user_dir() / "auth.json").is_file()


def _codex_user_dir() -> Path:
    return Path(os.environ.get("CODEX_HOME") or user_home() / ".codex")


def _lend_codex_login(home: CallHome) -> tuple[Path, ...]:
    """Lends the user's login, and the lock under which it is renewed: two calls that renew it at once would lose it."""
    user_dir = _codex_user_dir()
    auth_file = link_credential(user_dir / "auth.json", home, "auth.json")
    if auth_file is None:
        return ()
    lock = user_dir / "auth.lock"
    with contextlib.suppress(OSError):  # in a home that cannot be written nothing can be renewed either
        lock.touch(mode=0o600)
    return tuple(filter(None, (auth_file, link_credential(lock, home, "auth.lock"))))


def strict_schema_subset(schema: Any) -> Any:
    """The schema in the words that a strict model server takes; what it leaves out the parser of replies still asks."""
    match schema:
        case {"properties": dict(fields)}:
            inner = {name: strict_schema_subset(field) for name, field in fields.items()}
            required = sorted(inner)
            return {
                "type": "object",
                "properties": inner,
                "required": required,
                "additionalProperties": False,
            }
        case {"enum": list(values)} if all(isinstance(v, str) for v in values):
            return {"type": "string", "enum": values}
        case dict():
            return {k: strict_schema_subset(v) for k, v in schema.items() if k in _STRICT_SCHEMA_KEYWORDS}
        case list():
            return [strict_schema_subset(item) for item in schema]
        case _:
            return schema


def _encode_toml_value(value: Any) -> str:
    """A TOML value on one line; JSON's strings are TOML's, but for DEL."""
    match value:
        case dict():
            return (
                "{"
                + ", ".join(
                    f"{_encode_toml_value(str(k))} = {_encode_toml_value(v)}" for k, v in value.items()
                )
                + "}"
            )
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case _:
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
