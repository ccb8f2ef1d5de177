"""Memories that are gone with the process: a fake of the port, with the same order of answers."""

import math
import threading
from collections.abc import Sequence

from steersman.contracts.planning.context import MemoryPack, MemoryRecord
from steersman.contracts.planning.words import MemoryScope
from steersman.errors import NoMemory
from steersman.judges.planning.memory_words import (
    MAX_PACKED_MEMORIES,
    MEMORY_SCOPES,
    SearchTerm,
    build_memory_pack,
    build_memory_record,
    build_search_terms,
    memory_sort_key,
    split_memory_words,
)

BM25_K1, BM25_B = 1.2, 0.75  # of BM25, as SQLite has them
MIN_TERM_WEIGHT = 1e-6  # what a word is worth that is in more than half of all texts
RANK_SCALE = 1_000_000_000


class ForgetfulMemories:
    """Implements ports.memory.Memories in a dictionary; `known` are values that are never kept."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self._known = known
        self._kept: dict[str, MemoryRecord] | None = None
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
    ) -> tuple[MemoryRecord, bool]:
        memory = build_memory_record(
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
        self, query: str, *, scopes: Sequence[MemoryScope] = MEMORY_SCOPES, subject: str = "", limit: int = 20
    ) -> list[MemoryRecord]:
        ranks = self._ranks(build_search_terms(query))
        there = self.entries(scopes=scopes, subject=subject, limit=len(self._all()))
        ranked = [(ranks[memory.id], memory) for memory in there if memory.id in ranks]
        return [memory for _, memory in sorted(ranked, key=lambda pair: memory_sort_key(*pair))][:limit]

    def entries(
        self, *, scopes: Sequence[MemoryScope] = MEMORY_SCOPES, subject: str = "", limit: int = 100
    ) -> list[MemoryRecord]:
        there = [m for m in self._all() if m.scope in scopes and subject in ("", m.subject)]
        return sorted(there, key=lambda m: memory_sort_key(0, m))[: max(limit, 0)]

    def forget(self, name: str) -> bool:
        self._all()
        return self._kept is not None and self._kept.pop(name, None) is not None

    def pack(
        self,
        query: str,
        project_id: str,
        *,
        scopes: Sequence[MemoryScope] = MEMORY_SCOPES,
        threshold: int = 1,
    ) -> MemoryPack:
        fitting = self.search(query, scopes=scopes, limit=MAX_PACKED_MEMORIES)
        rest = self.entries(scopes=scopes, limit=len(self._all()))
        return build_memory_pack(query, project_id, tuple(scopes), threshold, fitting, rest)

    def _all(self) -> list[MemoryRecord]:
        if self._kept is None:
            raise NoMemory("nothing is remembered here yet")
        return list(self._kept.values())

    def _ranks(self, terms: Sequence[SearchTerm]) -> dict[str, int]:
        """How well each fits that fits at all; the smaller the better."""
        texts = {m.id: split_memory_words(" ".join((m.text, m.subject, *m.tags))) for m in self._all()}
        mean = sum(map(len, texts.values())) / max(len(texts), 1)
        scores: dict[str, float] = {}
        for term in terms:
            counts = {
                name: n
                for name, words in texts.items()
                if (n := sum(_is_term_match(term, word) for word in words))
            }
            worth = (
                max(math.log((len(texts) - len(counts) + 0.5) / (len(counts) + 0.5)), MIN_TERM_WEIGHT)
                if counts
                else MIN_TERM_WEIGHT
            )
            for name, n in counts.items():
                part = (
                    worth
                    * n
                    * (BM25_K1 + 1)
                    / (n + BM25_K1 * (1 - BM25_B + BM25_B * len(texts[name]) / mean))
                )
                scores[name] = scores.get(name, 0.0) - part
        return {name: _round_half_away(score * RANK_SCALE) for name, score in scores.items()}


def _is_term_match(term: SearchTerm, word: str) -> bool:
    return word.startswith(term.word) if term.begins else word == term.word


def _round_half_away(number: float) -> int:
    """Halves away from zero, as SQLite rounds."""
    return int(math.copysign(math.floor(abs(number) + 0.5), number))
