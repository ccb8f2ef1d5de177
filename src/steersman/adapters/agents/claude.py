"""The `claude` agent: Claude Code without a screen, one process a call.

A session of claude is one file, stored in the directory of its call; it is copied from one call's home to the next.
**Invariant:** of the user's configuration it sees the login and nothing else: no settings, hooks, MCP servers, memory
or skills, neither from the home nor from the working tree.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, structs

from steersman.adapters.agents.call_home import CallHome, open_call_home, user_home
from steersman.adapters.agents.claude_events import ClaudeReader
from steersman.adapters.agents.headless import AgentInvocation, ProviderOptions, run_agent_cli
from steersman.adapters.agents.sessions import (
    SESSIONS_DIRECTORY,
    SessionStore,
    StoredSession,
    is_session_id,
    read_session_file,
)
from steersman.adapters.checks.setup_layers import visible_tree_path
from steersman.contracts.agent import AgentReply, AgentRequest, Permissions, ProviderUsage
from steersman.ports.sandbox import Sandbox

CLAUDE_PROVIDER = "claude"
CLAUDE_READ_TOOLS = ("Read", "Glob", "Grep")
CLAUDE_EDIT_TOOLS = (*CLAUDE_READ_TOOLS, "Edit", "Write", "NotebookEdit")
CLAUDE_TOOLS: dict[Permissions, tuple[str, ...]] = {
    "read": CLAUDE_READ_TOOLS,
    "edit": CLAUDE_EDIT_TOOLS,
    "shell": (*CLAUDE_EDIT_TOOLS, "Bash"),
}
CLAUDE_PERMISSION_MODES: dict[Permissions, str] = {
    "read": "dontAsk",
    "edit": "acceptEdits",
    "shell": "bypassPermissions",
}
ANTHROPIC_API_URL, LOGIN_RENEWAL_HOST = "https://api.anthropic.com", "platform.claude.com:443"
CLAUDE_LOGIN_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
CLAUDE_PASSED_VARIABLES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS")
CLAUDE_SWITCHES = (
    *("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"),
    *("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"),
    *("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_SAFE_MODE"),
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK",  # it would hide a stream that broke, and send the request twice
    # 1, not 0: claude gives the reason and wait only when it retries; steersman's own retry policy applies.
    "CLAUDE_CODE_MAX_RETRIES",
)
# With rules there is no one to ask: what no rule allows is denied. Files may be edited.
RESTRICTED_PERMISSION_MODE = "acceptEdits"
_PLAIN_COMMAND_PATTERN = re.compile(r"[\w ./=@%+,-]+")  # of a command that a rule can name word for word
_CLAUDE_CREDENTIALS_FILE, _CLAUDE_SETTINGS_FILE = ".credentials.json", ".claude.json"
CLAUDE_SESSION_MISSED = "No conversation found"  # what the CLI says of a session that it does not find
_SESSION_TRANSCRIPT_FILE, _SESSION_USAGE_FILE = "session.jsonl", "told.json"


class ClaudeOptions(ProviderOptions, frozen=True, kw_only=True):
    """What a role's table may say to this provider."""

    program: Annotated[str, Meta(min_length=1)] = "claude"
    effort: str | None = None
    sessions: bool = False  # keeps them, as the CLI writes them, and continues the role's last one


