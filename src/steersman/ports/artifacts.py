"""The port to the files people read: projections of the tape, never its source."""

from typing import Protocol


class Artifacts(Protocol):
    """Writes files below a run's own directory, atomically, without following links."""

    def write(self, run: str, name: str, data: bytes) -> None: ...

    def folder(self, run: str) -> str:
        """Where a run's artifacts are."""
        ...
