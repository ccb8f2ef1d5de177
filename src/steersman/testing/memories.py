"""Memories that are gone with the process: a fake of the port, with the same order of answers."""

import math
import threading
from collections.abc import Sequence

from steersman.contracts.planning.context import Memory, MemoryPack
from steersman.contracts.planning.words import Scope
from steersman.errors import NoMemory
from steersman.judges.planning.remembering import (
    MOST_PACKED,
    SCOPES,
    Term,
    order,
    packed,
    remembered,
    terms_of,
    words_of,
)

K1, B = 1.2, 0.75  # of BM25, as SQLite has them
LEAST = 1e-6  # what a word is worth that is in more than half of all texts
FINENESS = 1_000_000_000


class ForgetfulMemories:
    """Implements ports.memory.Memories in a dictionary; `known` are values that are never kept."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self._known = known
        self._kept: dict[str, Memory] | None = None
        self._lock = threading.Lock()

    def add(
        self,
        text: str,
        *,
        scope: str = "project",
        subject: str = "",
        tags: Sequence[str] = (),
        source: str = "",
        created_at: str,
    ) -> tuple[Memory, bool]:
        memory = remembered(
            text,
            scope=scope,
            subject=subject,
            tags=tags,
            source=source,
            created_at=created_at,
            known=self._known,
        )
        with self._lock:
            self._kept = {} if self._kept is None else self._kept
            new = memory.id not in self._kept
            return self._kept.setdefault(memory.id, memory), new

    def search(
        self, query: str, *, scopes: Sequence[Scope] = SCOPES, subject: str = "", limit: int = 20
    ) -> list[Memory]:
        ranks = self._ranks(terms_of(query))
        there = self.entries(scopes=scopes, subject=subject, limit=len(self._all()))
        found = [(ranks[memory.id], memory) for memory in there if memory.id in ranks]
        return [memory for _, memory in sorted(found, key=lambda pair: order(*pair))][:limit]

    def entries(
        self, *, scopes: Sequence[Scope] = SCOPES, subject: str = "", limit: int = 100
    ) -> list[Memory]:
        there = [m for m in self._all() if m.scope in scopes and subject in ("", m.subject)]
        return sorted(there, key=lambda m: order(0, m))[: max(limit, 0)]

    def forget(self, name: str) -> bool:
        self._all()
        return self._kept is not None and self._kept.pop(name, None) is not None

    def pack(
        self, query: str, project_id: str, *, scopes: Sequence[Scope] = SCOPES, threshold: int = 1
    ) -> MemoryPack:
        fitting = self.search(query, scopes=scopes, limit=MOST_PACKED)
        rest = self.entries(scopes=scopes, limit=len(self._all()))
        return packed(query, project_id, tuple(scopes), threshold, fitting, rest)

    def _all(self) -> list[Memory]:
        if self._kept is None:
            raise NoMemory("nothing is remembered here yet")
        return list(self._kept.values())

    def _ranks(self, terms: Sequence[Term]) -> dict[str, int]:
        """How well each fits that fits at all; the smaller the better."""
        texts = {m.id: words_of(" ".join((m.text, m.subject, *m.tags))) for m in self._all()}
        mean = sum(map(len, texts.values())) / max(len(texts), 1)
        scores: dict[str, float] = {}
        for term in terms:
            counts = {
                name: n for name, words in texts.items() if (n := sum(_fits(term, word) for word in words))
            }
            worth = (
                max(math.log((len(texts) - len(counts) + 0.5) / (len(counts) + 0.5)), LEAST)
                if counts
                else LEAST
            )
            for name, n in counts.items():
                part = worth * n * (K1 + 1) / (n + K1 * (1 - B + B * len(texts[name]) / mean))
                scores[name] = scores.get(name, 0.0) - part
        return {name: _rounded(score * FINENESS) for name, score in scores.items()}


def _fits(term: Term, word: str) -> bool:
    return word.startswith(term.word) if term.begins else word == term.word


def _rounded(number: float) -> int:
    """Halves away from zero, as SQLite rounds."""
    return int(math.copysign(math.floor(abs(number) + 0.5), number))