class ClaudeAgent:
    """Implements `ports.agent.Agent`; `homes_dir` is where the homes of its calls are made; kept sessions are beside it."""

    tells_cost = True

    def __init__(self, homes_dir: Path, sandbox: Sandbox, options: ClaudeOptions) -> None:
        self._homes_dir, self._sandbox, self._options = homes_dir, sandbox, options
        self._sessions = SessionStore(homes_dir.with_name(SESSIONS_DIRECTORY))

    async def call(self, request: AgentRequest) -> AgentReply:
        """One call in a home of its own, in a sandbox where there is one; a session that cannot be continued starts again."""
        stored_session = self._sessions.find(request.session)
        reply = await self._run_turn(request, stored_session)
        if stored_session is not None and reply.error and CLAUDE_SESSION_MISSED in reply.detail:
            reply = await self._run_turn(request, None)
        return reply

    async def _run_turn(self, request: AgentRequest, stored_session: StoredSession | None) -> AgentReply:
        request = structs.replace(request, session=stored_session.session if stored_session else None)
        with open_call_home(self._homes_dir) as home:
            projects_dir = home.config / "projects"
            start = self._visible_tools(request) if request.writes else str(home.start)
            reader = _make_claude_reader(
                request,
                restore_claude_session(stored_session, projects_dir, start) if stored_session else None,
            )
            reply = await run_agent_cli(request, self._build_invocation(request, home, reader), self._sandbox)
            session_name = None
            if self._options.sessions and not reply.error:
                session_name = keep_claude_session(
                    self._sessions, request.effect, projects_dir, reply.session, reader.last_usage()
                )
        return structs.replace(reply, session=session_name)

    def _build_invocation(
        self, request: AgentRequest, home: CallHome, reader: ClaudeReader | None = None
    ) -> AgentInvocation:
        options, claude_login = self._options, find_claude_login()
        tree = "" if request.writes else self._visible_tools(request)
        return AgentInvocation(
            provider=CLAUDE_PROVIDER,
            argv=(
                options.program,
                *build_claude_args(request, options, self._permission_options(request), tree),
            ),
            reader=reader or _make_claude_reader(request),
            env={**home.environment(), **_claude_environment(request, home), **claude_login.environment},
            keeps=(*CLAUDE_PASSED_VARIABLES, *options.environment),
            writes=(str(home.root), *claude_login.files),
            network=(*claude_hosts(renewed=bool(claude_login.files)), *options.hosts),
            stdin=request.prompt.encode("utf-8", "backslashreplace"),
            start=str(home.start),
        )

    def _visible_tools(self, request: AgentRequest) -> str:
        return visible_tree_path(request.workdir, isolated=self._sandbox.isolated)

    def _permission_options(self, request: AgentRequest) -> Permissions:
        """A shell only where it is in a sandbox."""
        if request.permissions == "shell" and not self._sandbox.isolated:
            return "edit"
        return request.permissions


def _make_claude_reader(request: AgentRequest, earlier_usage: ProviderUsage | None = None) -> ClaudeReader:
    return ClaudeReader(
        writes=request.writes,
        schema=request.schema is not None,
        held=request.allows is not None,
        before=earlier_usage,
    )


def build_claude_args(
    request: AgentRequest, options: ClaudeOptions, permissions: Permissions, tree: str = ""
) -> Iterator[str]:
    """The command line, with the tree of an agent that starts elsewhere; the prompt is not on it: others can read it."""
    yield from ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
    is_restricted = permissions == "shell" and request.allows is not None
    mode = RESTRICTED_PERMISSION_MODE if is_restricted else CLAUDE_PERMISSION_MODES[permissions]
    yield from ("--permission-mode", mode, "--tools", ",".join(CLAUDE_TOOLS[permissions]))
    if is_restricted and (rules := render_bash_rules(request.allows or ())):
        yield from ("--allowedTools", *rules)
    if tree:
        yield from ("--add-dir", tree)
    yield from ("--setting-sources", "user", "--strict-mcp-config", "--disable-slash-commands")
    if options.model:
        yield from ("--model", options.model)
    if options.effort:
        yield from ("--effort", options.effort)
    if request.schema:
        schema = {k: v for k, v in request.schema.items() if k != "$schema"}
        yield from ("--json-schema", msgspec.json.encode(schema).decode())
    if request.micro_usd:
        yield from ("--max-budget-usd", f"{request.micro_usd // 10**6}.{request.micro_usd % 10**6:06}")
    if request.session:
        yield from ("--resume", request.session)
    if not options.sessions:
        yield "--no-session-persistence"


def render_bash_rules(allows: Iterable[tuple[str, ...]]) -> list[str]:
    """One rule for each command, word for word; one that a rule would read otherwise has none, and is denied."""
    commands = (shlex.join(argv) for argv in allows)
    return [f"Bash({command})" for command in commands if _PLAIN_COMMAND_PATTERN.fullmatch(command)]


