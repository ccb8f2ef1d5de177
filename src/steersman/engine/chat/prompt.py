"""Composes a chat agent's prompt: its name, earlier messages within bounds, and the question.

**Invariant:** the prompt says what was left out. A message is one line of JSON, so that none can imitate another.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from steersman.contracts.chat import ChatMessage
from steersman.contracts.config import Chat

CHAT_RULES = """You take part in a conversation about the project in {place}.
Read what you need there; you can change nothing, and nothing that you write is carried out.
Answer the last question in your own words, as plain text or Markdown."""
CUT_MARKER = " … (the rest of this message is left out)"


class ChatPrompt(NamedTuple):
    """The prompt, and how many earlier messages it holds."""

    text: str
    heard: int


def compose_chat_prompt(
    agent: str,
    chat: Chat,
    question: ChatMessage,
    earlier_messages: Sequence[ChatMessage],
    earlier_count: int,
    own_words: str,
    tree_path: str,
) -> ChatPrompt:
    """Composes the prompt; `earlier_count` is the number of all earlier messages, `own_words` the project's words."""
    lines = fit_messages(earlier_messages, chat.history_bytes)
    agent_settings = chat.agents[agent]
    count = earlier_count - len(lines)
    parts = [
        f"You are called {agent}.",
        agent_settings.prompt or "",
        CHAT_RULES.format(place=tree_path),
        own_words,
    ]
    if earlier_count:
        omission_note = f" (the first {count} of {earlier_count} messages are left out)" if count else ""
        parts.append(f"## what was said before{omission_note}\n\n" + "\n".join(lines))
    parts.append(f"## {question.sender} asks you\n\n{question.text}")
    return ChatPrompt("\n\n".join(part.strip() for part in parts if part.strip()), len(lines))


def fit_messages(messages: Sequence[ChatMessage], limit: int) -> list[str]:
    """Returns the last messages that fit, a line each; the last message is clipped where it is too long alone."""
    lines: list[str] = []
    bytes_left = limit
    for message in reversed(messages):
        line = _message_line(message, message.text)
        size = len(line.encode())
        if size > bytes_left:
            if not lines and bytes_left > 400:
                lines.append(_message_line(message, _cut_message(message.text, bytes_left - 300)))
            break
        lines.append(line)
        bytes_left -= size + 1
    return lines[::-1]


def _message_line(message: ChatMessage, text: str) -> str:
    sender = {"from": message.sender, "kind": "person" if message.kind == "question" else "agent"}
    error_field = {"error": message.error} if message.error else {}
    return msgspec.json.encode({**sender, **error_field, "text": text}).decode()


def _cut_message(text: str, size: int) -> str:
    return text.encode()[: max(0, size // 2)].decode("utf-8", "ignore") + CUT_MARKER
