"""Calls one agent in a chat, in a checkout of its own, and returns its answer as a message.

**Invariant:** nothing that the agent writes lasts: the checkout is removed after the call.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator

from msgspec.structs import replace

from steersman.contracts.agent import MAX_FAILURE_DETAIL, AgentReply, AgentRequest
from steersman.contracts.chat import ChatMessage
from steersman.contracts.config import CHAT_AGENT_PREFIX, ChatAgent, Config, Role
from steersman.engine.chat.prompt import compose_chat_prompt
from steersman.engine.effects.agent_work import project_prompt_sections
from steersman.engine.inbox import sanitize_agent_name
from steersman.engine.ports import Ports
from steersman.engine.project_files import CHAT_PROMPT_NAME, freeze_current_files
from steersman.errors import SteersmanError
from steersman.judges.redaction.redact import redact_text
from steersman.judges.text import clip_text, escape_surrogates
from steersman.ports.agent import Agent
from steersman.ports.chat import Chats

CHAT_ROLE = CHAT_MODE = CHAT_PROMPT_NAME


def build_chat_agent(ports: Ports, config: Config, name: str, agent_settings: ChatAgent) -> tuple[Agent, str]:
    """Makes the chat agent of this name and reads the project's words for it; raises UserError where that fails."""
    role_fields = {
        f: getattr(agent_settings, f)
        for f in ("agent", "model", "script", "seconds", "start_seconds", "idle_seconds", "options")
    }
    role = Role(**role_fields, retries=0, permissions="read")
    frozen = freeze_current_files(ports, replace(config, roles={f"{CHAT_AGENT_PREFIX}{name}": role}))
    return ports.agent(f"{CHAT_AGENT_PREFIX}{name}", frozen), frozen.prompts.get(CHAT_ROLE, "")


def chat_checkout_name(effect: str) -> str:
    """Returns the name of a call's checkout, which is also the name of its lock."""
    return effect.replace(":", ".")


async def call_chat_agent(
    ports: Ports, chats: Chats, config: Config, question: ChatMessage, name: str, effect: str, attempt: int
) -> ChatMessage:
    """Calls the agent and returns its answer, not stored yet; a failed call is an answer with an error."""
    started_at = ports.clock.ticks()
    settings, earlier_count = config.chat.agents[name], question.seq - 1
    messages = chats.messages(question.thread, before=question.seq, last=config.chat.history)
    agent, own_words = await asyncio.to_thread(build_chat_agent, ports, config, name, settings)
    mark = ports.chance.nonce()
    async with read_only_checkout(ports, config, effect) as workdir:
        added_words = "\n\n".join(project_prompt_sections(CHAT_ROLE, own_words, mark))
        path = ports.tree_path(config, workdir)
        prompt = compose_chat_prompt(name, config.chat, question, messages, earlier_count, added_words, path)
        request = AgentRequest(
            role=CHAT_ROLE,
            mode=CHAT_MODE,
            prompt=prompt.text,
            workdir=workdir,
            writes=False,
            effect=effect,
            nonce=ports.chance.nonce(),
            round=question.seq,
            attempt=attempt,
            seconds=settings.seconds,
            start_seconds=settings.start_seconds,
            idle_seconds=settings.idle_seconds,
            permissions="read",
            micro_usd=_remaining_micro_usd(chats, config, question.thread),
            options={**settings.options, "model": settings.model} if settings.model else settings.options,
        )
        reply = await _call_agent_safely(agent, request)
    answer_text = reply.detail or "no further detail" if reply.error else reply.text
    key = chats.key(question.thread) or b""
    text = redact_text(escape_surrogates(answer_text).strip(), ports.secrets(config.redact.env), key)
    return ChatMessage(
        thread=question.thread,
        kind="answer",
        sender=name,
        text=clip_text(text, MAX_FAILURE_DETAIL) if reply.error else text,
        at=ports.clock.now(),
        to=question.seq,
        attempt=attempt,
        error=reply.error or "",
        provider=sanitize_agent_name(ports, reply.provider),
        model=sanitize_agent_name(ports, reply.model),
        ms=(ports.clock.ticks() - started_at) // 1000,
        tokens=reply.usage.tokens,
        micro_usd=reply.usage.micro_usd,
        heard=prompt.heard,
        left_out=earlier_count - prompt.heard,
    )


async def _call_agent_safely(agent: Agent, request: AgentRequest) -> AgentReply:
    try:
        return await agent.call(request)
    except SteersmanError as error:  # an agent must not raise; the conversation goes on
        return AgentReply(error="provider_crashed", detail=str(error))


@contextlib.asynccontextmanager
async def read_only_checkout(ports: Ports, config: Config, effect: str) -> AsyncIterator[str]:
    """Yields a checkout of the base commit, or an empty directory without a repository; removes it afterwards."""
    workspace = ports.workspace(config)
    if await asyncio.to_thread(workspace.find_start_problem) is None:
        base = await asyncio.to_thread(workspace.base, config.base or None)
        try:
            tree = await asyncio.to_thread(
                workspace.checkout, chat_checkout_name(effect), base.commit, effect
            )
            yield tree.path
        finally:
            await asyncio.to_thread(workspace.remove, chat_checkout_name(effect))
        return
    with tempfile.TemporaryDirectory(prefix="steersman-chat-") as directory:
        yield directory


def _remaining_micro_usd(chats: Chats, config: Config, thread: str) -> int | None:
    limit = config.chat.budget.micro_usd
    return None if limit is None else max(1, limit - chats.spent(thread).micro_usd)
