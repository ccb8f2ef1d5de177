"""Conversations in memory: the same promises and the same errors as those on disk, except that they die with their process.

**Invariant:** what is asked for is looked at whole before anything of it is kept.
"""

import threading

from msgspec.structs import replace

from steersman.contracts.chat import ChatCall, ChatLimits, ChatMessage, ChatThread, ChatUsage
from steersman.errors import OverBudget, StaleError, UserError

AskAttempt = tuple[str, int, str, int]  # thread, question, agent, attempt


class MemoryChats:
    """Implements ports.chat.Chats."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._threads: dict[str, ChatThread] = {}
        self._keys: dict[str, bytes] = {}
        self._messages: dict[str, list[ChatMessage]] = {}
        self._asks: dict[AskAttempt, ChatMessage | None] = {}

    def open(self, thread: ChatThread, key: bytes) -> None:
        with self._lock:
            if thread.id in self._threads:
                raise StaleError(f"thread {thread.id} exists already")
            self._threads[thread.id], self._keys[thread.id] = thread, key
            self._messages[thread.id] = []

    def thread(self, thread: str) -> ChatThread | None:
        return self._threads.get(thread)

    def threads(self, limit: int = 100) -> list[ChatThread]:
        with self._lock:
            return sorted(self._threads.values(), key=lambda t: (t.at, t.id), reverse=True)[:limit]

    def find_threads(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(name for name in self._threads if name.startswith(prefix))[:20]

    def key(self, thread: str) -> bytes | None:
        return self._keys.get(thread)

    def add_question(self, message: ChatMessage) -> ChatMessage:
        with self._lock:
            stored = self._put(message)
            there = self._threads[message.thread]
            title = there.title or message.text.strip().partition("\n")[0][:100]
            last = message.asked[-1] if message.asked else ""
            self._threads[message.thread] = replace(
                there, at=max(there.at, message.at), agent=last, title=title
            )
            return stored

    def _put(self, message: ChatMessage) -> ChatMessage:
        stored = replace(message, seq=len(self._said(message.thread)) + 1)
        self._messages[message.thread].append(stored)
        return stored

    def _said(self, thread: str) -> list[ChatMessage]:
        if thread not in self._messages:
            raise UserError(f"there is no thread {thread}: see `steersman chat threads`")
        return self._messages[thread]

    def messages(
        self, thread: str, *, before: int | None = None, last: int | None = None
    ) -> list[ChatMessage]:
        with self._lock:
            messages = [m for m in self._messages.get(thread, ()) if before is None or m.seq < before]
        return messages if last is None else messages[max(0, len(messages) - last) :]

    def count(self, thread: str) -> int:
        return len(self._messages.get(thread, ()))

    def begin(self, ask: ChatCall, limits: ChatLimits) -> int:
        with self._lock:
            self._said(ask.thread)
            over = self.spent(ask.thread).over(limits)
            if over:
                raise OverBudget(ask.thread, over)
            ask_key = (ask.thread, ask.question, ask.agent)
            attempt = sum(1 for attempt_key in self._asks if attempt_key[:3] == ask_key) + 1
            self._asks[*ask_key, attempt] = None
            return attempt

    def answer(self, message: ChatMessage) -> ChatMessage:
        with self._lock:
            self._said(message.thread)
            attempt_key = (message.thread, message.to, message.sender, message.attempt)
            if self._asks.get(attempt_key, message) is not None:
                raise StaleError(
                    f"question {message.to} of thread {message.thread} waits for no such answer of {message.sender}"
                )
            stored = self._asks[attempt_key] = self._put(message)
            there = self._threads[message.thread]
            self._threads[message.thread] = replace(there, at=max(there.at, message.at))
            return stored

    def unanswered(self) -> list[ChatMessage]:
        with self._lock:
            last = {
                attempt_key[:3]: reply for attempt_key, reply in self._asks.items()
            }  # in the order of the attempts
            open_now = {attempt_key[:2] for attempt_key, reply in last.items() if reply is None}
            return [self._messages[thread][seq - 1] for thread, seq in sorted(open_now)]

    def spent(self, thread: str) -> ChatUsage:
        with self._lock:
            answers = [answer for attempt_key, answer in self._asks.items() if attempt_key[0] == thread]
        known = [answer for answer in answers if answer is not None]
        return ChatUsage(
            turns=len(answers),
            tokens=sum(answer.tokens or 0 for answer in known),
            micro_usd=sum(answer.micro_usd or 0 for answer in known),
            unknown=sum(1 for a in answers if a is None or a.tokens is None or a.micro_usd is None),
        )

    def drop(self, thread: str) -> bool:
        with self._lock:
            self._messages.pop(thread, None)
            self._keys.pop(thread, None)
            self._asks = {
                attempt_key: reply for attempt_key, reply in self._asks.items() if attempt_key[0] != thread
            }
            return self._threads.pop(thread, None) is not None
