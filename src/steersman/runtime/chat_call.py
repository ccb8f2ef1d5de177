"""One call of one agent in a chat: its place to read, its prompt, its answer as a message.

**Invariant:** an agent here writes nothing that lasts: it gets a checkout of its own, or an empty directory.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator

from msgspec.structs import replace

from steersman.contracts.agent import AgentReply, AgentRequest
from steersman.contracts.chat import Message
from steersman.contracts.config import TALKER, ChatAgent, Config, Role
from steersman.errors import SteersmanError
from steersman.judges.redaction import redact
from steersman.judges.text import well_formed
from steersman.ports.agent import Agent
from steersman.ports.chat import Chats
from steersman.runtime.chat_prompt import compose
from steersman.runtime.performers.prompt import project_words
from steersman.runtime.project_files import CHAT, freeze_now
from steersman.runtime.words import outside_name
from steersman.runtime.world import World

ROLE = MODE = CHAT


def agent_of(world: World, config: Config, name: str, chosen: ChatAgent) -> tuple[Agent, str]:
    """The agent that is talked to by this name, and the project's words for it; a UserError where it cannot be had."""
    shared = {
        f: getattr(chosen, f)
        for f in ("agent", "model", "script", "seconds", "start_seconds", "idle_seconds", "options")
    }
    role = Role(**shared, retries=0, permissions="read")
    frozen = freeze_now(world, replace(config, roles={f"{TALKER}{name}": role}))
    return world.agent(f"{TALKER}{name}", frozen), frozen.prompts.get(ROLE, "")


def place_of(effect: str) -> str:
    """The name of a call's own checkout; its lock has the same."""
    return effect.replace(":", ".")


async def called(
    world: World, chats: Chats, config: Config, question: Message, name: str, effect: str, attempt: int
) -> Message:
    """Asks, and gives what came back as an answer that is not kept yet; a provider's failure is an answer too."""
    began = world.clock.ticks()
    chosen, earlier = config.chat.agents[name], question.seq - 1
    before = chats.messages(question.thread, before=question.seq, last=config.chat.history)
    agent, own = await asyncio.to_thread(agent_of, world, config, name, chosen)
    mark = world.chance.nonce()
    async with reading_place(world, config, effect) as workdir:
        added = "\n\n".join(project_words(ROLE, own, mark))
        place = world.tree_path(config, workdir)
        prompt = compose(name, config.chat, question, before, earlier, added, place)
        request = AgentRequest(
            role=ROLE,
            mode=MODE,
            prompt=prompt.text,
            workdir=workdir,
            writes=False,
            effect=effect,
            nonce=world.chance.nonce(),
            round=question.seq,
            attempt=attempt,
            seconds=chosen.seconds,
            start_seconds=chosen.start_seconds,
            idle_seconds=chosen.idle_seconds,
            permissions="read",
            micro_usd=_left(chats, config, question.thread),
            options={**chosen.options, "model": chosen.model} if chosen.model else chosen.options,
        )
        reply = await _reply(agent, request)
    said = reply.detail or "it said nothing more" if reply.error else reply.text
    key = chats.key(question.thread) or b""
    return Message(
        thread=question.thread,
        kind="answer",
        sender=name,
        text=redact(well_formed(said).strip(), world.secrets(config.redact.env), key),
        at=world.clock.now(),
        to=question.seq,
        attempt=attempt,
        error=reply.error or "",
        provider=outside_name(world, reply.provider),
        model=outside_name(world, reply.model),
        ms=(world.clock.ticks() - began) // 1000,
        tokens=reply.usage.tokens,
        micro_usd=reply.usage.micro_usd,
        heard=prompt.heard,
        left_out=earlier - prompt.heard,
    )


async def _reply(agent: Agent, request: AgentRequest) -> AgentReply:
    try:
        return await agent.call(request)
    except SteersmanError as error:  # it has promised not to: a conversation goes on nevertheless
        return AgentReply(error="provider_crashed", detail=str(error))


@contextlib.asynccontextmanager
async def reading_place(world: World, config: Config, effect: str) -> AsyncIterator[str]:
    """A checkout of the base commit; an empty directory where there is no repository with a commit. Gone afterwards."""
    workspace = world.workspace(config)
    if await asyncio.to_thread(workspace.problem) is None:
        base = await asyncio.to_thread(workspace.base, config.base or None)
        try:
            tree = await asyncio.to_thread(workspace.checkout, place_of(effect), base.commit, effect)
            yield tree.path
        finally:
            await asyncio.to_thread(workspace.remove, place_of(effect))
        return
    with tempfile.TemporaryDirectory(prefix="steersman-chat-") as folder:
        yield folder


def _left(chats: Chats, config: Config, thread: str) -> int | None:
    limit = config.chat.budget.micro_usd
    return None if limit is None else max(1, limit - chats.spent(thread).micro_usd)
