"""A project looked over for facts."""

from typing import Protocol

from steersman.contracts.planning.context import FactPack


class FactScanner(Protocol):
    """Reads a project's own files; the same files give the same pack, byte for byte."""

    def scan(self, project_id: str, root: str = ".") -> FactPack:
        """What the files say, each fact with its evidence; the pack says how far the scan went.

        `root` is a folder of the project: only what lies in it is looked at, and its names stay those from the top.
        """
        ...
