"""One call of one agent CLI: its own home, its sandbox, its clocks, its events, and the class of what went wrong.

Classification, first match wins: not found · what the CLI reported in structured fields (also in a retry) · our clocks ·
an exit that only standard error explains · exit code contradicts the events · no output.
**Invariant:** exit code 0 alone is never success; a cancelled call raises and is never turned into a reply.
"""

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import IO, NamedTuple, Protocol

import msgspec
from msgspec import structs

from steersman.adapters.agents.program_copies import find_program_copies
from steersman.adapters.checks.tree_commands import CACHE_VARIABLES, find_toolchain_homes
from steersman.adapters.checks.tree_views import OpenTreeView, TreeView, ViewPurpose
from steersman.adapters.process.child_process import LineListener
from steersman.adapters.process.program_runner import (
    CERTIFICATE_VARIABLES,
    ProgramClocks,
    ProgramResult,
    run_program,
)
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderClass, ProviderUsage
from steersman.judges.text import decode_outside_bytes
from steersman.ports.sandbox import Sandbox, SandboxPolicy

MAX_EVENT_LINE_BYTES = 16 * 1024 * 1024  # one event may hold a whole file
# The events are read line by line; only standard error is looked at afterwards.
_MAX_KEPT_OUTPUT_BYTES = 64 * 1024
_START_FAILURE_CLASSES: dict[str, ProviderClass] = {
    "not_found": "provider_not_found",
    "permission": "provider_permission_denied",
}
# What every program gets of our environment; its adapter adds the rest.
INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", *CERTIFICATE_VARIABLES)


class ProviderOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a role's table may say to every agent."""

    model: str | None = None
    hosts: tuple[str, ...] = ()  # "host:port" that it may reach, beside those of its own model
    environment: tuple[str, ...] = ()  # names of variables that it gets, such as its key
    call_tokens: int | None = None
    call_micro_usd: int | None = None


class ProviderFailure(NamedTuple):
    """What went wrong, by class, in the CLI's words."""

    error: ProviderClass
    detail: str
    reset_at: int | None = None  # ms since the epoch, for a rate limit


class CallSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the events of one call reported."""

    ended: bool = False  # the CLI's own word that the call is over, and well
    # Its word that it is not; also the cause of its last retry, while it has not ended.
    failure: ProviderFailure | None = None
    exits: tuple[int, ...] = (0,)  # the codes that go with such an end
    text: str = ""
    usage: ProviderUsage = ProviderUsage()
    session: str | None = None
    model: str = ""
    denied: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()  # commands beside those that it may run


class EventReader(Protocol):
    """Understands the events of one CLI, over one call."""

    def feed(self, line: bytes) -> bool:
        """Takes one line of standard output; True: enough is known, the program is to be stopped. Never raises."""
        ...

    def read_result(self) -> CallSummary: ...

    def explain_exit(self, code: int, errors: str) -> ProviderFailure | None:
        """What an exit without a last word means, from its code and standard error; None: nothing in particular."""
        ...


class AgentInvocation(NamedTuple):
    """How one CLI is called, once."""

    provider: str
    argv: tuple[str, ...]  # the program first, by name or path
    reader: EventReader
    env: Mapping[str, str] = {}  # beside what every program gets
    keeps: tuple[str, ...] = ()  # names passed on from our own environment
    writes: tuple[str, ...] = ()  # beside the worktree, where the request may write
    reads: tuple[str, ...] = ()
    network: tuple[str, ...] | None = ()
    stdin: bytes | IO[bytes] | None = None
    errors: LineListener | None = None  # hears standard error, and may stop the program too
    start: str = ""  # where an agent starts that only reads; one that writes starts in its tree


async def run_agent_cli(request: AgentRequest, invocation: AgentInvocation, sandbox: Sandbox) -> AgentReply:
    """Runs the CLI to its end, a clock's or ours; nothing it started is alive afterwards."""
    program = shutil.which(invocation.argv[0])
    if program is None:
        return _missing_program_reply(invocation)
    env = agent_environment(invocation)
    clocks = ProgramClocks(request.start_seconds, request.idle_seconds, request.seconds)
    transcript = hashlib.sha256()

    def listen(line: bytes) -> bool:
        transcript.update(line + b"\n")
        return invocation.reader.feed(line)

    argv = (program, *invocation.argv[1:])
    async with (
        _open_tree_view(request, sandbox) as view,
        sandbox.wrap(
            argv,
            _build_agent_sandbox(request, invocation, program, view),
            env,
            choose_start_directory(request, invocation, view.shown_at),
        ) as sandboxed,
    ):
        if view.home:
            sandboxed.env.update(CACHE_VARIABLES | find_toolchain_homes())
        result = await run_program(
            sandboxed.argv,
            request.workdir
            if sandbox.isolated
            else choose_start_directory(request, invocation, request.workdir),
            sandboxed.env,
            clocks,
            request.effect,
            invocation.stdin,
            cap=_MAX_KEPT_OUTPUT_BYTES,
            lines=listen,
            error_lines=invocation.errors,
            line_cap=MAX_EVENT_LINE_BYTES,
            doors=sandboxed.doors,
            space=sandboxed.space,
        )
    reply = build_agent_reply(invocation, result, clocks)
    return structs.replace(reply, transcript=transcript.hexdigest(), refused=tuple(sandboxed.refused))


