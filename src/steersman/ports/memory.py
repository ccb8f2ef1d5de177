"""What was learnt before, kept for the next time."""

from collections.abc import Sequence
from typing import Protocol

from steersman.contracts.planning.context import MemoryPack, MemoryRecord
from steersman.contracts.planning.words import MemoryScope
from steersman.judges.planning.memory_words import MEMORY_SCOPES


class Memories(Protocol):
    """The memories of one project. MemoryUnavailable where they cannot be had, NoMemory where none was ever kept."""

    def add(
        self,
        text: str,
        *,
        scope: str = "project",
        subject: str = "",
        tags: Sequence[str] = (),
        source: str = "",
        created_at: str,
    ) -> tuple[MemoryRecord, bool]:
        """Keeps a text without its secrets; and whether it is new: the same text of a scope is kept once."""
        ...

    def search(
        self, query: str, *, scopes: Sequence[MemoryScope] = MEMORY_SCOPES, subject: str = "", limit: int = 20
    ) -> list[MemoryRecord]:
        """Those that have a word of the question, the best first; words are words, never a language of queries."""
        ...

    def entries(
        self, *, scopes: Sequence[MemoryScope] = MEMORY_SCOPES, subject: str = "", limit: int = 100
    ) -> list[MemoryRecord]:
        """All of them, the youngest first."""
        ...

    def forget(self, name: str) -> bool:
        """Removes one for good, from every file; False where there is none."""
        ...

    def pack(
        self,
        query: str,
        project_id: str,
        *,
        scopes: Sequence[MemoryScope] = MEMORY_SCOPES,
        threshold: int = 1,
    ) -> MemoryPack:
        """What a plan is given; the planner decides whether it is enough."""
        ...
