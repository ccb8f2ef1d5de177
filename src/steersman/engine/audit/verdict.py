"""What an audit says: findings as they are made, and the verdict they add up to."""

from collections.abc import Callable
from typing import Any

import msgspec

from steersman.errors import JournalError, StoreBroken

MAX_WORDED_FINDINGS = 20  # findings in words; the rest is counted


class AuditVerdict(msgspec.Struct, frozen=True):
    """Whether a run's tape and everything derived from it fit together, and what could not be seen."""

    run: str
    ok: bool
    entries: int
    first_bad: int | None = None  # the first entry that is not as it was written, where an entry is to blame
    problems: tuple[str, ...] = ()
    anchored: bool = False
    unseen: tuple[str, ...] = ()
    released: bool = False  # it was put aside, and no longer is
    waiting: tuple[str, ...] = ()  # what was sent to the run and is not on tape yet
    gone: tuple[str, ...] = ()  # what git no longer has of it: a person or a gc may have removed it
    beyond: tuple[str, ...] = ()  # what no verdict on any run can see, whatever its anchors say


class AuditFindings:
    """Collects what is wrong; remembers the first bad entry, however late it was noticed."""

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
        """What the store answers, or None with a finding: a row that cannot be read is evidence, not a crash."""
        try:
            return read_value()
        except Exception as error:
            self.add_read_error(subject, error)
            return None

    def add_read_error(self, subject: str, error: Exception, seq: int | None = None) -> None:
        """A finding, unless the store is merely busy or unreachable: that says nothing about the tape."""
        if isinstance(error, JournalError) and not isinstance(error, StoreBroken):
            raise error
        self.add(f"{subject} cannot be read: {type(error).__name__}: {str(error)[:200]}", seq)

    def problems(self) -> tuple[str, ...]:
        uncounted = self.count - len(self.words)
        return (*self.words, f"and {uncounted} more findings") if uncounted else tuple(self.words)
