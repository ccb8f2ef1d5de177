"""Any agent that speaks the Agent Client Protocol over its standard streams; some are known by name.

**Invariant:** every agent gets a home of its own, a sandbox, our clocks and our answers to its requests; when
its turn is over, or ours is, nothing of it is alive.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
from msgspec import Meta, structs

from steersman.adapters.agents.acp_conversation import AcpAgentProfile, AcpConversation, AcpObject
from steersman.adapters.agents.call_home import CallHome, open_call_home
from steersman.adapters.agents.headless import AgentInvocation, ProviderOptions, run_agent_cli
from steersman.contracts.agent import AgentReply, AgentRequest, ProviderUsage
from steersman.ports.sandbox import Sandbox

_CANCEL_PATIENCE_SECONDS = 1.0  # seconds in which an agent may stop by itself


class AcpOptions(ProviderOptions, frozen=True, kw_only=True):
    """What a role's table may say to an agent over this protocol."""

    command: tuple[str, ...] = ()  # of an agent that is not known by name
    program: Annotated[str, Meta(min_length=1)] | None = None  # of one that is
    mode: str | None = None  # a mode of the agent's own, by its id
    # Of the agent's own configuration, where it is known by name.
    settings: dict[str, Any] = msgspec.field(default_factory=dict)


AcpProfileMaker = Callable[[AcpOptions, CallHome], AcpAgentProfile]


def make_plain_profile(options: AcpOptions, home: CallHome) -> AcpAgentProfile:
    """An agent that nothing is known about but its command."""
    return AcpAgentProfile(
        "acp",
        options.command,
        env=home.environment(),
        model=options.model,
        usage=read_protocol_usage,
        network=options.hosts,
    )


def read_protocol_usage(result: AcpObject) -> ProviderUsage:
    """The usage that the protocol gives a turn; a session that steersman opens has one turn."""
    usage = result.get("usage")
    total = usage.get("totalTokens") if isinstance(usage, dict) else None
    return ProviderUsage(tokens=total if type(total) is int and total > 0 else None)


class AcpAgent:
    """Implements `ports.agent.Agent`; `homes_dir` is where the homes of its calls are made."""

    tells_cost = False

    def __init__(
        self,
        homes_dir: Path,
        sandbox: Sandbox,
        options: AcpOptions,
        make_profile: AcpProfileMaker = make_plain_profile,
    ) -> None:
        self._homes_dir, self._sandbox, self._options, self._make_profile = (
            homes_dir,
            sandbox,
            options,
            make_profile,
        )

    async def call(self, request: AgentRequest) -> AgentReply:
        """One turn in a session of its own."""
        with open_call_home(self._homes_dir) as home:
            profile = self._make_profile(self._options, home)
            async with _open_stdin_pipe() as (agent_stdin, write):
                conversation = AcpConversation(
                    request, write, profile, isolated=self._sandbox.isolated, mode=self._options.mode
                )
                conversation.begin()
                reply = await _await_turn_end(
                    run_agent_cli(
                        request,
                        self._build_invocation(profile, conversation, agent_stdin, home),
                        self._sandbox,
                    ),
                    conversation,
                )
        return structs.replace(reply, model=reply.model or self._options.model or "")

    def _build_invocation(
        self, profile: AcpAgentProfile, conversation: AcpConversation, stdin: IO[bytes], home: CallHome
    ) -> AgentInvocation:
        def complain(line: bytes) -> bool:
            complaint = profile.complaint(line.decode("utf-8", "replace"))
            return complaint is not None and conversation.fail(complaint.failure, now=complaint.now)

        return AgentInvocation(
            provider=profile.name,
            argv=profile.argv,
            reader=conversation,
            env=profile.env,
            keeps=(*profile.keeps, *self._options.environment),
            writes=(str(home.root), *profile.writes),
            network=profile.network,
            stdin=stdin,
            errors=complain,
            start=str(home.start),
        )


async def _await_turn_end(call: Any, conversation: AcpConversation) -> AgentReply:
    """Waits for a call; cancelled, it asks the agent to stop, and then sees to it."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        conversation.cancel()
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait({task}, timeout=_CANCEL_PATIENCE_SECONDS)
        task.cancel()
        while not task.done():  # its home is not taken away from under it
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        raise


@contextlib.asynccontextmanager
async def _open_stdin_pipe() -> AsyncIterator[tuple[IO[bytes], Callable[[bytes], object]]]:
    """The end that the agent reads, and a way to write that never waits for it."""
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    with os.fdopen(reading, "rb", 0) as agent_end:
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(writing, "wb", 0))
        try:
            yield agent_end, transport.write
        finally:
            transport.abort()
