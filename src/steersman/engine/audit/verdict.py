"""Collects the findings of an audit and defines its verdict."""

from collections.abc import Callable
from typing import Any

import msgspec

from steersman.errors import JournalError, StoreBroken

MAX_WORDED_FINDINGS = 20  # findings in words; later ones are counted


class AuditVerdict(msgspec.Struct, frozen=True):
    """Whether a run's tape and everything derived from it fit together, and what could not be checked."""

    run: str
    ok: bool
    entries: int
    # The first entry that is not as it was written, where the fault is in an entry.
    first_bad: int | None = None
    problems: tuple[str, ...] = ()
    anchored: bool = False
    unseen: tuple[str, ...] = ()
    released: bool = False  # its quarantine was lifted
    waiting: tuple[str, ...] = ()  # what was sent to the run and is not on tape yet
    gone: tuple[str, ...] = ()  # what git no longer has of it: a person or a gc may have removed it
    beyond: tuple[str, ...] = ()  # what no audit can check


class AuditFindings:
    """Collects findings; keeps the lowest bad entry."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.count = 0
        self.first: int | None = None
        self.unseen: list[str] = []

    def add(self, message: str, seq: int | None = None) -> None:
        self.count += 1
        if len(self.words) < MAX_WORDED_FINDINGS:
            self.words.append(message)
        if seq is not None and (self.first is None or seq < self.first):
            self.first = seq

    def read(self, subject: str, read_value: Callable[[], Any]) -> Any:
        """Returns what the store answers; None with a finding where a row cannot be read."""
        try:
            return read_value()
        except Exception as error:
            self.add_read_error(subject, error)
            return None

    def add_read_error(self, subject: str, error: Exception, seq: int | None = None) -> None:
        """Adds a finding; raises the error again where the store is only busy, which says nothing about the tape."""
        if isinstance(error, JournalError) and not isinstance(error, StoreBroken):
            raise error
        self.add(f"{subject} cannot be read: {type(error).__name__}: {str(error)[:200]}", seq)

    def problems(self) -> tuple[str, ...]:
        uncounted = self.count - len(self.words)
        return (*self.words, f"and {uncounted} more findings") if uncounted else tuple(self.words)
