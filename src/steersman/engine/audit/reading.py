"""Reads a tape for people, and replays its decisions."""

from collections.abc import Iterator
from typing import Any

import msgspec

from steersman.kernel.machine import Machine
from steersman.kernel.replay import BadEntry, RepeatedDecision, decision_hash, repeat_decisions, verify_chain
from steersman.kernel.tape import Entry
from steersman.ports.journal import Journal

MAX_LISTED_DECISIONS = 100  # decisions that differ, listed in full


class ReplayResult(msgspec.Struct, frozen=True):
    """The result of deciding every recorded transition again."""

    run: str
    machine: str
    same: int
    different: int
    other_version: int
    decisions: tuple[RepeatedDecision, ...]  # those that are not the same, the first hundred
    bad: BadEntry | None = None  # where the tape stopped being readable


def read_tape(journal: Journal, run: str) -> Iterator[tuple[Entry, str] | BadEntry]:
    """Yields the entries of a run with their hashes, each checked against the one before; ends at the first bad one."""
    return verify_chain(journal.rows(run), run)


def replay_run(journal: Journal, machine: Machine, run: str) -> ReplayResult:
    """Decides every transition again whose row and guards are still the same, and counts the results."""
    reader = _ReadableTape(journal, run)
    definitions: dict[str, Any] = {}
    counts = {"same": 0, "different": 0, "other version": 0}
    differing_decisions: list[RepeatedDecision] = []
    for decision in repeat_decisions(
        machine, _load_definitions(journal, reader.links(), definitions), definitions
    ):
        counts[decision.verdict] += 1
        if decision.verdict != "same" and len(differing_decisions) < MAX_LISTED_DECISIONS:
            differing_decisions.append(decision)
    return ReplayResult(
        run,
        machine.name,
        counts["same"],
        counts["different"],
        counts["other version"],
        tuple(differing_decisions),
        reader.bad,
    )


def _load_definitions(
    journal: Journal, links: Iterator[tuple[Entry, str]], definitions: dict[str, Any]
) -> Iterator[tuple[Entry, str]]:
    """Yields the same entries, and loads the definition that each one names before it."""
    for entry, hash_ in links:
        if entry.definition and entry.definition not in definitions:
            body = journal.definition(entry.definition)
            definitions[entry.definition] = msgspec.json.decode(body) if body is not None else None
        yield entry, hash_


def run_decision_hash(journal: Journal, run: str) -> str:
    """Returns the decision hash of a run: two runs that decided the same about the same trees have the same hash."""
    return decision_hash(entry for entry, _ in _ReadableTape(journal, run).links())


class _ReadableTape:
    """Yields the readable part of a tape; `bad` is the entry that ends it."""

    def __init__(self, journal: Journal, run: str) -> None:
        self._links = read_tape(journal, run)
        self.bad: BadEntry | None = None

    def links(self) -> Iterator[tuple[Entry, str]]:
        for link in self._links:
            if isinstance(link, BadEntry):
                self.bad = link
                return
            yield link
