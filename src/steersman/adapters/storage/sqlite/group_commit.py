"""Group commit: one thread that commits what many runs have ready."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from steersman.adapters.storage.sqlite.write_turns import LOCK_HOLD_SECONDS
from steersman.ports.journal import Batch

CommitCallback = Callable[[BaseException | None], None]


class GroupWriter:
    """Takes batches from any thread; calls each one's `done` after its commit."""

    def __init__(self, commit_together: Callable[[Any, Any], None]) -> None:
        self._together = commit_together
        self._queue: deque[tuple[Batch, CommitCallback]] = deque()
        self._ready = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run_writer, name="steersman-writer", daemon=True)
        self._thread.start()

    def submit(self, batch: Batch, done: CommitCallback) -> None:
        with self._ready:
            self._queue.append((batch, done))
            if len(self._queue) == 1:  # otherwise the thread is awake or will be
                self._ready.notify()

    def close(self) -> None:
        """Commits what is waiting, then ends the thread."""
        with self._ready:
            self._closing = True
            self._ready.notify()
        self._thread.join()

    def _run_writer(self) -> None:
        while True:
            with self._ready:
                while not self._queue and not self._closing:
                    self._ready.wait()
                if not self._queue:
                    return
            self._commit()

    def _commit(self) -> None:
        outcomes: list[tuple[CommitCallback, BaseException | None]] = []
        callbacks: list[CommitCallback] = []
        started = time.monotonic()

        def take() -> Batch | None:
            if not self._queue or time.monotonic() - started > LOCK_HOLD_SECONDS:
                return None
            batch, done = self._queue.popleft()
            callbacks.append(done)
            return batch

        def report(error: BaseException | None) -> None:
            outcomes.append((callbacks[-1], error))

        failure: BaseException | None = None
        try:
            self._together(take, report)
        except BaseException as error:
            failure = error
        self._report_outcomes(outcomes, callbacks, failure)

    def _report_outcomes(
        self,
        outcomes: list[tuple[CommitCallback, BaseException | None]],
        callbacks: list[CommitCallback],
        failure: BaseException | None,
    ) -> None:
        if failure is None:
            for done, error in outcomes:
                done(error)
            return
        if (
            not callbacks and self._queue
        ):  # the transaction could not even begin: the oldest fails, the next is tried
            callbacks.append(self._queue.popleft()[1])
        for done in callbacks:
            done(failure)
