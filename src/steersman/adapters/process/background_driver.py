"""Starts a driver in a session of its own, which goes on when this process ends; its output goes to a log file."""

import os
import subprocess
from pathlib import Path


class BackgroundDriver:
    """Implements ports.ownership.BackgroundProcess."""

    def __init__(self, argv: list[str], directory: Path, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log = os.fspath(log)
        with log.open("ab") as stream:
            self._process = subprocess.Popen(
                argv,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )

    def has_ended(self) -> bool:
        """Whether the driver's process is over."""
        return self._process.poll() is not None
