"""The `claude` agent: Claude Code without a screen, one process a call.

**Invariant:** of the user's configuration it sees the login and nothing else: no settings, hooks, MCP servers, memory
or skills, neither from the home nor from the working tree.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, structs

from steersman.adapters.agents import claude_sessions as sessions
from steersman.adapters.agents.claude_events import ClaudeReader
from steersman.adapters.agents.headless import Invocation, headless
from steersman.adapters.agents.home import Home, call_home, user_home
from steersman.adapters.agents.shelf import SESSIONS, Kept, Shelf
from steersman.adapters.tree_places import shown_path
from steersman.contracts.agent import AgentReply, AgentRequest, Permissions, Usage
from steersman.contracts.replies import reply_schema
from steersman.ports.sandbox import Sandbox

PROVIDER = "claude"
READS = ("Read", "Glob", "Grep")
EDITS = (*READS, "Edit", "Write", "NotebookEdit")
TOOLS: dict[Permissions, tuple[str, ...]] = {"read": READS, "edit": EDITS, "shell": (*EDITS, "Bash")}
MODES: dict[Permissions, str] = {"read": "dontAsk", "edit": "acceptEdits", "shell": "bypassPermissions"}
API, RENEWAL = "https://api.anthropic.com", "platform.claude.com:443"
LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
KEEPS = ("ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS")
SWITCHED_ON = (
    *("DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"),
    *("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"),
    *("CLAUDE_CODE_DISABLE_CLAUDE_MDS", "CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_SAFE_MODE"),
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK",  # it would hide a stream that broke, and ask twice
    "CLAUDE_CODE_MAX_RETRIES",  # the policy is ours; one, because only a retry tells why and for how long
)
# Where rules have to hold, nobody is there to be asked: what none of them allows is denied. Files may be handled.
HELD = "acceptEdits"
_PLAIN = re.compile(r"[\w ./=@%+,-]+")  # of a command that a rule can name word for word
_CREDENTIALS, _SETTINGS = ".credentials.json", ".claude.json"


class ClaudeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a role's table may say to this provider."""

    model: str | None = None
    program: Annotated[str, Meta(min_length=1)] = "claude"
    effort: str | None = None
    hosts: tuple[str, ...] = ()  # "host:port" beside the API's own
    environment: tuple[str, ...] = ()  # names passed on, for a login of another kind
    sessions: bool = False  # keeps them, as the CLI writes them, and continues the role's last one
    call_tokens: int | None = None
    call_micro_usd: int | None = None


class ClaudeAgent:
    """Implements `ports.agent.Agent`; `place` is where the homes of its calls are made, kept sessions are beside it."""

    tells_cost = True

    def __init__(self, place: Path, sandbox: Sandbox, options: ClaudeOptions) -> None:
        self._place, self._sandbox, self._options = place, sandbox, options
        self._shelf = Shelf(place.with_name(SESSIONS))

    async def call(self, request: AgentRequest) -> AgentReply:
        """One call in a home of its own, in a box where there is one; a session that is not to be had begins anew."""
        kept = self._shelf.find(request.session)
        reply = await self._turn(request, kept)
        if kept is not None and reply.error and sessions.MISSED in reply.detail:
            reply = await self._turn(request, None)
        return reply

    async def _turn(self, request: AgentRequest, kept: Kept | None) -> AgentReply:
        request = structs.replace(request, session=kept.session if kept else None)
        with call_home(self._place) as home:
            held = home.config / "projects"
            start = self._shown(request) if request.writes else str(home.start)
            reader = _reader(request, sessions.lend(kept, held, start) if kept else None)
            reply = await headless(request, self._invocation(request, home, reader), self._sandbox)
            name = None
            if self._options.sessions and not reply.error:
                name = sessions.keep(self._shelf, request.effect, held, reply.session, reader.told())
        return structs.replace(reply, session=name)

    def _invocation(
        self, request: AgentRequest, home: Home, reader: ClaudeReader | None = None
    ) -> Invocation:
        options, lent = self._options, login()
        tree = "" if request.writes else self._shown(request)
        return Invocation(
            provider=PROVIDER,
            argv=(options.program, *words(request, options, self._permissions(request), tree)),
            reader=reader or _reader(request),
            env={**home.environment(), **_environment(request, home), **lent.environment},
            keeps=(*KEEPS, *options.environment),
            writes=(str(home.root), *lent.files),
            network=(*hosts(renewed=bool(lent.files)), *options.hosts),
            stdin=request.prompt.encode("utf-8", "backslashreplace"),
            start=str(home.start),
        )

    def _shown(self, request: AgentRequest) -> str:
        return shown_path(request.workdir, isolated=self._sandbox.isolated)

    def _permissions(self, request: AgentRequest) -> Permissions:
        """A shell only where it is in a box."""
        if request.permissions == "shell" and not self._sandbox.isolated:
            return "edit"
        return request.permissions


