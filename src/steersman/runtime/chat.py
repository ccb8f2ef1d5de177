"""Talks with agents beside the machines: who is asked, and that nothing said is lost.

A question is durable before anybody is asked; an answer is a message of its own.
**Invariant:** nothing here touches a run, and nothing in an answer is ever carried out.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from steersman.contracts.chat import Ask, Limits, Message, Thread
from steersman.contracts.config import ChatAgent, Config
from steersman.errors import OverBudget, UserError
from steersman.judges.mentions import folded, mentions
from steersman.judges.redaction import redact
from steersman.judges.text import clip, one_line, visible, well_formed
from steersman.ports.chat import Chats
from steersman.runtime.chat_call import agent_of, called, place_of
from steersman.runtime.isolation import not_isolated
from steersman.runtime.world import World

PREFIX = "chat-"
LONGEST = 100_000  # characters of one question
GRACE = 1.0  # seconds for what an attempt that died has left behind


class Route(NamedTuple):
    """Who is asked, and the names that nobody has."""

    agents: tuple[str, ...]
    unknown: tuple[str, ...] = ()


class Open(NamedTuple):
    """A question that an agent has not answered, or only with an error; `by` says who is at it now."""

    question: Message
    agent: str
    by: str | None
    error: str = ""


class OverSpentError(UserError):
    """Nobody was asked."""

    exit_code = 4


class Talks:
    """The conversations of one project."""

    def __init__(self, world: World, config: Config) -> None:
        self._world, self._config = world, config
        self._names = {folded(n): name for name, a in config.chat.agents.items() for n in (name, *a.aliases)}

    @property
    def chats(self) -> Chats:
        """Where they are kept."""
        if self._world.chats is None:
            raise UserError("this store keeps no conversations")
        return self._world.chats

    # ── threads ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def new(self, title: str = "") -> Thread:
        """An empty thread."""
        now, key = self._world.clock.now(), self._world.chance.key()
        told = clip(one_line(redact(well_formed(title).strip(), self._secrets(), key)), 100)
        thread = Thread(f"{PREFIX}{self._world.chance.run_id()}", told, now, now)
        self.chats.open(thread, key)
        return thread

    def find(self, prefix: str) -> Thread:
        """The thread with this id or unique beginning; `chat-` may be left out."""
        prefix = well_formed(prefix)
        name = prefix if prefix.startswith(PREFIX) else f"{PREFIX}{prefix}"
        found = [name] if self.chats.thread(name) else self.chats.matching(name) if prefix else []
        if len(found) > 1:
            raise UserError(f"{prefix!r} could be {', '.join(found)}: write more of it")
        thread = self.chats.thread(found[0]) if found else None
        if thread is None:
            raise UserError(f"there is no thread {prefix!r}: see `steersman chat threads`")
        return thread

    def drop(self, thread: str) -> None:
        """Forgets a thread, its checkouts too."""
        self._sweep([m for m in self.chats.messages(thread) if m.kind == "question"])
        self.chats.drop(thread)

    def _sweep(self, questions: Sequence[Message]) -> None:
        """Removes the checkouts of calls that nobody makes any more: who died in one could not."""
        workspace = self._world.workspace(self._config)
        if not questions or workspace.problem() is not None:
            return
        for question in questions:
            for n in range(1, len(question.asked) + 1):
                lock = self._world.locks.acquire(_lock(question, n))
                if lock is not None:
                    try:
                        workspace.remove(_lock(question, n))
                    finally:
                        lock.release()

    # ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def route(self, thread: Thread, text: str) -> Route:
        """Whoever is named; else who was asked last here, the host, or the only one there is. UserError: nobody can be."""
        if not visible(text):
            raise UserError('a question needs words: steersman chat send "@name …"')
        if len(text) > LONGEST:
            raise UserError(f"a question has at most {LONGEST} characters, this one {len(text)}: shorten it")
        found = mentions(text, self._names)
        if found.names:
            return Route(found.names, found.unknown)
        if found.unknown and text.lstrip()[:1] in ("@", "＠"):
            raise UserError(f"nobody here is called {found.unknown[0]!r}: {self._there()}")
        chat = self._config.chat
        last = thread.agent if thread.agent in chat.agents else ""
        only = next(iter(chat.agents)) if len(chat.agents) == 1 else ""
        agent = last or chat.host or only
        if not agent:
            raise UserError(f"who is meant? begin with @name: {self._there()}")
        return Route((agent,), found.unknown)

    def _there(self) -> str:
        names = ", ".join(f"@{name}" for name in self._config.chat.agents)
        return (
            f"there are {names}" if names else 'add [chat.agents.bob] with agent = "claude" to steersman.toml'
        )

    def say(self, thread: str, person: str, text: str) -> tuple[Message, Route]:
        """A person's question, durable when this returns; nobody has been asked yet."""
        there = self.find(thread)
        said = well_formed(text).strip()
        route = self.route(there, said)
        question = Message(
            thread=there.id,
            kind="question",
            sender=person,
            text=redact(said, self._secrets(), self.chats.key(there.id) or b""),
            at=self._world.clock.now(),
            asked=route.agents,
        )
        return self.chats.say(question), route

    def ready(self, agents: Sequence[str]) -> str:
        """Raises what would stop a call before it begins; gives what is to be said where nothing isolates an agent."""
        for name in agents:
            told = agent_of(self._world, self._config, name, self._agent(name))[0].tells_cost
            budget = self._config.chat.budget
            if not told and budget.micro_usd is not None and budget.tokens is None and budget.turns is None:
                raise UserError(
                    f"[chat.budget] has only usd, but @{name} does not tell what it costs: add tokens or turns"
                )
        return not_isolated(self._world, self._config)

    async def ask(
        self, question: Message, agents: Sequence[str] = (), heard: Callable[[Message], None] = lambda _: None
    ) -> list[Message]:
        """Asks every agent of a question at once; each answer is kept, then told, as soon as it is there.

        What stops one of them stops no other: it is raised when all are through.
        """
        wanted = tuple(agents) or question.asked
        self.ready(wanted)
        await asyncio.to_thread(self._sweep, self.chats.unanswered())

        async def one(name: str) -> Message:
            answer = await self._asked(question, name)
            heard(answer)
            return answer

        results = await asyncio.gather(*(one(name) for name in wanted), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if isinstance(result, Message)]

    async def _asked(self, question: Message, name: str) -> Message:
        n = question.asked.index(name) + 1
        lock = self._world.locks.acquire(_lock(question, n))
        if lock is None:
            by = self._world.locks.owner(_lock(question, n)) or "another process"
            raise BeingAskedError(f"@{name} is being asked already, by {by}")
        try:
            effect = _effect(question, n)
            # What an attempt that died has left behind.
            await asyncio.to_thread(self._world.processes.stop_tree, effect, GRACE)
            attempt = self._begun(question, name)
            answer = await called(self._world, self.chats, self._config, question, name, effect, attempt)
            return self.chats.answer(answer)
        finally:
            lock.release()

    def _begun(self, question: Message, name: str) -> int:
        ask = Ask(question.thread, question.seq, name, self._world.clock.now())
        try:
            return self.chats.begin(ask, self.limits())
        except OverBudget as error:
            raise OverSpentError(
                f"thread {question.thread} has used up its {error.name}: raise it in [chat.budget], or begin a new thread"
            ) from None

    # ── what is open, what may be used ──────────────────────────────────────────────────────────────────────────────

    def open(self, thread: str) -> list[Open]:
        """Whoever was asked and has not answered yet, or whose last answer was an error."""
        said = self.chats.messages(thread)
        last = {(m.to, m.sender): m for m in said if m.kind == "answer"}
        found = []
        for question in (m for m in said if m.kind == "question"):
            for n, name in enumerate(question.asked, 1):
                answer = last.get((question.seq, name))
                if answer is None or answer.error:
                    by = self._world.locks.owner(_lock(question, n))
                    found.append(Open(question, name, by, answer.error if answer is not None else ""))
        return found

    def limits(self) -> Limits:
        """What a thread may use."""
        budget = self._config.chat.budget
        return Limits(budget.turns, budget.tokens, budget.micro_usd)

    def _agent(self, name: str) -> ChatAgent:
        found = self._config.chat.agents.get(name)
        if found is None:
            raise UserError(f"nobody here is called {name!r} any more: {self._there()}")
        return found

    def _secrets(self) -> tuple[str, ...]:
        return self._world.secrets(self._config.redact.env)


class BeingAskedError(UserError):
    """Somebody else is at it."""

    exit_code = 4


def _effect(question: Message, n: int) -> str:
    return f"{question.thread}:{question.seq}:{n}"


def _lock(question: Message, n: int) -> str:
    return place_of(_effect(question, n))
