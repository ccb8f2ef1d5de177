"""A conversation beside the machines: threads, and what was said in them.

**Invariant:** nothing here is part of a run; what an agent cost and did not tell stays unknown, which is never zero.
"""

from typing import Literal

import msgspec


class ChatThread(msgspec.Struct, frozen=True):
    """One conversation."""

    id: str
    title: str
    created: int
    at: int  # when something was said last
    agent: str = ""  # who was asked last


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asked, or what one agent answered; the texts are redacted."""

    thread: str
    kind: Literal["question", "answer"]
    sender: str  # the person, or the agent by its name in the chat
    text: str
    at: int
    seq: int = 0  # 0: not kept yet
    asked: tuple[str, ...] = ()  # of a question: the agents it goes to
    to: int = 0  # of an answer: the question
    attempt: int = 1
    error: str = ""  # a provider class; then the text is its detail
    provider: str = ""
    model: str = ""
    ms: int | None = None
    tokens: int | None = None
    micro_usd: int | None = None
    heard: int = 0  # earlier messages that the agent was given
    left_out: int = 0  # earlier messages that it was not given


class ChatCall(msgspec.Struct, frozen=True):
    """One call of one agent for one question; it counts from the moment it begins."""

    thread: str
    question: int
    agent: str
    at: int


class ChatLimits(msgspec.Struct, frozen=True):
    """What a thread may use; None is no limit."""

    turns: int | None = None
    tokens: int | None = None
    micro_usd: int | None = None


class ChatUsage(msgspec.Struct, frozen=True):
    """What a thread has used, as far as the agents report it."""

    turns: int = 0
    tokens: int = 0
    micro_usd: int = 0
    unknown: int = 0  # calls that did not tell all of it

    def over(self, limits: ChatLimits) -> str:
        """The first figure that is used up; nothing while there is room."""
        for name in ("turns", "tokens", "micro_usd"):
            limit = getattr(limits, name)
            if limit is not None and getattr(self, name) >= limit:
                return name
        return ""


class PendingAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer that is not there."""

    question: int
    agent: str
    by: str | None  # who asks for it now
    error: str  # the class of the last attempt that failed


class ChatConversation(ChatThread, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thread with its messages, as JSON for programs."""

    messages: tuple[ChatMessage, ...]
    spent: ChatUsage
    limits: ChatLimits
    open: tuple[PendingAnswer, ...]
    exit_code: int = 0
