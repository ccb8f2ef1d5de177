"""A tape read for people: its entries, and whether they would be decided the same again."""

from collections.abc import Iterator
from typing import Any

import msgspec

from steersman.kernel.build import Machine
from steersman.kernel.replay import Bad, Decision, chain, decision_hash, redecided
from steersman.kernel.tape import Entry
from steersman.ports.journal import Journal

TOLD = 100  # decisions that differ, in full


class Replayed(msgspec.Struct, frozen=True):
    """What deciding every recorded transition again gave."""

    run: str
    machine: str
    same: int
    different: int
    other_version: int
    decisions: tuple[Decision, ...]  # those that are not the same, the first hundred
    bad: Bad | None = None  # where the tape stopped being readable


def tape(journal: Journal, run: str) -> Iterator[tuple[Entry, str] | Bad]:
    """The entries of a run with their hashes, each checked against the one before; ends at the first bad one."""
    return chain(journal.rows(run), run)


def replay(journal: Journal, machine: Machine, run: str) -> Replayed:
    """Decides every transition again where what decided it then would decide it now, and counts."""
    reader = _Good(journal, run)
    known: dict[str, Any] = {}
    counts = {"same": 0, "different": 0, "other version": 0}
    told: list[Decision] = []
    for decision in redecided(machine, _defined(journal, reader.links(), known), known):
        counts[decision.verdict] += 1
        if decision.verdict != "same" and len(told) < TOLD:
            told.append(decision)
    return Replayed(
        run,
        machine.name,
        counts["same"],
        counts["different"],
        counts["other version"],
        tuple(told),
        reader.bad,
    )


def _defined(
    journal: Journal, links: Iterator[tuple[Entry, str]], known: dict[str, Any]
) -> Iterator[tuple[Entry, str]]:
    """The same entries; what they were decided under is known by the time they go by."""
    for entry, hash_ in links:
        if entry.definition and entry.definition not in known:
            body = journal.definition(entry.definition)
            known[entry.definition] = msgspec.json.decode(body) if body is not None else None
        yield entry, hash_


def decisions(journal: Journal, run: str) -> str:
    """The decision hash of a run: what was decided, and about which trees; two runs that agree have the same."""
    return decision_hash(entry for entry, _ in _Good(journal, run).links())


class _Good:
    """The good part of a tape; `bad` says where it ended."""

    def __init__(self, journal: Journal, run: str) -> None:
        self._links = tape(journal, run)
        self.bad: Bad | None = None

    def links(self) -> Iterator[tuple[Entry, str]]:
        for link in self._links:
            if isinstance(link, Bad):
                self.bad = link
                return
            yield link
