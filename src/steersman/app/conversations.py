"""Conversations with agents beside the runs: threads, questions, answers and their cost.

**Invariant:** nothing that an agent answers is carried out; only a person speaks.
"""

import msgspec

from steersman.app.runs import RunService
from steersman.contracts.chat import ChatConversation, ChatMessage, ChatThread, PendingAnswer
from steersman.contracts.config import Config
from steersman.engine.chat.service import ChatService, OpenQuestion
from steersman.ports.chat import Chats

__all__ = [
    "ChatService",
    "find_unanswered_question",
    "list_pending_answers",
    "open_conversations",
    "read_conversation",
    "require_question_route",
]


def open_conversations(runs: RunService, chats: Chats, config: Config) -> ChatService:
    """The project's conversations, with the agents and limits of a configuration."""
    return ChatService(msgspec.structs.replace(runs.ports, chats=chats), config)


def require_question_route(chats: ChatService, thread: str | None, text: str) -> None:
    """Refuses a question that no agent can be asked, before a thread is made for it."""
    asked_in = chats.find(thread) if thread else ChatThread("", "", 0, 0)
    chats.require_ready_agents(chats.route(asked_in, text).agents)


def read_conversation(chats: ChatService, name: str, last: int | None = None) -> ChatConversation:
    """What was said in a thread, what it cost, and which answers are missing."""
    thread = chats.find(name)
    return ChatConversation(
        **msgspec.structs.asdict(thread),
        messages=tuple(chats.chats.messages(thread.id, last=last)),
        spent=chats.chats.spent(thread.id),
        limits=chats.limits(),
        open=list_pending_answers(chats, thread.id),
    )


def list_pending_answers(chats: ChatService, thread: str) -> tuple[PendingAnswer, ...]:
    """The answers that are missing in a thread, and which of them an agent still works on."""
    return tuple(PendingAnswer(q.question.seq, q.agent, q.by, q.error) for q in chats.open(thread))


def find_unanswered_question(
    chats: ChatService, thread: str, seq: int | None = None
) -> tuple[ChatMessage, list[str]] | None:
    """The last question that lacks answers, or the one with this number, and the agents that can be asked again."""
    unanswered: list[OpenQuestion] = [
        q for q in chats.open(thread) if q.by is None and seq in (None, q.question.seq)
    ]
    if not unanswered:
        return None
    question = unanswered[-1].question
    return question, [q.agent for q in unanswered if q.question.seq == question.seq]
