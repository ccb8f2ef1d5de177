"""The port to the folders in which frozen plans lie."""

from collections.abc import Mapping
from typing import Protocol


class PlanDirectories(Protocol):
    """Writes a frozen plan whole or not at all, and reads one back; links are never followed."""

    def default_directory(self, run: str) -> str:
        """Where a run's plan goes by default."""
        ...

    def find_directory_problem(self, place: str) -> str | None:
        """Why a plan cannot be written there, with the next step; None where it can."""
        ...

    def write(self, place: str, files: Mapping[str, bytes]) -> None:
        """The folder holds exactly these files afterwards; a folder that holds something else is left alone.

        Raises WorkspaceError.
        """
        ...

    def read(self, place: str) -> dict[str, bytes]:
        """Every file of a folder by name; what is no plain file of bearable size is there as an empty one.

        Raises WorkspaceError where there is no folder.
        """
        ...