def _claude_environment(request: AgentRequest, home: CallHome) -> dict[str, str]:
    # Our clock for silence is over first: what the CLI says when its own is over is less clear.
    timeout_ms = request.idle_seconds * 1000 + 60_000
    return {
        **dict.fromkeys(CLAUDE_SWITCHES, "1"),
        "CLAUDE_CONFIG_DIR": str(home.config),
        "API_TIMEOUT_MS": str(timeout_ms),
        "IS_SANDBOX": "1",
    }


def claude_hosts(*, renewed: bool) -> tuple[str, ...]:
    """The API, and where a login is renewed."""
    url = urlsplit(os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC_API_URL)
    port = url.port or (80 if url.scheme == "http" else 443)
    return (f"{url.hostname}:{port}", *((LOGIN_RENEWAL_HOST,) if renewed else ()))


class ClaudeLogin(NamedTuple):
    """How the user's login reaches a call; empty where the user has none."""

    environment: Mapping[str, str] = {}
    files: tuple[str, ...] = ()


def find_claude_login() -> ClaudeLogin:
    """The user's login, the way the user's own CLI would look for it: environment, then login file, then key file."""
    if variables := {name: os.environ[name] for name in CLAUDE_LOGIN_VARIABLES if os.environ.get(name)}:
        return ClaudeLogin(variables)
    configured_dir = os.environ.get("CLAUDE_CONFIG_DIR")
    claude_dir = Path(configured_dir) if configured_dir else user_home() / ".claude"
    if (claude_dir / _CLAUDE_CREDENTIALS_FILE).is_file():
        # Where it lies: a token that is renewed in the call is written there, and so for the user's own CLI too.
        return ClaudeLogin(
            {"CLAUDE_SECURESTORAGE_CONFIG_DIR": str(claude_dir)},
            (str(claude_dir / _CLAUDE_CREDENTIALS_FILE),),
        )
    key = _read_created_api_key((claude_dir if configured_dir else user_home()) / _CLAUDE_SETTINGS_FILE)
    return ClaudeLogin({"ANTHROPIC_API_KEY": key}) if key else ClaudeLogin()


def _read_created_api_key(settings: Path) -> str:
    """The API key that logging in with an account for the API has made; the rest of that file is not looked at."""
    try:
        content = msgspec.json.decode(settings.read_bytes(), type=_ClaudeSettings)
    except (OSError, msgspec.DecodeError):
        return ""
    return content.key


class _ClaudeSettings(msgspec.Struct, frozen=True):
    key: str = msgspec.field(name="primaryApiKey", default="")


def keep_claude_session(
    store: SessionStore, effect: str, projects: Path, session: str | None, usage: ProviderUsage
) -> str | None:
    """Keeps a call's transcript and usage, while nothing of the call is alive; returns the session's name."""
    transcript = _read_claude_session(projects, session)
    if session is None or transcript is None:
        return None
    return store.keep(
        effect,
        session,
        {_SESSION_TRANSCRIPT_FILE: transcript, _SESSION_USAGE_FILE: msgspec.json.encode(usage)},
    )


def restore_claude_session(session: StoredSession, projects: Path, workdir: str) -> ProviderUsage:
    """Puts a kept session where the CLI looks for it from this directory; gives what it had used, as far as is known."""
    session_dir = projects / re.sub(r"[^a-zA-Z0-9]", "-", os.path.realpath(workdir))
    with contextlib.suppress(OSError):  # the CLI misses it then, and says so
        session_dir.mkdir(parents=True, mode=0o700)
        (session_dir / f"{session.session}.jsonl").write_bytes(
            (session.folder / _SESSION_TRANSCRIPT_FILE).read_bytes()
        )
    try:
        return msgspec.json.decode((session.folder / _SESSION_USAGE_FILE).read_bytes(), type=ProviderUsage)
    except (OSError, msgspec.DecodeError):
        return ProviderUsage()


def _read_claude_session(projects: Path, session: str | None) -> bytes | None:
    if not is_session_id(session) or projects.is_symlink():
        return None
    with contextlib.suppress(OSError):
        directories = [entry.path for entry in os.scandir(projects) if entry.is_dir(follow_symlinks=False)]
        transcripts = (read_session_file(Path(d, f"{session}.jsonl")) for d in sorted(directories))
        return next((transcript for transcript in transcripts if transcript is not None), None)
    return None
