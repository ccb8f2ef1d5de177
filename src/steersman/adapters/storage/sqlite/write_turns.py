"""Turns at the write lock, fair between processes.

A writer that has to wait says so with a shared lock on a small file beside the store; a writer that has held the
store for 5 ms looks there and pauses when another waits. A process that has waited for 8 ms takes a second file's lock for
itself: while that is held no other begins, so the store is free for it after the commit under way.
Without all this an occasional writer beside two busy ones is starved for seconds: SQLite's own back-off sleeps longer
each time, and the lock is free for microseconds only.
"""

import fcntl
import os
import time

LOCK_HOLD_SECONDS = 0.005  # seconds of holding the lock before others are looked for
LOCK_REST_SECONDS = 0.002  # longer than a waiting writer's poll
LOCK_POLL_SECONDS = 0.0007
LOCK_URGENT_SECONDS = 0.008
LOCK_YIELD_SECONDS = 0.1  # the longest pause: the process that asked for it may have been stopped
LOCK_PATIENCE_SECONDS = 30.0


def poll_while_busy(tries: int) -> bool:
    """The busy handler of a reader: the same poll, without asking others to make room."""
    time.sleep(LOCK_POLL_SECONDS)
    return tries * LOCK_POLL_SECONDS < LOCK_PATIENCE_SECONDS


class WriteFairness:
    """One writer's manners."""

    def __init__(self, store: str) -> None:
        self._waiting = _open_fairness_file(f"{store}-waiting")
        self._urgent = _open_fairness_file(f"{store}-urgent")
        self._since = 0.0
        self._waits = self._pressed = False
        self._held = 0.0
        self._began = 0.0

    def make_room(self) -> None:
        """Before we begin: lets a process go first that has waited for long."""
        if _is_fairness_lock_held(self._urgent):
            self._yield_turn()

    def _yield_turn(self) -> None:
        deadline = time.monotonic() + LOCK_YIELD_SECONDS
        while time.monotonic() < deadline:
            time.sleep(LOCK_POLL_SECONDS)
            if not _is_fairness_lock_held(self._urgent):
                return

    def handle_busy(self, tries: int) -> bool:
        """SQLite's busy handler: a short, steady poll; False gives up."""
        now = time.monotonic()
        if tries == 0:
            self._since = now
            self._waits = True
            fcntl.flock(self._waiting, fcntl.LOCK_SH)
        if now - self._since > LOCK_PATIENCE_SECONDS:
            return False
        if now - self._since > LOCK_URGENT_SECONDS and not self._pressed:
            self._pressed = _try_fairness_lock(self._urgent, fcntl.LOCK_EX)
        time.sleep(LOCK_POLL_SECONDS)
        if not self._pressed:
            self.make_room()
        return True

    def note_lock_taken(self) -> None:
        """The lock is ours."""
        self.note_wait_over()
        self._began = time.monotonic()

    def note_wait_over(self) -> None:
        """The wait is over, well or badly: no other has to make room for us."""
        if self._pressed:
            self._pressed = False
            fcntl.flock(self._urgent, fcntl.LOCK_UN)
        if self._waits:
            self._waits = False
            fcntl.flock(self._waiting, fcntl.LOCK_UN)

    def note_lock_released(self) -> None:
        """The lock is released; after every 5 ms of holding it, a waiting process goes first."""
        self._held += time.monotonic() - self._began
        if self._held < LOCK_HOLD_SECONDS:
            return
        self._held = 0.0
        if _is_fairness_lock_held(self._waiting, fcntl.LOCK_EX):
            time.sleep(LOCK_REST_SECONDS)

    def close(self) -> None:
        for fd in {self._waiting, self._urgent} - {-1}:
            os.close(fd)
        self._waiting = self._urgent = -1


def _open_fairness_file(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_fairness_lock(fd: int, operation: int) -> bool:
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_fairness_lock_held(fd: int, operation: int = fcntl.LOCK_SH) -> bool:
    """Whether another process holds it."""
    if _try_fairness_lock(fd, operation):
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
    return True
