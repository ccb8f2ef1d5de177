"""One call of one agent CLI: its own home, its box, its clocks, its events, and the class of what went wrong.

Classification, first match wins: not found · what the CLI told in structured fields (also in a retry) · our clocks ·
an exit that only standard error explains · an exit that contradicts · no word at all.
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

from steersman.adapters.command_environment import CACHES, toolchain_homes
from steersman.adapters.kept_programs import copies_in
from steersman.adapters.processes import Clocks, Executed, execute
from steersman.adapters.sinks import Listener
from steersman.adapters.tree_views import OpenedView, Purpose, TreeView
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderClass, Usage
from steersman.judges.text import clip_between_words, decode
from steersman.ports.sandbox import Box, Sandbox

LINE_CAP = 16 * 1024 * 1024  # one event may hold a whole file
_OUTPUT_CAP = 64 * 1024  # the events are heard line by line; only standard error is looked at afterwards
_TOLD = 2000  # characters of an outside explanation that are kept
_CAUSES: dict[str, ProviderClass] = {
    "not_found": "provider_not_found",
    "permission": "provider_permission_denied",
}
# What every program gets of our environment; the rest is said by its adapter.
TRUSTED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")  # whom to trust: these name files
ALLOWED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", *TRUSTED)


class Failure(NamedTuple):
    """What went wrong, by class, in the CLI's words."""

    error: ProviderClass
    detail: str
    reset_at: int | None = None  # ms since the epoch, for a rate limit


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What the events of one call said."""

    ended: bool = False  # the CLI's own word that the call is over, and well
    failure: Failure | None = (
        None  # its word that it is not; also the cause of its last retry, while it has not ended
    )
    exits: tuple[int, ...] = (0,)  # the codes that go with such an end
    text: str = ""
    usage: Usage = Usage()
    session: str | None = None
    model: str = ""
    denied: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()  # commands beside those that it may run


class Reader(Protocol):
    """Understands the events of one CLI, over one call."""

    def feed(self, line: bytes) -> bool:
        """Takes one line of standard output; True: enough is known, the program is to be stopped. Never raises."""
        ...

    def heard(self) -> Heard: ...

    def exited(self, code: int, errors: str) -> Failure | None:
        """What an exit without a last word means, from its code and standard error; None: nothing in particular."""
        ...


class Invocation(NamedTuple):
    """How one CLI is called, once."""

    provider: str
    argv: tuple[str, ...]  # the program first, by name or path
    reader: Reader
    env: Mapping[str, str] = {}  # beside what every program gets
    keeps: tuple[str, ...] = ()  # names passed on from our own environment
    writes: tuple[str, ...] = ()  # beside the worktree, where the request may write
    reads: tuple[str, ...] = ()
    network: tuple[str, ...] | None = ()
    stdin: bytes | IO[bytes] | None = None
    errors: Listener | None = None  # hears standard error, and may stop the program too
    start: str = ""  # where an agent starts that only reads; one that writes starts in its tree


async def headless(request: AgentRequest, invocation: Invocation, sandbox: Sandbox) -> AgentReply:
    """Runs the CLI to its end, a clock's or ours; nothing it started is alive afterwards."""
    program = shutil.which(invocation.argv[0])
    if program is None:
        return _no_program(invocation)
    env = environment(invocation)
    clocks = Clocks(request.start_seconds, request.idle_seconds, request.seconds)
    transcript = hashlib.sha256()

    def listen(line: bytes) -> bool:
        transcript.update(line + b"\n")
        return invocation.reader.feed(line)

    argv = (program, *invocation.argv[1:])
    async with (
        _shown_tree(request, sandbox) as view,
        sandbox.wrap(
            argv,
            _box(request, invocation, program, view),
            env,
            start_folder(request, invocation, view.shown_at),
        ) as boxed,
    ):
        if view.home:
            boxed.env.update(CACHES | toolchain_homes())
        done = await execute(
            boxed.argv,
            request.workdir if sandbox.isolated else start_folder(request, invocation, request.workdir),
            boxed.env,
            clocks,
            request.effect,
            invocation.stdin,
            cap=_OUTPUT_CAP,
            errors_apart=True,
            lines=listen,
            error_lines=invocation.errors,
            line_cap=LINE_CAP,
            doors=boxed.doors,
            space=boxed.space,
        )
    reply = reply_of(invocation, done, clocks)
    return structs.replace(reply, transcript=transcript.hexdigest(), refused=tuple(boxed.refused))


