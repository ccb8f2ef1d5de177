"""What an agent in a chat is given: who it is, what was said before, within bounds, and what is asked now.

**Invariant:** what was left out is said; a message is one line of JSON, so that none can pose as another.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from steersman.contracts.chat import Message
from steersman.contracts.config import Chat

RULES = """You take part in a conversation about the project in {place}.
Read what you need there; you can change nothing, and nothing that you write is carried out.
Answer the last question in your own words, as plain text or Markdown."""
CUT = " … (the rest of this message is left out)"


class Prompt(NamedTuple):
    """The words, and how many earlier messages are among them."""

    text: str
    heard: int


def compose(
    agent: str,
    chat: Chat,
    question: Message,
    before: Sequence[Message],
    earlier: int,
    own: str,
    place: str,
) -> Prompt:
    """The prompt as sent; `before` are the last of `earlier` messages, `own` what the project adds, `place` where it is."""
    lines = within(before, chat.history_bytes)
    chosen = chat.agents[agent]
    left = earlier - len(lines)
    parts = [f"You are called {agent}.", chosen.prompt or "", RULES.format(place=place), own]
    if earlier:
        told = f" (the first {left} of {earlier} messages are left out)" if left else ""
        parts.append(f"## what was said before{told}\n\n" + "\n".join(lines))
    parts.append(f"## {question.sender} asks you\n\n{question.text}")
    return Prompt("\n\n".join(part.strip() for part in parts if part.strip()), len(lines))


def within(messages: Sequence[Message], limit: int) -> list[str]:
    """The last messages that fit, each a line; one that is too long alone is cut where it is the last."""
    kept: list[str] = []
    left = limit
    for message in reversed(messages):
        line = _line(message, message.text)
        size = len(line.encode())
        if size > left:
            if not kept and left > 400:
                kept.append(_line(message, _cut(message.text, left - 300)))
            break
        kept.append(line)
        left -= size + 1
    return kept[::-1]


def _line(message: Message, text: str) -> str:
    who = {"from": message.sender, "kind": "person" if message.kind == "question" else "agent"}
    failed = {"error": message.error} if message.error else {}
    return msgspec.json.encode({**who, **failed, "text": text}).decode()


def _cut(text: str, size: int) -> str:
    return text.encode()[: max(0, size // 2)].decode("utf-8", "ignore") + CUT