def choose_start_directory(request: AgentRequest, invocation: AgentInvocation, tree: str) -> str:
    """The program's current directory: outside the tree for an agent that only reads, so that it loads nothing from the tree."""
    return tree if request.writes else invocation.start or tree


def _missing_program_reply(invocation: AgentInvocation) -> AgentReply:
    program = invocation.argv[0]
    reason = f"{program} was not found: install it, or name it in the role's table with program = …"
    error: ProviderClass = "provider_not_found"
    if os.path.exists(program):
        error, reason = "provider_permission_denied", f"{program} may not be executed: make it executable"
    return AgentReply(error=error, detail=reason, provider=invocation.provider)


def agent_environment(invocation: AgentInvocation) -> dict[str, str]:
    """All that the program is started with, beside what the sandbox needs: an allowlist, and the adapter's own."""
    inherited = {
        name: os.environ[name] for name in (*INHERITED_VARIABLES, *invocation.keeps) if name in os.environ
    }
    # Bytecode that a tool leaves in the tree would be part of the change.
    return {**inherited, "PYTHONDONTWRITEBYTECODE": "1", **invocation.env}


@asynccontextmanager
async def _open_tree_view(request: AgentRequest, sandbox: Sandbox) -> AsyncIterator[TreeView]:
    """The tree as the agent sees it; a writer also has copies of the project's caches, so that it can run tests."""
    if not sandbox.isolated:
        yield TreeView(request.workdir, ())
        return
    purpose: ViewPurpose = "read" if request.permissions == "read" else "edit"
    with await asyncio.to_thread(OpenTreeView, request.workdir, purpose) as view:
        yield view


def _build_agent_sandbox(
    request: AgentRequest, invocation: AgentInvocation, program: str, view: TreeView
) -> SandboxPolicy:
    files = [os.environ[name] for name in CERTIFICATE_VARIABLES if os.path.exists(os.environ.get(name, ""))]
    # Read-only in a writable home.
    start_dirs = (invocation.start,) if invocation.start and not request.writes else ()
    copies = find_program_copies((program, *invocation.argv))
    reads = (os.path.realpath(program), *copies, *start_dirs, *files, *invocation.reads)
    return SandboxPolicy(invocation.writes, reads, invocation.network, binds=view.binds, tree=request.workdir)


def build_agent_reply(
    invocation: AgentInvocation, result: ProgramResult, clocks: ProgramClocks
) -> AgentReply:
    """The reply that the events and the end of the program make together."""
    summary = invocation.reader.read_result()
    failure = _find_call_failure(invocation, result, summary, clocks)
    return AgentReply(
        text="" if failure else summary.text,
        error=failure.error if failure else None,
        detail=failure.detail if failure else "",
        reset_at=failure.reset_at if failure else None,
        usage=summary.usage,
        session=summary.session,
        provider=invocation.provider,
        model=summary.model,
        denied=summary.denied,
        outside=summary.outside,
    )


def _find_call_failure(
    invocation: AgentInvocation, result: ProgramResult, summary: CallSummary, clocks: ProgramClocks
) -> ProviderFailure | None:
    errors = decode_outside_bytes(result.errors).strip()
    if result.exit_code is None:
        return ProviderFailure(_START_FAILURE_CLASSES.get(result.cause, "provider_crashed"), result.reason)
    if result.excess:
        return ProviderFailure("provider_crashed", f"stopped: {result.excess}")
    if summary.failure is not None:
        return summary.failure
    if result.expired:
        return ProviderFailure("provider_timeout", _timeout_text(result, clocks))
    # A program that goes on until we stop it ends as we end it.
    if summary.ended and (result.stopped or result.exit_code in summary.exits):
        return None
    if (exit_failure := invocation.reader.explain_exit(result.exit_code, errors)) is not None:
        return exit_failure
    if summary.ended:
        return _exit_contradiction(result.exit_code, errors)
    if result.exit_code == 0:
        return ProviderFailure("provider_protocol_error", f"it ended without a last word. {errors}".strip())
    return ProviderFailure(
        "provider_crashed", f"{_exit_text(result.exit_code)}: {errors or 'it said nothing'}"
    )


def _timeout_text(result: ProgramResult, clocks: ProgramClocks) -> str:
    texts = {
        "start": f"no sign of life within {clocks.start} seconds",
        "idle": f"no sign of life for {clocks.idle} seconds",
    }
    return texts.get(result.expired, f"not done within {clocks.total} seconds")


def _exit_contradiction(code: int, errors: str) -> ProviderFailure:
    return ProviderFailure(
        "provider_crashed", f"it reported success and then {_exit_text(code)}: {errors or 'it said nothing'}"
    )


def _exit_text(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exit code {code}"
