"""Renders conversations: messages, senders, costs, open questions.

**Invariant:** every line of outside text has a gutter in front of it, so that none can imitate our lines.
"""

from collections.abc import Sequence

from steersman.contracts.chat import ChatLimits, ChatMessage, ChatThread, ChatUsage
from steersman.judges.text import clip_text, printable_line, printable_text
from steersman.views.gates import OUTSIDE_TEXT_GUTTER
from steersman.views.time_format import format_duration, format_figure, format_micro_usd, format_timestamp

MAX_THREAD_TITLE = 60
THREAD_COLUMNS = ("THREAD", "SAID", "AGE", "LAST ASKED", "ABOUT")


def thread_table_lines(counted_threads: Sequence[tuple[ChatThread, int]], now: int) -> list[str]:
    """Renders threads as a table, with the number of messages."""
    rows = [THREAD_COLUMNS, *(_thread_table_row(thread, count, now) for thread, count in counted_threads)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(THREAD_COLUMNS) - 1)]
    return ["  ".join([*(c.ljust(w) for c, w in zip(r, widths, strict=False)), r[-1]]).rstrip() for r in rows]


def _thread_table_row(thread: ChatThread, count: int, now: int) -> tuple[str, ...]:
    last = f"@{printable_line(thread.agent)}" if thread.agent else "–"
    about = clip_text(printable_line(thread.title), MAX_THREAD_TITLE) or "–"
    return (thread.id, str(count), format_duration(now - thread.at), last, about)


def chat_message_lines(message: ChatMessage) -> list[str]:
    """Renders one message: sender, time, cost, text."""
    to = f" → {', '.join(f'@{name}' for name in message.asked)}" if message.asked else ""
    parts = [
        f"[{message.seq}] {message.sender}{to}",
        f"{format_timestamp(message.at)} UTC",
        *_answer_details(message),
    ]
    return [printable_line(" · ".join(parts)), *gutter_lines(message.text)]


def gutter_lines(text: str) -> list[str]:
    """Puts a gutter in front of each line of outside text."""
    return [f"{OUTSIDE_TEXT_GUTTER}{line}".rstrip() for line in printable_text(text).split("\n")]


def _answer_details(message: ChatMessage) -> list[str]:
    if message.kind == "question":
        return []
    details = [f"to [{message.to}]"]
    if message.error:
        details.append(f"failed: {message.error}")
    if message.model or message.provider:
        details.append(f"{message.provider} {message.model}".strip())
    if message.ms is not None:
        details.append(format_duration(message.ms))
    details.append(call_cost_words(message.tokens, message.micro_usd))
    if message.left_out:
        details.append(f"{message.left_out} earlier messages left out")
    return details


def call_cost_words(tokens: int | None, micro_usd: int | None) -> str:
    """Renders the reported cost of a call; an unreported figure is unknown."""
    used = f"{format_figure('tokens', tokens)} tokens" if tokens is not None else "tokens unknown"
    paid = format_micro_usd(micro_usd) if micro_usd is not None else "cost unknown"
    return f"{used} · {paid}"


def thread_cost_words(spent: ChatUsage, limits: ChatLimits) -> str:
    """Renders what a thread has used of its limits."""
    figures = (("calls", "turns"), ("tokens", "tokens"), ("", "micro_usd"))
    parts = [_thread_cost_figure(word, name, spent, limits) for word, name in figures]
    if spent.unknown:
        parts.append(
            f"{spent.unknown} of the calls did not report all of their cost, so this is a lower bound"
        )
    return " · ".join(parts)


def _thread_cost_figure(word: str, name: str, spent: ChatUsage, limits: ChatLimits) -> str:
    limit = getattr(limits, name)
    limit_text = f" of {format_figure(name, limit)}" if limit is not None else ""
    return f"{format_figure(name, getattr(spent, name))}{limit_text} {word}".rstrip()


def missing_answer_line(question: int, agent: str, by: str | None, error: str) -> str:
    """Renders one missing answer."""
    if by is not None:
        return printable_line(f"[{question}] {by} is asking @{agent}")
    why = f"has failed ({error})" if error else "has not answered"
    return printable_line(f"[{question}] @{agent} {why}")
