"""The port that runs a check in a working tree."""

from typing import Protocol

from steersman.contracts.commands import Command, CommandResult


class Commands(Protocol):
    """Runs approved argv lists and records what happened."""

    def problem(self, command: Command) -> str | None:
        """Why this command may not run here, or None: executed argv = approved argv."""
        ...

    async def run(
        self, command: Command, workdir: str, effect: str, seconds: int, *, setup: bool = False
    ) -> CommandResult:
        """Returns what happened; never raises for a command that fails.

        A `setup` step makes the tree ready: it may use the network, and what it leaves in its home is there for the
        commands that come after it on the same tree.
        """
        ...
