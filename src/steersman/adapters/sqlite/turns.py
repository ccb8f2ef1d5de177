"""Turns at the write lock, fair between processes.

A writer that has to wait says so with a shared lock on a small file beside the store; a writer that has held the
store for 5 ms looks there and rests when somebody waits. Without it an occasional writer beside two busy ones is
starved for seconds: SQLite's own back-off sleeps longer each time, and the lock is free for microseconds only.
"""

import fcntl
import os
import time

HOLD = 0.005  # seconds of holding the lock before others are looked for
REST = 0.002  # longer than a waiting writer's poll
POLL = 0.0007
PATIENCE = 30.0


def patient(tries: int) -> bool:
    """The busy handler of whoever only reads: the same poll, and nobody is asked to make room."""
    time.sleep(POLL)
    return tries * POLL < PATIENCE


class Turns:
    """One writer's manners."""

    def __init__(self, store: str) -> None:
        self._fd = os.open(f"{store}-waiting", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._since = 0.0
        self._waits = False
        self._held = 0.0
        self._began = 0.0

    def busy(self, tries: int) -> bool:
        """SQLite's busy handler: a short, steady poll; False gives up."""
        now = time.monotonic()
        if tries == 0:
            self._since = now
            self._waits = True
            fcntl.flock(self._fd, fcntl.LOCK_SH)
        if now - self._since > PATIENCE:
            return False
        time.sleep(POLL)
        return True

    def began(self) -> None:
        """The lock is ours."""
        self.waited()
        self._began = time.monotonic()

    def waited(self) -> None:
        """The wait is over, well or badly: nobody has to make room for us."""
        if self._waits:
            self._waits = False
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def ended(self) -> None:
        """The lock is given up; after every 5 ms of holding it, whoever waits goes first."""
        self._held += time.monotonic() - self._began
        if self._held < HOLD:
            return
        self._held = 0.0
        if self._somebody_waits():
            time.sleep(REST)

    def _somebody_waits(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
