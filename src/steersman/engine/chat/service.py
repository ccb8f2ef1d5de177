"""Holds conversations with agents beside the machines: routes questions, calls agents, stores answers.

A question is durable before an agent is called; each answer is a message of its own.
**Invariant:** a conversation changes no run, and no line of an answer is executed.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from steersman.contracts.chat import ChatCall, ChatLimits, ChatMessage, ChatThread
from steersman.contracts.config import ChatAgent, Config
from steersman.engine.chat.agent_call import build_chat_agent, call_chat_agent, chat_checkout_name
from steersman.engine.ports import Ports, isolation_warning
from steersman.errors import OverBudget, UserError
from steersman.judges.redaction.redact import redact_text
from steersman.judges.replies.mentions import find_mentions, fold_mention_name
from steersman.judges.text import clip_text, escape_surrogates, has_visible_text, printable_line
from steersman.ports.chat import Chats

THREAD_PREFIX = "chat-"
MAX_QUESTION_CHARS = 100_000  # of one question
LEFTOVER_GRACE_SECONDS = 1.0  # for processes that an earlier attempt left behind


class QuestionRoute(NamedTuple):
    """The agents that a question goes to, and mentioned names that no agent has."""

    agents: tuple[str, ...]
    unknown: tuple[str, ...] = ()


class OpenQuestion(NamedTuple):
    """A question without an answer of an agent, or with an error; `by` is the process that asks it now."""

    question: ChatMessage
    agent: str
    by: str | None
    error: str = ""


class ThreadBudgetError(UserError):
    """The thread's budget is used up; no agent was called."""

    exit_code = 4


