"""The port that runs a check in a working tree."""

from collections.abc import Sequence
from typing import Protocol

from steersman.contracts.commands import Command, CommandResult
from steersman.contracts.workspace import Checkout


class CommandRunner(Protocol):
    """Runs approved argv lists and records what happened."""

    def find_command_problem(self, command: Command) -> str | None:
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

    async def set_up(
        self, steps: Sequence[Command], tree: Checkout, effect: str, seconds: int
    ) -> Sequence[CommandResult]:
        """Makes a fresh tree ready: runs the setup steps, up to the first that fails.

        What they created before from the same inputs is reused; then none of them is run. What they create is never
        part of the tree.
        """
        ...
