"""A conversation as lines: what was said, by whom, what it cost, and what is still open.

**Invariant:** every line from outside has a gutter in front of it: none can pose as a line of ours.
"""

from collections.abc import Sequence

from steersman.contracts.chat import Limits, Message, Spent, Thread
from steersman.judges.text import clip, one_line, printable
from steersman.views.gates import GUTTER
from steersman.views.moments import amount, money, span, stamp

TITLE = 60
COLUMNS = ("THREAD", "SAID", "AGE", "LAST ASKED", "ABOUT")


def threads(found: Sequence[tuple[Thread, int]], now: int) -> list[str]:
    """A table, one line a thread, with how much was said in it."""
    rows = [COLUMNS, *(_row(thread, count, now) for thread, count in found)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(COLUMNS) - 1)]
    return ["  ".join([*(c.ljust(w) for c, w in zip(r, widths, strict=False)), r[-1]]).rstrip() for r in rows]


def _row(thread: Thread, count: int, now: int) -> tuple[str, ...]:
    last = f"@{one_line(thread.agent)}" if thread.agent else "–"
    about = clip(one_line(thread.title), TITLE) or "–"
    return (thread.id, str(count), span(now - thread.at), last, about)


def message(m: Message) -> list[str]:
    """One message: who, when, at what cost, and the words."""
    to = f" → {', '.join(f'@{name}' for name in m.asked)}" if m.asked else ""
    parts = [f"[{m.seq}] {m.sender}{to}", f"{stamp(m.at)} UTC", *_about(m)]
    return [one_line(" · ".join(parts)), *words(m.text)]


def words(text: str) -> list[str]:
    """Somebody's words behind their gutter."""
    return [f"{GUTTER}{line}".rstrip() for line in printable(text).split("\n")]


def _about(m: Message) -> list[str]:
    if m.kind == "question":
        return []
    told = [f"to [{m.to}]"]
    if m.error:
        told.append(f"failed: {m.error}")
    if m.model or m.provider:
        told.append(f"{m.provider} {m.model}".strip())
    if m.ms is not None:
        told.append(span(m.ms))
    told.append(cost(m.tokens, m.micro_usd))
    if m.left_out:
        told.append(f"{m.left_out} earlier messages were left out")
    return told


def cost(tokens: int | None, micro_usd: int | None) -> str:
    """What a call said it cost; what it did not say is unknown."""
    used = f"{amount('tokens', tokens)} tokens" if tokens is not None else "tokens unknown"
    paid = money(micro_usd) if micro_usd is not None else "cost unknown"
    return f"{used} · {paid}"


def total(spent: Spent, limits: Limits) -> str:
    """What a thread has used, of what it may."""
    figures = (("calls", "turns"), ("tokens", "tokens"), ("", "micro_usd"))
    told = [_figure(word, name, spent, limits) for word, name in figures]
    if spent.unknown:
        told.append(f"{spent.unknown} of the calls did not tell all of their cost: a lower bound")
    return " · ".join(told)


def _figure(word: str, name: str, spent: Spent, limits: Limits) -> str:
    limit = getattr(limits, name)
    of = f" of {amount(name, limit)}" if limit is not None else ""
    return f"{amount(name, getattr(spent, name))}{of} {word}".rstrip()


def waiting(question: int, agent: str, by: str | None, error: str) -> str:
    """One answer that is not there."""
    if by is not None:
        return one_line(f"[{question}] @{agent} is being asked by {by}")
    why = f"has failed ({error})" if error else "has not answered"
    return one_line(f"[{question}] @{agent} {why}")