def _reader(request: AgentRequest, before: Usage | None = None) -> ClaudeReader:
    return ClaudeReader(
        writes=request.writes,
        schema=request.contract is not None,
        held=request.allows is not None,
        before=before,
    )


def words(
    request: AgentRequest, options: ClaudeOptions, permissions: Permissions, tree: str = ""
) -> Iterator[str]:
    """The command line, with the tree of an agent that starts elsewhere; the prompt is not on it: others can read it."""
    yield from ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
    held = permissions == "shell" and request.allows is not None
    mode = HELD if held else MODES[permissions]
    yield from ("--permission-mode", mode, "--tools", ",".join(TOOLS[permissions]))
    if held and (rules := rules_for(request.allows or ())):
        yield from ("--allowedTools", *rules)
    if tree:
        yield from ("--add-dir", tree)
    yield from ("--setting-sources", "user", "--strict-mcp-config", "--disable-slash-commands")
    if options.model:
        yield from ("--model", options.model)
    if options.effort:
        yield from ("--effort", options.effort)
    if request.contract:
        schema = {k: v for k, v in reply_schema(request.contract).items() if k != "$schema"}
        yield from ("--json-schema", msgspec.json.encode(schema).decode())
    if request.micro_usd:
        yield from ("--max-budget-usd", f"{request.micro_usd // 10**6}.{request.micro_usd % 10**6:06}")
    if request.session:
        yield from ("--resume", request.session)
    if not options.sessions:
        yield "--no-session-persistence"


def rules_for(allows: Iterable[tuple[str, ...]]) -> list[str]:
    """One rule for each command, word for word; one that a rule would read otherwise has none, and is denied."""
    commands = (shlex.join(argv) for argv in allows)
    return [f"Bash({command})" for command in commands if _PLAIN.fullmatch(command)]


def _environment(request: AgentRequest, home: Home) -> dict[str, str]:
    # Our clock for silence is over first: what the CLI says when its own is over is less clear.
    patience = request.idle_seconds * 1000 + 60_000
    return {
        **dict.fromkeys(SWITCHED_ON, "1"),
        "CLAUDE_CONFIG_DIR": str(home.config),
        "API_TIMEOUT_MS": str(patience),
        "IS_SANDBOX": "1",
    }


def hosts(*, renewed: bool) -> tuple[str, ...]:
    """The API, and where a login is renewed."""
    url = urlsplit(os.environ.get("ANTHROPIC_BASE_URL") or API)
    port = url.port or (80 if url.scheme == "http" else 443)
    return (f"{url.hostname}:{port}", *((RENEWAL,) if renewed else ()))


class Login(NamedTuple):
    """How the user's login reaches a call; empty where the user has none."""

    environment: Mapping[str, str] = {}
    files: tuple[str, ...] = ()


def login() -> Login:
    """The user's login, the way the user's own CLI would look for it: environment, then login file, then key file."""
    if given := {name: os.environ[name] for name in LOGINS if os.environ.get(name)}:
        return Login(given)
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    place = Path(own) if own else user_home() / ".claude"
    if (place / _CREDENTIALS).is_file():
        # Where it lies: a token that is renewed in the call is written there, and so for the user's own CLI too.
        return Login({"CLAUDE_SECURESTORAGE_CONFIG_DIR": str(place)}, (str(place / _CREDENTIALS),))
    key = _made_key((place if own else user_home()) / _SETTINGS)
    return Login({"ANTHROPIC_API_KEY": key}) if key else Login()


def _made_key(settings: Path) -> str:
    """The API key that logging in with an account for the API has made; the rest of that file is not looked at."""
    try:
        told = msgspec.json.decode(settings.read_bytes(), type=_Settings)
    except (OSError, msgspec.DecodeError):
        return ""
    return told.key


class _Settings(msgspec.Struct, frozen=True):
    key: str = msgspec.field(name="primaryApiKey", default="")