def start_folder(request: AgentRequest, invocation: Invocation, tree: str) -> str:
    """The program's current directory: outside the tree for whoever only reads, so that it loads nothing from it."""
    return tree if request.writes else invocation.start or tree


def _no_program(invocation: Invocation) -> AgentReply:
    named = invocation.argv[0]
    told = f"{named} was not found: install it, or name it in the role's table with program = …"
    error: ProviderClass = "provider_not_found"
    if os.path.exists(named):
        error, told = "provider_permission_denied", f"{named} may not be executed: make it executable"
    return AgentReply(error=error, detail=told, provider=invocation.provider)


def environment(invocation: Invocation) -> dict[str, str]:
    """All that the program is started with, beside what the box needs: an allowlist, and the adapter's own."""
    kept = {name: os.environ[name] for name in (*ALLOWED, *invocation.keeps) if name in os.environ}
    # Bytecode that a tool leaves in the tree would be part of the change.
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **invocation.env}


@asynccontextmanager
async def _shown_tree(request: AgentRequest, sandbox: Sandbox) -> AsyncIterator[TreeView]:
    """The tree as the agent sees it; a writer also has copies of the project's caches, so that it can run tests."""
    if not sandbox.isolated:
        yield TreeView(request.workdir, ())
        return
    purpose: Purpose = "read" if request.permissions == "read" else "edit"
    with await asyncio.to_thread(OpenedView, request.workdir, purpose) as view:
        yield view


def _box(request: AgentRequest, invocation: Invocation, program: str, view: TreeView) -> Box:
    trusted = [os.environ[name] for name in TRUSTED if os.path.exists(os.environ.get(name, ""))]
    start = (
        (invocation.start,) if invocation.start and not request.writes else ()
    )  # read-only in a writable home
    copies = copies_in((program, *invocation.argv))
    reads = (os.path.realpath(program), *copies, *start, *trusted, *invocation.reads)
    return Box(invocation.writes, reads, invocation.network, binds=view.binds, tree=request.workdir)


def reply_of(invocation: Invocation, done: Executed, clocks: Clocks) -> AgentReply:
    """The reply that the events and the end of the program make together."""
    heard = invocation.reader.heard()
    failure = _failure(invocation, done, heard, clocks)
    return AgentReply(
        text="" if failure else heard.text,
        error=failure.error if failure else None,
        detail=clip_between_words(failure.detail, _TOLD) if failure else "",
        reset_at=failure.reset_at if failure else None,
        usage=heard.usage,
        session=heard.session,
        provider=invocation.provider,
        model=heard.model,
        denied=heard.denied,
        outside=heard.outside,
    )


def _failure(invocation: Invocation, done: Executed, heard: Heard, clocks: Clocks) -> Failure | None:
    errors = decode(done.errors).strip()
    if done.exit_code is None:
        return Failure(_CAUSES.get(done.cause, "provider_crashed"), done.reason)
    if done.excess:
        return Failure("provider_crashed", f"stopped: {done.excess}")
    if heard.failure is not None:
        return heard.failure
    if done.expired:
        return Failure("provider_timeout", _late(done, clocks))
    # One that talks until it is told to stop ends as we end it.
    if heard.ended and (done.stopped or done.exit_code in heard.exits):
        return None
    if (known := invocation.reader.exited(done.exit_code, errors)) is not None:
        return known
    if heard.ended:
        return _contradiction(done.exit_code, errors)
    if done.exit_code == 0:
        return Failure("provider_protocol_error", f"it ended without a last word. {errors}".strip())
    return Failure("provider_crashed", f"{_end(done.exit_code)}: {errors or 'it said nothing'}")


def _late(done: Executed, clocks: Clocks) -> str:
    told = {
        "start": f"no sign of life within {clocks.start} seconds",
        "idle": f"no sign of life for {clocks.idle} seconds",
    }
    return told.get(done.expired, f"not done within {clocks.total} seconds")


def _contradiction(code: int, errors: str) -> Failure:
    return Failure(
        "provider_crashed", f"it told success and then {_end(code)}: {errors or 'it said nothing'}"
    )


def _end(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exit code {code}"
