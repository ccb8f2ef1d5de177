"""The port to kept conversations: apart from every tape, in order, nothing lost."""

from typing import Protocol

from steersman.contracts.chat import ChatCall, ChatLimits, ChatMessage, ChatThread, ChatUsage


class Chats(Protocol):
    """Keeps what is acknowledged; many may speak in one thread at once."""

    def open(self, thread: ChatThread, key: bytes) -> None:
        """A new thread with the key of its markers; StaleError when there is one of this name."""
        ...

    def thread(self, thread: str) -> ChatThread | None: ...

    def threads(self, limit: int = 100) -> list[ChatThread]:
        """The one with the newest message comes first."""
        ...

    def find_threads(self, prefix: str) -> list[str]: ...

    def key(self, thread: str) -> bytes | None: ...

    def add_question(self, message: ChatMessage) -> ChatMessage:
        """Keeps a question at the end of its thread; a thread without a title gets its first line. UserError: no such thread."""
        ...

    def messages(
        self, thread: str, *, before: int | None = None, last: int | None = None
    ) -> list[ChatMessage]:
        """In order; of those before a number, the last so many."""
        ...

    def count(self, thread: str) -> int: ...

    def begin(self, ask: ChatCall, limits: ChatLimits) -> int:
        """The number of this attempt, from 1. OverBudget when the thread has used up what it may use, UserError when there
        is none: nothing was written."""
        ...

    def answer(self, message: ChatMessage) -> ChatMessage:
        """Keeps the answer to an attempt that was begun, once; StaleError when it was not, or has an answer."""
        ...

    def unanswered(self) -> list[ChatMessage]:
        """The questions with an agent's last call unanswered, in any thread: the call goes on, or its process has died."""
        ...

    def spent(self, thread: str) -> ChatUsage: ...

    def drop(self, thread: str) -> bool:
        """Deletes a thread with its messages; whether there was one."""
        ...
