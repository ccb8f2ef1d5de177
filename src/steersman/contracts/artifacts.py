"""The files that any run has beside it, and what was found in a file's place."""

from typing import Literal, NamedTuple

STATE_FILE = "state.json"
TRANSCRIPT_FILE = "transcript.jsonl"
REPORT_FILE = "report.md"
TIMELINE_FILE = "timeline.json"


class ArtifactOnDisk(NamedTuple):
    """What is in an artifact's place; `detail` is outside text and says more where it is no file."""

    kind: Literal["file", "missing", "link", "other", "unreadable", "too_long"]
    data: bytes = b""
    detail: str = ""


UNRECORDED_FILE_PROBLEM = "is not on record: steersman did not write it"


class DamagedFile(NamedTuple):
    """A file that is not what was recorded: what is wrong with it, and what a person can do."""

    name: str
    problem: str
    next: str
    adoptable: bool

    @property
    def recorded(self) -> bool:
        """Whether steersman wrote it."""
        return self.problem != UNRECORDED_FILE_PROBLEM
