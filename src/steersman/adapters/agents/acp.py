"""Any agent that speaks the Agent Client Protocol over its standard streams; some are known by name.

**Invariant:** whoever the agent is, it gets a home of its own, a box, our clocks and our answers to what it asks; when
its turn is over, or ours is, nothing of it is alive.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import IO, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, structs

from steersman.adapters.agents.acp_conversation import Conversation, Plain
from steersman.adapters.agents.headless import Failure, Invocation, headless
from steersman.adapters.agents.home import Home, call_home
from steersman.contracts.agent import AgentReply, AgentRequest, Usage
from steersman.ports.sandbox import Sandbox

_PATIENCE = 1.0  # seconds in which an agent may stop by itself


class AcpOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a role's table may say to an agent over this protocol."""

    command: tuple[str, ...] = ()  # of an agent that is not known by name
    program: Annotated[str, Meta(min_length=1)] | None = None  # of one that is
    model: str | None = None
    mode: str | None = None  # a mode of the agent's own, by its id
    hosts: tuple[str, ...] = ()  # "host:port" that it may reach
    environment: tuple[str, ...] = ()  # names passed on: its key, where its model is
    settings: dict[str, Any] = {}  # of the agent's own configuration, where it is known by name
    call_tokens: int | None = None
    call_micro_usd: int | None = None


class Complaint(NamedTuple):
    """A line of standard error that tells what went wrong; with `now` it will not get better by itself."""

    failure: Failure
    now: bool = False


class Kind(NamedTuple):
    """One agent, as it wants to be called."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    keeps: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()  # logins that are lent
    network: tuple[str, ...] | None = ()
    model: str | None = None  # to be chosen in the session, where no word of the command line does it
    usage: Callable[[Plain], Usage] = lambda _: Usage()
    opened: Callable[[Plain], Failure | None] = lambda _: None
    doubt: Callable[[Plain], Failure | None] = lambda _: None
    status: Callable[[], int | None] = lambda: None
    complaint: Callable[[str], Complaint | None] = lambda _: None


Maker = Callable[[AcpOptions, Home], Kind]


def plain(options: AcpOptions, home: Home) -> Kind:
    """An agent that nothing is known about but its command."""
    return Kind(
        "acp",
        options.command,
        env=home.environment(),
        model=options.model,
        usage=told_usage,
        network=options.hosts,
    )


def told_usage(result: Plain) -> Usage:
    """The usage that the protocol gives a turn; a session of ours has one."""
    told = result.get("usage")
    total = told.get("totalTokens") if isinstance(told, dict) else None
    return Usage(tokens=total if type(total) is int and total > 0 else None)


class AcpAgent:
    """Implements `ports.agent.Agent`; `place` is where the homes of its calls are made."""

    tells_cost = False

    def __init__(self, place: Path, sandbox: Sandbox, options: AcpOptions, maker: Maker = plain) -> None:
        self._place, self._sandbox, self._options, self._maker = place, sandbox, options, maker

    async def call(self, request: AgentRequest) -> AgentReply:
        """One turn in a session of its own."""
        with call_home(self._place) as home:
            kind = self._maker(self._options, home)
            async with _pipe() as (theirs, write):
                talk = Conversation(
                    request,
                    write,
                    isolated=self._sandbox.isolated,
                    mode=self._options.mode,
                    model=kind.model,
                    usage=kind.usage,
                    opened=kind.opened,
                    doubt=kind.doubt,
                    status=kind.status,
                )
                talk.begin()
                reply = await _to_its_end(
                    headless(request, self._invocation(kind, talk, theirs, home), self._sandbox), talk
                )
        return structs.replace(reply, model=reply.model or self._options.model or "")

    def _invocation(self, kind: Kind, talk: Conversation, stdin: IO[bytes], home: Home) -> Invocation:
        def complain(line: bytes) -> bool:
            found = kind.complaint(line.decode("utf-8", "replace"))
            return found is not None and talk.fail(found.failure, now=found.now)

        return Invocation(
            provider=kind.name,
            argv=kind.argv,
            reader=talk,
            env=kind.env,
            keeps=(*kind.keeps, *self._options.environment),
            writes=(str(home.root), *kind.writes),
            network=kind.network,
            stdin=stdin,
            errors=complain,
            start=str(home.start),
        )


async def _to_its_end(work: Any, talk: Conversation) -> AgentReply:
    """Waits for a call; cancelled, it asks the agent to stop, and then sees to it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        talk.cancel()
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait({task}, timeout=_PATIENCE)
        task.cancel()
        while not task.done():  # its home is not taken away from under it
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        raise


@contextlib.asynccontextmanager
async def _pipe() -> AsyncIterator[tuple[IO[bytes], Callable[[bytes], object]]]:
    """The end that the agent reads, and a way to write that never waits for it."""
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    with os.fdopen(reading, "rb", 0) as theirs:
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(writing, "wb", 0))
        try:
            yield theirs, transport.write
        finally:
            transport.abort()
