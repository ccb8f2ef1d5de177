"""The transitions package, with the hand-written table's INSERT for durability (it brings no store).

Its fast path: one Machine for all runs, each run a model added to it, no automatic `to_…` triggers.
"""

import threading

from peers._log import LogContender, Save
from transitions import Machine
from workload import EMPTY, SCRIPT, START, STATES, TABLE, check_end, fold

ROWS = [{"trigger": event, "source": source, "dest": dest} for (source, event), dest in TABLE.items()]


class Run:
    """The model: the machine sets its state and calls it back after each transition."""

    def __init__(self, run: str, save: Save) -> None:
        self.run, self.seq, self.save = run, 0, save
        self.context = dict(EMPTY)

    def apply(self, event, payload) -> None:
        self.seq += 1
        self.context.update(fold(self.context, event, payload))
        self.save(self.run, self.seq, self.state, self.context)


class Transitions(LogContender):
    name = "transitions"
    import_line = "import transitions, json, sqlite3"

    def __init__(self) -> None:
        self._machine = Machine(
            model=None,
            states=list(STATES),
            transitions=ROWS,
            initial=START,
            auto_transitions=False,
            after_state_change="apply",
        )
        # Models come and go under a lock: the machine's list of them is not made for threads.
        self._models = threading.Lock()

    def drive(self, run: str, save: Save) -> int:
        model = Run(run, save)
        with self._models:
            self._machine.add_model(model)
        for event, payload in SCRIPT:
            model.trigger(event, event, payload)
        with self._models:
            self._machine.remove_model(model)
        return check_end(model.state, model.context)


CONTENDER = Transitions()
