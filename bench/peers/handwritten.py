"""A dict of (state, event) -> state and one INSERT per transition: the least that anybody would write."""

from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import ClassVar

from peers._log import LogContender, Save, opened
from workload import EMPTY, SCRIPT, START, TABLE, check_end, endless, fold, note


class Handwritten(LogContender):
    name = "hand-written"
    # Each row holds the whole list: ten thousand of them would be gigabytes.
    limits: ClassVar = {"growing": 3_000}
    import_line = "import json, sqlite3"

    def drive(self, run: str, save: Save) -> int:
        state, context = START, dict(EMPTY)
        for seq, (event, payload) in enumerate(SCRIPT, 1):
            state = TABLE[state, event]
            context.update(fold(context, event, payload))
            save(run, seq, state, context)
        return check_end(state, context)

    @contextmanager
    def growth(self, folder: Path, growing: bool):
        with opened(folder) as log:
            advance = _endless_run(log.save, growing)
            yield lambda transitions: sum(islice(advance, transitions))

    def fill(self, folder: Path, runs: int, unfinished: int) -> None:
        with opened(folder) as log:
            log.fill(runs, unfinished)

    def reader(self, folder: Path):
        return opened(folder)

    def waiting(self, folder: Path):
        return opened(folder)


def _endless_run(save: Save, growing: bool):
    state, context, notes = START, dict(EMPTY), []
    if growing:
        context["history"] = notes
    for seq, (event, payload) in zip(count(1), endless(), strict=False):
        state = TABLE[state, event]
        context.update(fold(context, event, payload))
        notes.append(note(seq))
        save("endless", seq, state, context)
        yield 1


CONTENDER = Handwritten()