class ChatService:
    """The conversations of one project."""

    def __init__(self, ports: Ports, config: Config) -> None:
        self._world, self._config = ports, config
        self._names = {
            fold_mention_name(n): name for name, a in config.chat.agents.items() for n in (name, *a.aliases)
        }

    @property
    def chats(self) -> Chats:
        """The store of conversations."""
        if self._world.chats is None:
            raise UserError("this store has no table for conversations")
        return self._world.chats

    # ── threads ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def new(self, title: str = "") -> ChatThread:
        """Opens an empty thread."""
        now, key = self._world.clock.now(), self._world.chance.key()
        safe_title = clip_text(
            printable_line(redact_text(escape_surrogates(title).strip(), self._secrets(), key)), 100
        )
        thread = ChatThread(f"{THREAD_PREFIX}{self._world.chance.run_id()}", safe_title, now, now)
        self.chats.open(thread, key)
        return thread

    def find(self, prefix: str) -> ChatThread:
        """Finds the thread with this id or unique prefix; `chat-` may be left out."""
        prefix = escape_surrogates(prefix)
        name = prefix if prefix.startswith(THREAD_PREFIX) else f"{THREAD_PREFIX}{prefix}"
        thread_ids = [name] if self.chats.thread(name) else self.chats.find_threads(name) if prefix else []
        if len(thread_ids) > 1:
            raise UserError(f"{prefix!r} fits several threads: {', '.join(thread_ids)}. Type more of the id")
        thread = self.chats.thread(thread_ids[0]) if thread_ids else None
        if thread is None:
            raise UserError(f"there is no thread {prefix!r}. Run `steersman chat threads`")
        return thread

    def drop(self, thread: str) -> None:
        """Deletes a thread with its checkouts."""
        self._remove_stale_checkouts([m for m in self.chats.messages(thread) if m.kind == "question"])
        self.chats.drop(thread)

    def _remove_stale_checkouts(self, questions: Sequence[ChatMessage]) -> None:
        """Removes the checkouts of calls whose process died before it could."""
        workspace = self._world.workspace(self._config)
        if not questions or workspace.find_start_problem() is not None:
            return
        for question in questions:
            for number in range(1, len(question.asked) + 1):
                lock = self._world.locks.acquire(_question_lock(question, number))
                if lock is not None:
                    try:
                        workspace.remove(_question_lock(question, number))
                    finally:
                        lock.release()

    # ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def route(self, thread: ChatThread, text: str) -> QuestionRoute:
        """Returns the agents that a text mentions; else the thread's last agent, the host, or the only one. Raises UserError."""
        if not has_visible_text(text):
            raise UserError('the question is empty. Type steersman chat send "@name …"')
        if len(text) > MAX_QUESTION_CHARS:
            raise UserError(
                f"the question has {len(text)} characters, and {MAX_QUESTION_CHARS} are allowed. Shorten it"
            )
        mentioned = find_mentions(text, self._names)
        if mentioned.names:
            return QuestionRoute(mentioned.names, mentioned.unknown)
        if mentioned.unknown and text.lstrip()[:1] in ("@", "＠"):
            raise UserError(f"there is no agent {mentioned.unknown[0]!r}: {self._there()}")
        chat = self._config.chat
        last_agent = thread.agent if thread.agent in chat.agents else ""
        only_agent = next(iter(chat.agents)) if len(chat.agents) == 1 else ""
        agent = last_agent or chat.host or only_agent
        if not agent:
            raise UserError(f"the question names no agent. Begin with @name: {self._there()}")
        return QuestionRoute((agent,), mentioned.unknown)

    def _there(self) -> str:
        names = ", ".join(f"@{name}" for name in self._config.chat.agents)
        return (
            f"there are {names}" if names else 'add [chat.agents.bob] with agent = "claude" to steersman.toml'
        )

    def say(self, thread: str, person: str, text: str) -> tuple[ChatMessage, QuestionRoute]:
        """Stores a person's question and returns it with its route; no agent has been called."""
        found_thread = self.find(thread)
        question_text = escape_surrogates(text).strip()
        route = self.route(found_thread, question_text)
        question = ChatMessage(
            thread=found_thread.id,
            kind="question",
            sender=person,
            text=redact_text(question_text, self._secrets(), self.chats.key(found_thread.id) or b""),
            at=self._world.clock.now(),
            asked=route.agents,
        )
        return self.chats.add_question(question), route

    def require_ready_agents(self, agents: Sequence[str]) -> str:
        """Raises UserError where a call could not begin; returns the warning where no sandbox isolates agents."""
        for name in agents:
            tells_cost = build_chat_agent(self._world, self._config, name, self._agent(name))[0].tells_cost
            budget = self._config.chat.budget
            if (
                not tells_cost
                and budget.micro_usd is not None
                and budget.tokens is None
                and budget.turns is None
            ):
                raise UserError(
                    f"[chat.budget] has only usd, but @{name} does not report its cost. Add tokens or turns"
                )
        return isolation_warning(self._world, self._config)

    async def ask(
        self,
        question: ChatMessage,
        agents: Sequence[str] = (),
        heard: Callable[[ChatMessage], None] = lambda _: None,
    ) -> list[ChatMessage]:
        """Calls every agent of a question at once; stores each answer, then passes it to `heard`.

        An error of one call stops no other; it is raised when all have ended.
        """
        agent_names = tuple(agents) or question.asked
        self.require_ready_agents(agent_names)
        await asyncio.to_thread(self._remove_stale_checkouts, self.chats.unanswered())

        async def one(agent_name: str) -> ChatMessage:
            answer = await self._asked(question, agent_name)
            heard(answer)
            return answer

        results = await asyncio.gather(*(one(name) for name in agent_names), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, ChatMessage)]

    async def _asked(self, question: ChatMessage, name: str) -> ChatMessage:
        number = question.asked.index(name) + 1
        lock = self._world.locks.acquire(_question_lock(question, number))
        if lock is None:
            owner = self._world.locks.owner(_question_lock(question, number)) or "another process"
            raise AgentBusyError(f"{owner} is already asking @{name}")
        try:
            effect = _question_effect(question, number)
            # Processes of an attempt that died.
            await asyncio.to_thread(self._world.processes.stop_tree, effect, LEFTOVER_GRACE_SECONDS)
            attempt = self._begun(question, name)
            answer = await call_chat_agent(
                self._world, self.chats, self._config, question, name, effect, attempt
            )
            return self.chats.answer(answer)
        finally:
            lock.release()

    def _begun(self, question: ChatMessage, name: str) -> int:
        ask = ChatCall(question.thread, question.seq, name, self._world.clock.now())
        try:
            return self.chats.begin(ask, self.limits())
        except OverBudget as error:
            raise ThreadBudgetError(
                f"thread {question.thread} has used up its {error.name}. Raise it in [chat.budget], or start a new thread"
            ) from None

    # ── what is open, what may be used ──────────────────────────────────────────────────────────────────────────────

    def open(self, thread: str) -> list[OpenQuestion]:
        """Returns the questions without an answer, or whose last answer was an error."""
        messages = self.chats.messages(thread)
        last_answers = {(m.to, m.sender): m for m in messages if m.kind == "answer"}
        unanswered = []
        for question in (m for m in messages if m.kind == "question"):
            for number, name in enumerate(question.asked, 1):
                answer = last_answers.get((question.seq, name))
                if answer is None or answer.error:
                    owner = self._world.locks.owner(_question_lock(question, number))
                    unanswered.append(
                        OpenQuestion(question, name, owner, answer.error if answer is not None else "")
                    )
        return unanswered

    def limits(self) -> ChatLimits:
        """Returns the limits of a thread."""
        budget = self._config.chat.budget
        return ChatLimits(budget.turns, budget.tokens, budget.micro_usd)

    def _agent(self, name: str) -> ChatAgent:
        settings = self._config.chat.agents.get(name)
        if settings is None:
            raise UserError(f"there is no agent {name!r} any more: {self._there()}")
        return settings

    def _secrets(self) -> tuple[str, ...]:
        return self._world.secrets(self._config.redact.env)


class AgentBusyError(UserError):
    """Another process is calling this agent."""

    exit_code = 4


def _question_effect(question: ChatMessage, number: int) -> str:
    return f"{question.thread}:{question.seq}:{number}"


def _question_lock(question: ChatMessage, number: int) -> str:
    return chat_checkout_name(_question_effect(question, number))
